"""DSSP: the staleness bound follows the workers' recent iteration times (Zhao et al., "Dynamic Stale Synchronous
Parallel Distributed Training for Deep Learning", ICDCS 2019).

Their server gives each fast worker a bound of its own, by predicting from the last iteration times after how many
further iterations its wait for the slowest worker would be shortest. Here the switch holds one bound for all, so the
prediction is made for the fastest worker, and the slowest's pace is its longest recent iteration: a bound that
bridges that one bridges the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from controller.automatic.base import Automatic, Observation, expect, expect_period
from serene.strategy import BSP, MAX_STALENESS, SSP, Strategy


@dataclass
class DSSP(Automatic):
    """low, high: the bounds of the staleness bound. tolerance: a longer wait that a smaller bound is worth, as a
    share of the fastest worker's iteration. period: seconds between decisions."""

    low: int = 0
    high: int = MAX_STALENESS
    tolerance: float = 0.25
    period: float = 1.0
    needs: ClassVar[tuple[str, ...]] = ("compute_s", "slowest_s")

    def __post_init__(self) -> None:
        expect("dssp", "high", self.high, 0, MAX_STALENESS)
        expect("dssp", "low", self.low, 0, self.high)
        expect("dssp", "tolerance", self.tolerance, 0, 100)
        expect_period("dssp", self.period)
        self.period_s = self.period

    def decide(self, seen: Observation) -> Strategy | None:
        fastest = min((worker.compute_s for worker in seen.barrier if worker.compute_s is not None), default=None)
        slowest = max((worker.slowest_s for worker in seen.barrier if worker.slowest_s is not None), default=None)
        if not fastest or not slowest:
            return None
        bound = self.bound(fastest, slowest)
        return SSP(bound) if bound else BSP()

    def bound(self, fastest_s: float, slowest_s: float) -> int:
        """The smallest bound whose predicted wait is as good as the shortest there is.

        Both workers push at time 0. The fastest, r iterations ahead, pushes again at r * fastest_s, and waits for the
        slowest one's next push, at a multiple of slowest_s.
        """
        waits = {bound: _until_next(slowest_s, (bound + 1) * fastest_s) for bound in range(self.low, self.high + 1)}
        enough = min(waits.values()) + self.tolerance * fastest_s
        return next(bound for bound, wait in waits.items() if wait <= enough)


def _until_next(period: float, time: float) -> float:
    """From a time to the next multiple of a period; a time that is one but for rounding counts as one."""
    wait = -time % period
    return 0.0 if period - wait < 1e-9 * period else wait
