"""Sync-Switch: BSP first, ASP later (Li et al., "Sync-Switch: Hybrid Parameter Synchronization for Distributed Deep
Learning", ICDCS 2021).

They find that training that begins synchronously and continues asynchronously ends with BSP's accuracy at nearly ASP's
speed. They also replace BSP by ASP while there is a straggler. This strategy has both rules. The time of the final
switch is a parameter, since a controller does not know the length of a job.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import ClassVar

from serene.controller.automatic.base import Automatic, Observation, expect, expect_period
from serene.strategy import ASP, BSP, Strategy


@dataclass
class SyncSwitch(Automatic):
    """after: iterations of the slowest worker under BSP before the final switch to ASP. straggler: a worker whose
    recent compute time exceeds this multiple of the median is a straggler. While there is one, ASP is in force. period:
    seconds between decisions."""

    after: int = 100
    straggler: float = 1.5
    period: float = 1.0
    needs: ClassVar[tuple[str, ...]] = ("compute_s",)

    def __post_init__(self) -> None:
        expect("sync-switch", "after", self.after, 0, 1e9)
        expect("sync-switch", "straggler", self.straggler, 1.01, 1000)
        expect_period("sync-switch", self.period)
        self.period_s = self.period
        self._synchronous = 0  # iterations of the slowest worker under BSP
        self._seen = 0  # its iterations at the last decision

    def decide(self, seen: Observation) -> Strategy | None:
        if not seen.barrier:
            return None
        slowest = min(worker.rounds for worker in seen.barrier)
        if seen.strategy == BSP():
            self._synchronous += max(slowest - self._seen, 0)
        self._seen = slowest
        if self._synchronous >= self.after or self._straggling(seen):
            return ASP()
        return BSP()

    def _straggling(self, seen: Observation) -> bool:
        times = [worker.compute_s for worker in seen.barrier if worker.compute_s is not None]
        return len(times) > 1 and max(times) > self.straggler * statistics.median(times)
