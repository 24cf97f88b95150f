"""Waits for as many workers as are nearly always on time: k-of-n, whose k follows how many are late at once.

Late gradients count when they come, so k-of-n loses none, and who is on time reads complete rounds, nearly as fresh as
under BSP. The last worker is never waited for, so that its first pause costs nothing; half of the workers always are.
SAINA (IEEE TSC 2023) adapts k, too, by the times of whole rounds; here late workers are counted, whether it is always
the same one or now this one and now that one, so that nothing has to be tried. It reads no loss.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import ClassVar

from serene.controller.automatic.base import Automatic, Decision, Observation, WorkerView, expect, expect_period
from serene.errors import numbers
from serene.strategy import Quorum

FEWEST = 16  # looks before the first decision
STEADY = 1.3  # a slow worker's longest iteration over its mean one, at most, if it is slow in all of them


@dataclass
class Pacing(Automatic):
    """late: by what share of a step without waiting a worker has to be behind the fastest to be late. often: k workers
    are on time in this share of the looks. remember: looks that count, the latest ones. period: seconds between looks,
    each of which may be followed by a swap."""

    late: float = 0.25
    often: float = 0.97
    remember: int = 100
    period: float = 0.1
    needs: ClassVar[tuple[str, ...]] = ("compute_s",)

    def __post_init__(self) -> None:
        expect("pacing", "late", self.late, 0.01, 100)
        expect("pacing", "often", self.often, 0.5, 1)
        expect("pacing", "remember", self.remember, FEWEST, 1e6)
        expect_period("pacing", self.period)
        self.period_s = self.period
        self._late: deque[frozenset[int]] = deque(maxlen=self.remember)  # who was late, look by look

    def decide(self, seen: Observation) -> Decision | None:
        workers = seen.barrier
        known = [worker for worker in workers if worker.compute_s]
        if len(workers) < 2 or not known:
            return None
        fastest = min(known, key=lambda worker: worker.compute_s or math.inf)
        compute_s = fastest.compute_s or math.inf
        bound = compute_s + self.late * (_busy_s(fastest) or compute_s)
        self._late.append(frozenset(worker.id for worker in workers if _is_late(worker, bound)))
        count = len(workers)
        k = max(count - self._absent(count), count // 2, 1)
        evicted = frozenset(worker.id for worker in seen.workers if not worker.is_member)
        return Decision(Quorum(k), evicted, self._reason(k, count))

    def _absent(self, count: int) -> int:
        """How many of so many workers are not waited for."""
        if len(self._late) < FEWEST:
            return max(count // 4, 1)
        counts = sorted(len(late) for late in self._late)
        return max(counts[math.ceil(self.often * len(counts)) - 1], 1)

    def _reason(self, k: int, count: int) -> str:
        late = sorted(frozenset().union(*self._late))
        who = f"worker {numbers(late)} was late" if late else "nobody was late"
        return f"in the last {len(self._late)} looks {who}: a round waits for {k} of {count}"


def _is_late(worker: WorkerView, bound: float) -> bool:
    """Whether a worker has computed for longer than this by now, or does so in all of its iterations."""
    if worker.silent_s > bound:
        return True
    compute_s, slowest_s = worker.compute_s, worker.slowest_s
    return compute_s is not None and slowest_s is not None and bound < compute_s and slowest_s < STEADY * compute_s


def _busy_s(worker: WorkerView) -> float | None:
    """Seconds of a worker's step without waiting."""
    if worker.iteration_s is None or worker.waiting_share is None:
        return None
    return worker.iteration_s * (1 - worker.waiting_share)
