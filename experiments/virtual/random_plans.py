"""Random runs: how many workers, how fast, how bad a network, what else goes wrong. A seed tells all of it."""

from __future__ import annotations

import random
from collections.abc import Iterator

from experiments.virtual.plan import Plan
from serene.errors import SereneError, choices
from serene.faults import Action, Event, Faults, PacketFaults
from serene.strategy import ASP, BSP, MAX_STALENESS, SSP, Mixed, Quorum, Strategy

FAMILIES = ("bsp", "ssp", "asp", "quorum", "mixed")
MAX_WORKERS = 4


def some(family: str, rng: random.Random, workers: int) -> Strategy:
    """A strategy of a family, with random parameters that fit so many workers (two or more)."""
    if family == "bsp":
        return BSP()
    if family == "ssp":
        return SSP(rng.randint(1, MAX_STALENESS) if rng.random() < 0.5 else rng.randint(1, 3))
    if family == "asp":
        return ASP()
    if family == "quorum":
        return Quorum(rng.randint(1, workers))
    if family == "mixed":
        free = rng.sample(range(workers), rng.randint(1, workers - 1))
        return Mixed(tuple(free), rng.choice([0, 0, 1, 3]))
    raise SereneError(f"no strategy {family!r}; expected {choices(FAMILIES)}")


def alternating(families: tuple[str, ...], seed: int, workers: int) -> Iterator[Strategy]:
    """One family after the other, for ever, with new parameters each time."""
    rng = random.Random(f"strategies/{seed}")
    while True:
        for family in families:
            yield some(family, rng, workers)


def random_plan(seed: int) -> Plan:
    """A short run of 2 to 4 workers with several swaps; up to a fifth of all packets is lost."""
    rng = random.Random(f"plan/{seed}")
    workers = rng.randint(2, MAX_WORKERS)
    iterations = tuple(rng.randint(4, 8) for _ in range(workers))
    weather = PacketFaults(
        loss=rng.choice([0.0, 0.01, 0.05, 0.2]),
        duplication=rng.choice([0.0, 0.01, 0.1]),
        reordering=rng.choice([0.0, 0.05, 0.2]),
        late_s=rng.choice([0.02, 0.5]),
        jitter_s=rng.choice([0.0, 0.002, 0.01]),
    )
    return Plan(
        seed=seed,
        slots=rng.randint(1, 2),
        iterations=iterations,
        mean_s=tuple(rng.choice([0.02, 0.1, 0.5]) for _ in range(workers)),
        faults=Faults(seed, (weather,), tuple(_events(rng, workers, min(iterations)))),
        swaps=8,
        swap_every_s=rng.choice([0.1, 0.3]),
    )


def _events(rng: random.Random, workers: int, iterations: int) -> Iterator[Event]:
    """One run in four has a worker that stands still, one that dies, a controller that does."""
    for action in (Action.PAUSE_WORKER, Action.RESTART_WORKER, Action.RESTART_CONTROLLER):
        if rng.random() < 0.25:
            worker = rng.randrange(workers) if action.of_worker else None
            yield Event(rng.randrange(iterations), action, worker, seconds=rng.choice([0.1, 1.0, 3.0]))
