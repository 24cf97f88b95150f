"""Random strategies, for runs in which one is swapped for the next. They follow from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator

from serene.errors import SereneError, choices
from serene.strategy import ASP, BSP, MAX_STALENESS, SSP, Mixed, Quorum, Strategy

FAMILIES = ("bsp", "ssp", "asp", "quorum", "mixed")


def some(family: str, rng: random.Random, workers: int) -> Strategy:
    """A strategy of a family (one of FAMILIES), with random parameters that are valid for so many workers, two or more.
    Raises SereneError."""
    if family == "bsp":
        return BSP()
    if family == "ssp":
        return SSP(rng.randint(1, MAX_STALENESS) if rng.random() < 0.5 else rng.randint(1, 3))
    if family == "asp":
        return ASP()
    if family == "quorum":
        return Quorum(rng.randint(1, workers))
    if family == "mixed":
        asynchronous = rng.sample(range(workers), rng.randint(1, workers - 1))
        return Mixed(tuple(asynchronous), rng.choice([0, 0, 1, 3]))
    raise SereneError(f"no strategy {family!r}; expected {choices(FAMILIES)}")


def alternating(families: tuple[str, ...], seed: int, workers: int) -> Iterator[Strategy]:
    """Strategies of one family after the other, for ever, with new parameters each time."""
    rng = random.Random(f"strategies/{seed}")
    while True:
        for family in families:
            yield some(family, rng, workers)
