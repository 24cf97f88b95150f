"""A barrier that waits for no more workers than late gradients cost: who is late is not waited for, and how many may be
late follows from what a late gradient is worth in this training.

Late gradients count when they come, so none is lost, but they are of old parameters. What that costs is measured by the
workers (`session.agreement`). Where gradients turn against the last update, training oscillates: a few late ones
damp that, more add to it. With momentum an old gradient has its effect for many updates more (asynchrony adds to
momentum: Mitliagkas et al., Allerton 2016), so a round leaves out as many workers as make waiting and harm together
least. Otherwise late gradients are as good as others, and where workers are late in turns nobody waits. SAINA (IEEE TSC
2023) adapts k to the loss.

A worker is late while it computes longer than the fastest by a part of a step, and stays so until it has done an
iteration in time; so a worker that is always slow is not waited for, a pause costs a fraction of a step, and where
nobody is late this is BSP.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from serene.controller.automatic.base import Automatic, Decision, Observation, WorkerView, expect, expect_period
from serene.strategy import ASP, BSP, Quorum, Strategy

LEAST_AGREEMENT = 0.01  # of gradients, a mean cosine: below it, what is left of it after an update is noise
# What is left of it where training oscillates is below this; from -0.4 to -1 there, and above -0.2 elsewhere.
TURNED = -0.3
MOMENTUM = 0.5  # from which on late gradients do harm
# With momentum, what it costs in steps when the gradients of all workers are late, and of a part of them in proportion:
# with a quarter of them one round late, training with momentum 0.9 needs 1.3 to 1.6 times as many rounds.
HARM = 2.4
# With momentum, workers that are late in turns do more harm. Up to this share of iterations that are late after one in
# time, a round leaves such a worker out at once. One in ten counts as late before any is known.
RARE = 0.05
SOME = 4  # workers, of which a quarter is one
# Iterations without a late worker, after which a round waits for more workers again. At a swap, workers send again what
# is in flight: most of a step where the network takes two thirds of it. Compute times always scatter a little. A swap
# for each late iteration would cost more than late gradients do.
CALM = 20


@dataclass
class Pacing(Automatic):
    """near: by how many steps without waiting a worker has to be behind the fastest to be late; half as many where
    late gradients' worth is known, and there is no momentum. far: the same for more than a quarter of the workers where
    it is not known or gradients turn; with momentum, a worker that was in time before has to be twice as far, unless
    that is rare. period: seconds between looks, each of which may be followed by a swap."""

    near: float = 0.25
    far: float = 1.0
    period: float = 0.1
    needs: ClassVar[tuple[str, ...]] = ("compute_s",)

    def __post_init__(self) -> None:
        expect("pacing", "near", self.near, 0.01, 100)
        expect("pacing", "far", self.far, self.near, 100)
        expect_period("pacing", self.period)
        self.period_s = self.period
        self._first_s: float | None = None  # when the first contribution was there
        # By worker: how many iterations it had done, and how long it computed in the last and in the one before.
        self._times: dict[int, tuple[int, float, float]] = {}
        # Computed so far; of these, late after one in time; and the sum of how late, in steps.
        self._iterations, self._sudden, self._late = 10, 1, 0.0
        # How many workers a round waits for, None where momentum decides; and the iterations that were done when it was
        # last the choice of the moment.
        self._waits_for: int | None = None
        self._chosen_at = 0

    def decide(self, seen: Observation) -> Decision | None:
        workers = seen.barrier
        if len(workers) < 2:
            return None
        fresh = []
        for worker in workers:
            rounds, last, _ = self._times.get(worker.id, (-1, 0.0, 0.0))
            if worker.latest_s is not None and worker.rounds != rounds:
                self._times[worker.id] = worker.rounds, worker.latest_s, last
                fresh.append(worker)
        known = [worker for worker in workers if worker.compute_s]
        if known:
            strategy, why = self._chosen(workers, fresh, min(known, key=lambda worker: worker.compute_s or math.inf))
        else:
            absent = [worker for worker in workers if not worker.rounds]
            if len(absent) in (0, len(workers)):
                return None
            strategy, why = _without(self._missing(seen.t, absent, workers), len(workers), "of the first iteration")
        evicted = frozenset(worker.id for worker in seen.workers if not worker.is_member)
        return Decision(strategy, evicted, why)

    def _missing(self, t: float, absent: list[WorkerView], workers: Sequence[WorkerView]) -> list[WorkerView]:
        """Before any time is known: who is late with its first contribution. t: seconds since the session began."""
        self._first_s = self._first_s or t
        far = 2 * self.far if _momentum(workers) >= MOMENTUM else self.near
        return absent[: _few(workers)] if t > (1 + far) * self._first_s else []

    def _chosen(
        self, workers: Sequence[WorkerView], fresh: Sequence[WorkerView], fastest: WorkerView
    ) -> tuple[Strategy, str]:
        """The strategy, and why. fresh: the workers that have computed an iteration since the last look."""
        computes_s = fastest.compute_s or 0.0
        step_s = _busy_s(fastest) or computes_s

        def behind(seconds: float | None) -> float:
            return ((seconds or 0.0) - computes_s) / step_s

        def lateness(worker: WorkerView) -> float:
            return behind(max(worker.silent_s, worker.latest_s or 0.0))

        count, few, momentum, left = len(workers), _few(workers), _momentum(workers), _left(workers)
        near = self.near if left is None or momentum >= MOMENTUM else self.near / 2
        late = [worker for worker in sorted(workers, key=lateness, reverse=True) if lateness(worker) > near]
        recently = [worker for worker in workers if worker not in late and behind(worker.slowest_s) > near]
        if momentum >= MOMENTUM:
            self._waits_for = None
            k, left_out = self._least(workers, fresh, behind)
            harm = f"late gradients are harmful with momentum {momentum:g}"
            if k is not None:
                return Quorum(k), f"workers are late in turns: a round waits for {k} of {count} ({harm})"
            return _without(left_out, count, harm)
        if left is None:
            further = [worker for worker in late[few:] if lateness(worker) > self.far]
            why = "by waiting times alone: the effect of late gradients is unknown"
            return self._calm(*_without([*late[:few], *further][: count // 2], count, why), workers)
        share = f"{left:.1f} of the gradients' agreement outlasts one update"
        if left < TURNED and (count >= SOME or late or recently):
            # Where nobody is late, too: a quarter of the gradients, one round late, damps the oscillation.
            k = max(count - max(few, sum(lateness(worker) > self.far for worker in late)), 1)
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
        self, workers: Sequence[WorkerView], fresh: Sequence[WorkerView], behind: Callable[[float | None], float]
    ) -> tuple[int | None, list[WorkerView]]:
        """With momentum, whom a round leaves out, so that waiting and harm are least together; or of how many workers
        it takes the first, whoever they are. behind: by how many steps such seconds of computing are late."""
        count, few = len(workers), _few(workers)
        again = {worker.id: behind(min(self._times.get(worker.id, (0, 0.0, 0.0))[1:])) for worker in workers}
        sudden = [
            behind(worker.latest_s) for worker in fresh if again[worker.id] <= self.near < behind(worker.latest_s)
        ]
        self._iterations, self._sudden = self._iterations + len(fresh), self._sudden + len(sudden)
        self._late += sum(sudden)
        share, mean = self._sudden / self._iterations, self._late / max(self._sudden - 1, 1)
        rare = share < RARE
        # By how many steps a round waits for a worker, as far as one can tell: as long as it took twice in a row, or as
        # long again as it has taken already.
        silent = {worker.id: behind(worker.silent_s) for worker in workers}
        patience = 0.0 if rare else 2 * self.far
        waits = {each: max(again[each], silent[each] if silent[each] > patience else 0.0, 0.0) for each in again}
        slowest = sorted(workers, key=lambda worker: waits[worker.id], reverse=True)
        one = HARM / (count if rare else min(count, SOME))  # harm of one late worker, in steps
        left_out = min(range(count // 2 + 1), key=lambda j: one * j + waits[slowest[j].id])

        def wait(spared: int) -> float:
            """What a round waits, in steps, if it leaves so many out: as long as more of them are late in it."""
            return mean * (
                1 - sum(math.comb(count, n) * share**n * (1 - share) ** (count - n) for n in range(spared + 1))
            )

        if not rare and left_out < few and HARM * few / count + wait(few) < wait(0):
            return count - few, []
        return None, slowest[:left_out]


def _waits_for(strategy: Strategy, count: int) -> int:
    """For how many of so many workers a round waits, 0 under ASP."""
    return 0 if isinstance(strategy, ASP) else strategy.k if isinstance(strategy, Quorum) else count


def _done(workers: Sequence[WorkerView]) -> int:
    """Iterations of the worker that has done most."""
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
    """The largest that is reported, 0 where none is."""
    return max(worker.momentum or 0.0 for worker in workers)


def _left(workers: Sequence[WorkerView]) -> float | None:
    """What is left of gradients' agreement one update later, about -1 to 1; None where it is not known."""
    pairs = [
        (each.agreement, each.agreement_after)
        for each in workers
        if each.agreement is not None and each.agreement_after is not None
    ]
    before, after = (sum(each) for each in zip(*pairs, strict=True)) if pairs else (0.0, 0.0)
    return after / before if before > LEAST_AGREEMENT * len(pairs) else None


def _busy_s(worker: WorkerView) -> float | None:
    """Seconds of a worker's step without waiting."""
    if worker.iteration_s is None or worker.waiting_share is None:
        return None
    return worker.iteration_s * (1 - worker.waiting_share)
