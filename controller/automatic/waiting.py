"""Relaxes the strategy while the workers wait too much, and tightens it when they do not.

It needs no model of the workers: it measures the share of time that they wait, and moves the staleness bound up or down
a ladder. After a step down that it had to take back at once, the next step down takes twice the patience.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from serene.controller.automatic.base import Automatic, Observation, expect, expect_period
from serene.strategy import ASP, BSP, SSP, Strategy

LADDER: tuple[Strategy, ...] = (BSP(), SSP(1), SSP(2), SSP(4), SSP(8), SSP(15), ASP())
LONGEST_PATIENCE = 64  # decisions


@dataclass
class Waiting(Automatic):
    """above, below: shares of the time spent waiting, 0 to 1, above which it relaxes and below which it tightens.
    patience: decisions in a row that must be below before it tightens. asynchronous: whether the ladder ends with ASP.
    period: seconds between decisions."""

    above: float = 0.2
    below: float = 0.05
    patience: int = 5
    asynchronous: bool = False
    period: float = 1.0
    needs: ClassVar[tuple[str, ...]] = ("waiting_share",)

    def __post_init__(self) -> None:
        expect("waiting", "above", self.above, 0.01, 1)
        expect("waiting", "below", self.below, 0, self.above - 0.01)  # with equal bounds it would oscillate
        expect("waiting", "patience", self.patience, 1, LONGEST_PATIENCE)
        expect_period("waiting", self.period)
        self.period_s = self.period
        self._ladder = LADDER if self.asynchronous else LADDER[:-1]
        self._quiet = 0  # decisions in a row with little waiting
        self._needed = self.patience
        self._tightened = False  # by the last change

    def decide(self, seen: Observation) -> Strategy | None:
        share = seen.waiting_share
        if share is None or seen.since_swap_s < 2 * self.period_s:
            return None  # unknown, or perhaps measured under the previous strategy
        step = self._step(seen.strategy)
        if share > self.above and step + 1 < len(self._ladder):
            if self._tightened:
                self._needed = min(2 * self._needed, LONGEST_PATIENCE)
            self._quiet, self._tightened = 0, False
            return self._ladder[step + 1]
        self._quiet = self._quiet + 1 if share < self.below else 0
        if self._quiet >= self._needed and step > 0:
            self._quiet, self._tightened = 0, True
            return self._ladder[step - 1]
        return None

    def _step(self, strategy: Strategy) -> int:
        """The index of a strategy on the ladder; one that is not on it (quorum, mixed) counts as BSP."""
        if isinstance(strategy, SSP):
            steps = [
                step for step, rung in enumerate(self._ladder) if getattr(rung, "staleness", 0) <= strategy.staleness
            ]
            return max(step for step in steps if not isinstance(self._ladder[step], ASP))
        return self._ladder.index(strategy) if strategy in self._ladder else 0
