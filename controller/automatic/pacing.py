"""Leaves out late workers where waiting costs more than their late gradients.

Late gradients count when they arrive, so none is lost, but they are of old parameters. The workers measure the effect
(`session.agreement`). Where gradients turn against the last update, training oscillates: a few late gradients damp
that, more amplify it. With momentum an old gradient affects many more updates (asynchrony adds to momentum: Mitliagkas
et al., Allerton 2016). So a round leaves out the number of workers with the least total cost of waiting and harm.
Otherwise late gradients are as good as others, and where workers are late in turns nobody waits. SAINA (IEEE TSC 2023)
adapts k to the loss.

A worker is late while it computes longer than the fastest by a part of a step, until it finishes an iteration in time.
So no worker waits for one that is always slow, a pause costs a fraction of a step, and without late workers this is
BSP.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, zip_longest
from typing import ClassVar

from serene.controller.automatic.base import Automatic, Decision, Observation, WorkerView, expect, expect_period
from serene.strategy import ASP, BSP, Quorum, Strategy

LEAST_AGREEMENT = 0.01  # a mean cosine of gradients; below it, the part that outlasts an update is noise
# The part of the agreement that outlasts an update is below this where training oscillates: from -0.4 to -1 there, and
# above -0.2 elsewhere.
TURNED = -0.3
MOMENTUM = 0.5  # from this momentum on late gradients do harm
# With momentum, training needs 1 + HARM * (late / (n - 1))**3 times as many rounds if `late` of n gradients are late in
# each (momentum 0.9, 4 to 16 workers). So a few late gradients cost almost nothing.
HARM = 14.0
# With momentum, lateness is rare up to this share of iterations that are late after one in time. Then a round leaves
# such a worker out at once. One in ten counts as late before any is known.
RARE = 0.05
SWAP = 2.0  # what a swap costs with momentum, in the network's times of a step
SOME = 4  # workers, of which a quarter is one
# Iterations without a late worker, after which a round waits for more workers again. At a swap, workers retransmit
# packets in flight. Where the network takes two thirds of a step, this takes most of a step. Compute times always vary
# a little. A swap for each late iteration would cost more than late gradients do.
CALM = 20
# In a job that runs already, it first observes the fastest worker for so many iterations. After one or two, only some
# workers' times are known, and the agreement is mostly noise: each of the first decisions would be another one.
OBSERVED = 8


@dataclass
class Pacing(Automatic):
    """near: a worker is late if it is behind the fastest by this many steps (without waiting); by half as many if the
    effect of late gradients is known and there is no momentum. far: the same for workers beyond the first quarter, if
    the effect is unknown or gradients turn. With momentum, a worker that was in time before is late at twice `far`,
    unless such lateness is rare. period: seconds between decisions, each of which may make a swap."""

    near: float = 0.25
    far: float = 1.0
    period: float = 0.1
    needs: ClassVar[tuple[str, ...]] = ("compute_s",)

    def __post_init__(self) -> None:
        expect("pacing", "near", self.near, 0.01, 100)
        expect("pacing", "far", self.far, self.near, 100)
        expect_period("pacing", self.period)
        self.period_s = self.period
        self._begin()

    def _begin(self) -> None:
        """Begins a session, of which nothing is known. Times are in seconds since it began."""
        self._seen_at: float | None = None  # when it observed the job last
        # While it only observes: when that began, and the number of iterations done then.
        self._observes_from: tuple[float, int] | None = None
        self._first_s: float | None = None  # when the first contribution arrived
        # By worker: iterations done, and the compute times of the last iteration and of the one before.
        self._times: dict[int, tuple[int, float, float]] = {}
        # Iterations computed so far; those of them that were late after one in time; and the sum of all lateness, in
        # steps.
        self._iterations, self._sudden, self._late = 10, 1, 0.0
        # With momentum: when it decided last; how many workers rounds leave out; and what each other number would
        # have saved lately, in steps.
        self._decided_at: float | None = None
        self._left_out = 0
        self._saved: list[float] = []
        # Without momentum: the number of workers that a round waits for, and the number of iterations done when it was
        # last chosen.
        self._waits_for: int | None = None
        self._chosen_at = 0

    def decide(self, seen: Observation) -> Decision | None:
        workers = seen.barrier
        if len(workers) < 2:
            return None
        if self._seen_at is not None and seen.t < self._seen_at:
            self._begin()  # the switch has lost its state: iterations count from 0 again
        if self._seen_at is None and seen.t > 2 * self.period and _done(workers) > 1:
            self._observes_from = seen.t, _done(workers)
        self._seen_at = seen.t
        fresh = []
        for worker in workers:
            rounds, last, _ = self._times.get(worker.id, (-1, 0.0, 0.0))
            if worker.latest_s is not None and worker.rounds != rounds:
                self._times[worker.id] = worker.rounds, worker.latest_s, last
                fresh.append(worker)
        evicted = frozenset(worker.id for worker in seen.workers if not worker.is_member)
        known = [worker for worker in workers if worker.compute_s]
        if known:
            fastest = min(known, key=lambda worker: worker.compute_s or math.inf)
            if self._observes(seen.t, known):
                return Decision(seen.strategy, evicted, f"observes {OBSERVED} iterations before it decides")
            strategy, why = self._chosen(seen.t, workers, fresh, fastest)
        else:
            absent = [worker for worker in workers if not worker.rounds]
            if len(absent) in (0, len(workers)):
                return None
            strategy, why = _without(self._missing(seen.t, absent, workers), len(workers), "in the first iteration")
        return Decision(strategy, evicted, why)

    def _observes(self, t: float, known: Sequence[WorkerView]) -> bool:
        """Whether it knows too little of a job that had run before: OBSERVED iterations, or the time of so many if a
        worker has stopped. t: seconds since the session began. known: workers whose times are known."""
        if self._observes_from is None:
            return False
        began_at, done = self._observes_from
        iteration_s = max(worker.iteration_s or worker.compute_s or 0.0 for worker in known)
        if _done(known) - done < OBSERVED and t - began_at < OBSERVED * iteration_s:
            return True
        self._observes_from = None
        return False

    def _missing(self, t: float, absent: list[WorkerView], workers: Sequence[WorkerView]) -> list[WorkerView]:
        """The workers that are late with their first contribution, before any time is known. t: seconds since the
        session began."""
        self._first_s = self._first_s or t
        far = 2 * self.far if _momentum(workers) >= MOMENTUM else self.near
        return absent[: _few(workers)] if t > (1 + far) * self._first_s else []

    def _chosen(
        self, t: float, workers: Sequence[WorkerView], fresh: Sequence[WorkerView], fastest: WorkerView
    ) -> tuple[Strategy, str]:
        """The strategy, and the reason. t: seconds since the session began. fresh: the workers that have computed an
        iteration since the last decision."""
        computes_s = fastest.compute_s or 0.0
        step_s = fastest.busy_s or computes_s

        def behind(seconds: float | None) -> float:
            return ((seconds or 0.0) - computes_s) / step_s

        count, few, momentum = len(workers), _few(workers), _momentum(workers)
        if momentum >= MOMENTUM:
            decided_at, self._decided_at = self._decided_at, t
            steps = 1.0 if decided_at is None else (t - decided_at) / step_s
            because = f"late gradients are harmful with momentum {momentum:g}"
            return self._least(workers, fresh, behind, steps, SWAP * (1 - computes_s / step_s), because)
        left = _left(workers)
        near = self.near if left is None else self.near / 2
        lateness = {worker.id: behind(max(worker.silent_s, worker.latest_s or 0.0)) for worker in workers}
        slowest = sorted(workers, key=lambda worker: lateness[worker.id], reverse=True)
        late = [worker for worker in slowest if lateness[worker.id] > near]
        recently = any(lateness[worker.id] <= near < behind(worker.slowest_s) for worker in workers)
        if left is None:
            further = [worker for worker in late[few:] if lateness[worker.id] > self.far]
            why = "by waiting times alone: the effect of late gradients is unknown"
            return self._calm(*_without([*late[:few], *further][: count // 2], count, why), workers)
        share = f"{left:.1f} of the gradients' agreement outlasts one update"
        if left < TURNED and (count >= SOME or late or recently):
            # Also without late workers: a quarter of the gradients, one round late, damps the oscillation.
            k = max(count - max(few, sum(lateness[worker.id] > self.far for worker in late)), 1)
            self._waits_for, self._chosen_at = k, _done(workers)
            return Quorum(k), f"training oscillates: a round waits for {k} of {count} ({share})"
        if recently or len(late) > few:
            asynchronous = f"workers are late in turns: nobody waits (late gradients help: {share})"
            return self._calm(ASP(), asynchronous, workers)
        return self._calm(*_without(late, count, share), workers)

    def _calm(self, strategy: Strategy, why: str, workers: Sequence[WorkerView]) -> tuple[Strategy, str]:
        """This strategy, if it waits for no more workers than the one in force or nobody was late for CALM iterations;
        else the one in force."""
        count, done = len(workers), _done(workers)
        wanted = _waits_for(strategy, count)
        kept = min(wanted if self._waits_for is None else self._waits_for, count)
        if wanted <= kept or done - self._chosen_at >= CALM:
            self._waits_for, self._chosen_at = wanted, done
            return strategy, why
        who = f"a round waits for {kept} of {count}" if kept else "nobody waits"
        return Quorum(kept) if kept else ASP(), f"workers were late within {CALM} iterations: {who}"

    def _least(
        self,
        workers: Sequence[WorkerView],
        fresh: Sequence[WorkerView],
        behind: Callable[[float | None], float],
        steps: float,
        swap: float,
        because: str,
    ) -> tuple[Strategy, str]:
        """With momentum, the strategy of the least total cost of waiting and harm, and the reason. behind: converts
        seconds of computing into steps of lateness. steps: since the last decision. swap: what a swap costs, in
        steps. because: why late gradients matter."""
        count = len(workers)
        again = {worker.id: behind(min(self._times.get(worker.id, (0, 0.0, 0.0))[1:])) for worker in workers}
        sudden = [
            behind(worker.latest_s) for worker in fresh if again[worker.id] <= self.near < behind(worker.latest_s)
        ]
        self._iterations, self._sudden = self._iterations + len(fresh), self._sudden + len(sudden)
        self._late += sum(sudden)
        share, mean = self._sudden / self._iterations, self._late / max(self._sudden - 1, 1)
        # A worker's lateness: that of two iterations in a row. The present one counts at once where lateness is rare,
        # else when it is longer than usual.
        patience = 0.0 if share < RARE else 2 * self.far
        silent = {worker.id: behind(worker.silent_s) for worker in workers}
        waits = {each: max(again[each], silent[each] if silent[each] > patience else 0.0) for each in again}
        slowest = sorted(workers, key=lambda worker: waits[worker.id], reverse=True)
        late = [worker for worker in slowest if waits[worker.id] > self.near]
        usual = min(mean, patience)  # the wait for a worker that is suddenly late; 0 where that is rare
        # By the number of workers in time that a round leaves out: how likely it is that no more become late.
        most = max(count // 2 - len(late), 0)
        enough = list(accumulate(_chances(count - len(late), share, most)))
        # By the number of late workers that it leaves out: their gradients per round. Each contributes once in
        # 1 + lateness rounds.
        gradients = [0.0, *accumulate(1 / (1 + waits[worker.id]) for worker in late)]

        def cost(left_out: int) -> float:
            """A round's time in steps if it leaves out this number of workers, times the harm."""
            spare = max(left_out - len(late), 0)  # workers in time that are left out, too
            lasting = waits[late[left_out].id] if left_out < len(late) else 0.0
            wait = max(usual * (1 - enough[spare]), lasting)
            old = spare + gradients[left_out - spare]
            return (1 + wait) * (1 + HARM * (old / (count - 1)) ** 3)

        left_out = min(self._left_out, count // 2)
        costs = [cost(number) for number in range(count // 2 + 1)]
        # The number changes once another one would have saved as much as a swap costs.
        self._saved = [
            max(saved + (costs[left_out] - each) * steps, 0.0)
            for saved, each in zip_longest(self._saved[: len(costs)], costs, fillvalue=0.0)
        ]
        if max(self._saved) > swap:
            left_out = self._saved.index(max(self._saved))
            self._saved = []
        self._left_out = left_out
        if left_out > len(late):
            k = count - left_out
            return Quorum(k), f"workers were late in turns: a round waits for {k} of {count} ({because})"
        if late and not left_out:
            return BSP(), f"waiting for late workers costs less: a round waits for {count} of {count} ({because})"
        return _without(late[:left_out], count, because)


def _chances(workers: int, share: float, most: int) -> Iterator[float]:
    """The probabilities that 0, 1, ... ``most`` of so many workers are late, if each is with the probability
    ``share``."""
    ways = 1  # to choose `late` workers, exactly
    for late in range(most + 1):
        yield ways * share**late * (1 - share) ** (workers - late)
        ways = ways * (workers - late) // (late + 1)


def _waits_for(strategy: Strategy, count: int) -> int:
    """The number of workers, of ``count``, for which a round waits; 0 under ASP."""
    return 0 if isinstance(strategy, ASP) else strategy.k if isinstance(strategy, Quorum) else count


def _done(workers: Sequence[WorkerView]) -> int:
    """The largest number of iterations that a worker has done."""
    return max(worker.rounds for worker in workers)


def _few(workers: Sequence[WorkerView]) -> int:
    """A quarter of the workers."""
    return max(len(workers) // 4, 1)


def _without(late: Sequence[WorkerView], count: int, because: str) -> tuple[Strategy, str]:
    """A barrier without these workers, in words."""
    k = count - len(late)
    ids = ", ".join(map(str, sorted(worker.id for worker in late)))
    who = f"worker{'s' * (len(late) > 1)} {ids} {'are' if len(late) > 1 else 'is'} late" if late else "nobody is late"
    return Quorum(k) if late else BSP(), f"{who}: a round waits for {k} of {count} ({because})"


def _momentum(workers: Sequence[WorkerView]) -> float:
    """The largest reported momentum; 0 if none is reported."""
    return max(worker.momentum or 0.0 for worker in workers)


def _left(workers: Sequence[WorkerView]) -> float | None:
    """The part of gradients' agreement that outlasts one update, about -1 to 1; None if it is not known."""
    pairs = [
        (each.agreement, each.agreement_after)
        for each in workers
        if each.agreement is not None and each.agreement_after is not None
    ]
    before, after = (sum(each) for each in zip(*pairs, strict=True)) if pairs else (0.0, 0.0)
    return after / before if before > LEAST_AGREEMENT * len(pairs) else None
