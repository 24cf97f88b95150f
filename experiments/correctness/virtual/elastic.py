"""Runs of a job whose workers come and go: some begin, others join while it trains, and some die and stay away."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from serene.client.protocol.protocol import Membership
from serene.controller.coordinator import Coordinator
from serene.experiments.correctness.virtual.checks import Violation
from serene.experiments.correctness.virtual.ledger import Ledger
from serene.experiments.correctness.virtual.plan import Plan, What
from serene.experiments.correctness.virtual.random_plans import random_plan
from serene.experiments.correctness.virtual.schedule import Schedule
from serene.experiments.correctness.virtual.switch import Plane
from serene.experiments.correctness.virtual.worker import Incarnation, Place
from serene.faults import Action
from serene.strategy import Strategy, shrunk

MOST_PLACES = 8
LATEST_S = 2.0  # when the last of those who join later is started
# A controller that was restarted knows the places, not when to evict; of a deleted job nobody is left to join.
LEFT_OUT = (What.DELETED, What.SECOND_PROCESS, What.TAKES_BACK)


@dataclass(frozen=True)
class Changes:
    """Who comes and who goes. begin: so many workers begin, those with the lowest numbers. comes_s: when each of the
    others is started. dies: by worker, after how many iterations, and when another process takes its place
    (None: never)."""

    begin: int
    minimum: int
    evict_after: float
    comes_s: tuple[float, ...]
    dies: dict[int, tuple[int, float | None]]


def random_changes(seed: int, often: float = 0.125) -> tuple[Plan, Changes]:
    """A run of 2 to 8 places, of which one to all begin, with lost packets and live swaps as in `random_plan`."""
    plan, rng = random_plan(seed, often, take_overs=0.0, slow=0.0), random.Random(f"elastic/{seed}")
    places = rng.randint(2, MOST_PLACES)
    begin = rng.randint(1, places)
    plan = replace(
        plan,
        iterations=tuple(rng.randint(4, 8) for _ in range(places)),
        mean_s=tuple(rng.choice([0.02, 0.1, 0.3]) for _ in range(places)),
        faults=replace(
            plan.faults,
            events=tuple(
                event
                for event in plan.faults.events
                if event.action is not Action.RESTART_CONTROLLER and (event.worker or 0) < places
            ),
        ),
        happenings=tuple(each for each in plan.happenings if each.what not in LEFT_OUT and (each.worker or 0) < places),
    )
    dies = {
        worker: (rng.randrange(4), rng.choice([None, 0.3, 3.0, 8.0]))
        for worker in range(1, places)  # the first one stays, or nobody might
        if rng.random() < 0.4
    }
    for_good = sum(away_s is None for _, away_s in dies.values())
    changes = Changes(  # with fewer than the minimum, they would wait for good
        begin, rng.randint(1, max(begin - for_good, 1)), rng.choice([0.5, 1.0, 2.0]),
        tuple(rng.uniform(0.0, LATEST_S) for _ in range(places - begin)), dies,
    )  # fmt: skip
    return plan, changes


class ElasticSchedule(Schedule):
    """One run. What has to hold is the same; but a worker that comes when the job is over, or dies for good, has no
    last read."""

    def __init__(self, switch: Plane, plan: Plan, strategies: Iterator[Strategy], changes: Changes) -> None:
        super().__init__(switch, plan, strategies)
        self._changes = changes
        self._out: set[int] = set()  # places whose workers do not come to a last read
        self._dies = dict(changes.dies)
        self.strategy = shrunk(self.strategy, range(changes.begin))

    def left(self) -> set[int]:
        return super().left() - self._out

    def begins_at(self, place: Place) -> float:
        later = place.id - self._changes.begin
        return self._rng.uniform(0.0, 0.01) if later < 0 else self._changes.comes_s[later]

    def _stuck(self) -> Violation:
        where = f"workers {sorted(self.left())}, done {self.ledger.done}"
        return Violation("no stuck worker", f"under {self.strategy}: {where}")

    async def _create(self, coordinator: Coordinator) -> None:
        changes = self._changes
        await coordinator.create_job(
            changes.begin, self.strategy, job=self.job, places=self.plan.workers, minimum=changes.minimum,
            evict_after=changes.evict_after,
        )  # fmt: skip

    def joined(self, incarnation: Incarnation, membership: Membership) -> Ledger:
        if membership.epoch > 1 and incarnation.number == 1 and incarnation.ledger is None:
            self.happened["joined later"] += 1
        return super().joined(incarnation, membership)

    def refused(self, incarnation: Incarnation, reason: str) -> None:
        if "has finished" not in reason:
            super().refused(incarnation, reason)
        elif incarnation.place.id not in self.ledger.finals:
            self.happened["came when the job was over"] += 1
            self._out.add(incarnation.place.id)

    def happen(self, place: Place) -> None:
        super().happen(place)
        iteration, away_s = self._dies.get(place.id, (0, 0.0))
        if place.id in self._dies and self.ledger.done[place.id] > iteration:
            del self._dies[place.id]
            self.time.at(self.plan.mean_s[place.id], lambda: self._goes(place, away_s))

    def _goes(self, place: Place, away_s: float | None) -> None:
        incarnation = place.present
        if not self.at_work(incarnation):
            return
        incarnation.die()
        if away_s is not None:
            self.happened["died and came back"] += 1
            place.start_after(away_s)
        elif not place.awaited:
            self.happened["died for good"] += 1
            self._out.add(place.id)
