"""DSSP: the staleness bound follows the workers' recent iteration times (Zhao et al., "Dynamic Stale Synchronous
Parallel Distributed Training for Deep Learning", ICDCS 2019).

Their server gives each fast worker its own bound. From the last iteration times it predicts the number of further
iterations after which the worker's wait for the slowest would be shortest. Here the switch has one bound for all, so
the prediction is made for the fastest worker. For the slowest worker it uses the longest recent iteration, so that the
bound is large enough for shorter ones, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from serene.controller.automatic.base import Automatic, Observation, expect, expect_period
from serene.strategy import BSP, MAX_STALENESS, SSP, Strategy


@dataclass
class DSSP(Automatic):
    """low, high: the smallest and the largest staleness bound. tolerance: the longer wait that is accepted for a
    smaller bound, as a share of the fastest worker's iteration. period: seconds between decisions."""

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
        """The smallest bound whose predicted wait is, within the tolerance, the shortest one. fastest_s, slowest_s:
        time of an iteration of the fastest and of the slowest worker, in seconds.

        Both contribute at time 0. With bound s the fastest contributes s + 1 more times, at last at
        (s + 1) * fastest_s, and then waits for the slowest one's next contribution, at a multiple of slowest_s.
        """
        waits = {bound: _until_next(slowest_s, (bound + 1) * fastest_s) for bound in range(self.low, self.high + 1)}
        enough = min(waits.values()) + self.tolerance * fastest_s
        return next(bound for bound, wait in waits.items() if wait <= enough)


def _until_next(period: float, time: float) -> float:
    """The time from ``time`` to the next multiple of ``period``; 0 where it is a multiple but for rounding."""
    wait = -time % period
    return 0.0 if period - wait < 1e-9 * period else wait
