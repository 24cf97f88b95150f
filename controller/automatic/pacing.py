"""BSP that stops waiting for who is late: a round is complete when all workers have contributed but those that are late
just now.

Late gradients count when they come, so none is lost, and who is on time reads complete rounds, as fresh as under BSP.
A worker is late while it computes longer than the fastest by a part of a step, and stays so until it has done an
iteration in time; so a worker that is always slow is not waited for, a pause costs a fraction of a step, and where
nobody is late this is BSP. Further workers have to be later than the first quarter of them, because every gradient that
is not waited for is stale. SAINA (IEEE TSC 2023) adapts k to the loss, and Decoupled DiLoCo (arXiv 2604.21428) gives
late workers a window of grace. It reads no loss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from serene.controller.automatic.base import Automatic, Decision, Observation, WorkerView, expect, expect_period
from serene.strategy import BSP, Quorum


@dataclass
class Pacing(Automatic):
    """near: by how many steps without waiting a worker has to be behind the fastest to be late, while at most a quarter
    of the workers are. far: the same for further workers. period: seconds between looks, each of which may be followed
    by a swap."""

    near: float = 0.25
    far: float = 1.0
    period: float = 0.1
    needs: ClassVar[tuple[str, ...]] = ("compute_s",)

    def __post_init__(self) -> None:
        expect("pacing", "near", self.near, 0.01, 100)
        expect("pacing", "far", self.far, self.near, 100)
        expect_period("pacing", self.period)
        self.period_s = self.period

    def decide(self, seen: Observation) -> Decision | None:
        workers = seen.barrier
        known = [worker for worker in workers if worker.compute_s]
        if len(workers) < 2 or not known:
            return None
        fastest = min(known, key=lambda worker: worker.compute_s or math.inf)
        late = self._late(workers, fastest)
        k = max(len(workers) - len(late), math.ceil(len(workers) / 2))
        evicted = frozenset(worker.id for worker in seen.workers if not worker.is_member)
        strategy = Quorum(k) if k < len(workers) else BSP()
        return Decision(strategy, evicted, _reason(late, k, len(workers), seen))

    def _late(self, workers: list[WorkerView], fastest: WorkerView) -> list[WorkerView]:
        """The workers that are late, the latest first."""
        compute_s = fastest.compute_s or 0.0
        step_s = _busy_s(fastest) or compute_s

        def behind(worker: WorkerView) -> float:
            return (max(worker.silent_s, worker.latest_s or 0.0) - compute_s) / step_s

        late: list[WorkerView] = []
        for worker in sorted(workers, key=behind, reverse=True):
            few = len(late) < max(len(workers) // 4, 1)
            if behind(worker) <= (self.near if few else self.far):
                break
            late.append(worker)
        return late


def _reason(late: list[WorkerView], k: int, count: int, seen: Observation) -> str:
    ids = ", ".join(map(str, sorted(worker.id for worker in late)))
    who = f"worker{'s' * (len(late) > 1)} {ids} {'are' if len(late) > 1 else 'is'} late" if late else "nobody is late"
    blind = "" if any(worker.loss is not None for worker in seen.barrier) else "; no losses are reported"
    return f"{who}: a round waits for {k} of {count} (by waiting alone{blind})"


def _busy_s(worker: WorkerView) -> float | None:
    """Seconds of a worker's step without waiting."""
    if worker.iteration_s is None or worker.waiting_share is None:
        return None
    return worker.iteration_s * (1 - worker.waiting_share)
