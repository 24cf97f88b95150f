"""Random plans: how many workers, how fast, how bad a network, and which events. They follow from a seed."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any

from serene.experiments.correctness.virtual.plan import Happening, Plan, Slow, What
from serene.faults import Action, Event, Faults, PacketFaults

MAX_WORKERS = 4
CONTROL = ("HELLO", "LEAVE", "WELCOME", "REFUSED", "BYE", "WAIT")  # kinds of packets
CLOCK_STEP_S = 1e6
TAKE_OVERS = 0.5
RESTARTS = 0.5  # the probability that the switch restarts
AT_THE_END = 0.25  # and of these runs, that it restarts when the worker with the fewest iterations has done them
SLOW = 0.1  # the probability that something is slow
RARE = tuple(what for what in What if what not in (What.TAKES_BACK, What.SWITCH_RESTARTS))
TOO_LATE_S = 300.0


def random_plan(
    seed: int, often: float = 0.125, take_overs: float = TAKE_OVERS, restarts: float = RESTARTS, slow: float = SLOW
) -> Plan:
    """A short run of 2 to 4 workers with several swaps. Up to a fifth of all packets is lost, and some are delayed
    until another epoch, process or job has begun. often: the probability of each rare event. take_overs: the
    probability that two processes of one worker take its place from each other. restarts: the probability that the
    switch restarts. slow: the probability that the controller's requests, its packets, or workers' clocks are slow.
    """
    rng = random.Random(f"plan/{seed}")
    workers = rng.randint(2, MAX_WORKERS)
    iterations = tuple(rng.randint(4, 8) for _ in range(workers))
    faults = PacketFaults(
        loss=rng.choice([0.0, 0.01, 0.05, 0.2]),
        duplication=rng.choice([0.0, 0.01, 0.1]),
        reordering=rng.choice([0.0, 0.05, 0.2]),
        late_s=rng.choice([0.02, 0.5, 3.0]),
        jitter_s=rng.choice([0.0, 0.002, 0.01]),
    )
    worse = (
        replace(faults, kinds=CONTROL, duplication=0.3, late_s=1.0),
        replace(faults, kinds=("PUSH",), reordering=0.3, late_s=1.0),
        faults,
    )
    packets = rng.choice(worse), faults
    events = tuple(_events(rng, workers, min(iterations), often))
    plan = Plan(
        seed=seed,
        slots=rng.randint(1, 2),
        iterations=iterations,
        mean_s=tuple(rng.choice([0.02, 0.1, 0.3]) for _ in range(workers)),
        faults=Faults(seed, packets, events),
        swaps=8,
        too_late_s=TOO_LATE_S,
        swap_every_s=rng.choice([0.1, 0.3]),
        happenings=tuple(_happenings(rng, workers, min(iterations), often, events)),
        clock_steps_s=tuple(rng.choice([0.0, 0.0, -CLOCK_STEP_S, CLOCK_STEP_S]) for _ in range(2)),
        hostile_every_s=0.05 if rng.random() < 2 * often else None,
    )
    apart = random.Random(f"take-over/{seed}")  # so that all else is the same without it
    plan = _with_take_over(apart, plan) if apart.random() < take_overs else plan
    apart = random.Random(f"switch/{seed}")
    plan = with_restarts(apart, plan) if apart.random() < restarts else plan
    apart = random.Random(f"slow/{seed}")
    return replace(plan, slow=_slow(apart, plan.workers)) if apart.random() < slow else plan


def _slow(rng: random.Random, workers: int) -> Slow:
    kind = rng.choice(["writes", "reads", "answers", "punts", "messages", "silence", "clocks"])
    if kind == "clocks":
        return Slow(clocks=tuple(rng.choice([0.5, 0.9, 1.0, 1.1, 2.0]) for _ in range(workers)))
    how: dict[str, Any] = {kind: 0.001 if kind == "silence" else rng.choice([0.1, 0.6, 2.0])}
    return Slow(**how)


def _events(rng: random.Random, workers: int, iterations: int, often: float) -> Iterator[Event]:
    """Workers that pause, workers that die, and controllers that die, each none, once or several times."""
    for action in (Action.PAUSE_WORKER, Action.RESTART_WORKER, Action.RESTART_CONTROLLER):
        while rng.random() < 1.5 * often:
            worker = rng.randrange(workers) if action.of_worker else None
            yield Event(rng.randrange(iterations), action, worker, seconds=rng.choice([0.1, 1.0, 3.0]))


def _happenings(
    rng: random.Random, workers: int, iterations: int, often: float, events: Collection[Event]
) -> Iterator[Happening]:
    # A controller that was restarted does not know which of two processes of a worker was there first.
    restarts = any(event.action is Action.RESTART_CONTROLLER for event in events)
    for what in RARE:
        if rng.random() < often and not (restarts and what is What.SECOND_PROCESS):
            worker = None if what is What.DELETED else rng.randrange(workers)
            seconds = rng.choice([0.1, 0.3, 1.0])
            if what is What.SECOND_PROCESS:
                seconds = rng.choice([0.3, 5.0])  # before and after the first process notices, which takes 2 s
            yield Happening(rng.randrange(iterations), what, worker, seconds=seconds)


def _with_take_over(rng: random.Random, plan: Plan) -> Plan:
    """Gives a worker a second process, and has either of the two join again soon, once or several times."""
    worker, begins = rng.randrange(plan.workers), rng.randrange(3)
    happenings = [Happening(begins, What.SECOND_PROCESS, worker, rng.choice([0.3, 5.0]))]
    for _ in range(rng.randint(1, 3)):
        what = rng.choice([What.JOINS_AGAIN, What.GIVES_UP, What.TAKES_BACK, What.TAKES_BACK])
        happenings.append(Happening(begins + rng.randrange(3), what, worker, rng.choice([0.02, 0.1, 0.3, 1.0])))
    return _with(plan, happenings)


def with_restarts(rng: random.Random, plan: Plan) -> Plan:
    """Has the switch restart once or twice, perhaps once more while workers leave. No controller does: one that starts
    while the switch holds nothing cannot know of the job."""
    restarts = tuple(
        Happening(rng.randrange(min(plan.iterations)), What.SWITCH_RESTARTS, seconds=rng.choice([0.0, 0.3, 3.0]))
        for _ in range(rng.choice([1, 1, 2]))
    )
    if rng.random() < AT_THE_END:
        restarts += (Happening(min(plan.iterations), What.SWITCH_RESTARTS, seconds=rng.choice([0.0, 0.3, 3.0])),)
    return _with(plan, restarts)


def _with(plan: Plan, happenings: Iterable[Happening]) -> Plan:
    """The plan with further events, and without deaths of the controller."""
    events = tuple(event for event in plan.faults.events if event.action is not Action.RESTART_CONTROLLER)
    return replace(plan, faults=replace(plan.faults, events=events), happenings=(*plan.happenings, *happenings))
