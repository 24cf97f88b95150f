"""After ADSP: nobody waits, unless the loss falls faster with waiting (Hu, Wang and Wu, "Distributed Machine Learning
through Heterogeneous Edge Systems", AAAI 2020).

In ADSP, workers train continuously, and all commit equally often. The number of commits per period is searched online:
it is raised while one more makes the loss fall faster. The reward is the speed of the loss's curve, fitted as
1 / (a t + b). Here a worker commits every iteration, so a staleness bound makes workers commit equally often, and a
smaller bound corresponds to more commits. Every ``epoch`` seconds bounds 15, 7, 3, 1 and 0 are tried for ``probe``
seconds each, while each is better than the last. The best one stays until the next search.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from serene.controller.automatic.base import LONGEST_PERIOD_S, Automatic, Decision, Observation, expect, expect_period
from serene.controller.automatic.progress import mean_loss, slope
from serene.strategy import BSP, SSP

BOUNDS = (15, 7, 3, 1, 0)


@dataclass
class Adsp(Automatic):
    """probe: seconds for which a bound is tried. epoch: seconds from one search to the next. period: seconds between
    decisions."""

    probe: float = 10.0
    epoch: float = 300.0
    period: float = 1.0
    needs: ClassVar[tuple[str, ...]] = ("loss",)

    def __post_init__(self) -> None:
        expect("adsp", "probe", self.probe, 0.1, LONGEST_PERIOD_S)
        expect("adsp", "epoch", self.epoch, self.probe, 1e6)
        expect_period("adsp", self.period)
        self.period_s = self.period
        self._began: float | None = None  # the search
        self._rewards: dict[int, float] = {}  # of bounds that have been tried in it
        self._points: list[tuple[float, float]] = []  # time, 1 / loss, of the bound that is being tried
        self._settled: int | None = None

    def decide(self, seen: Observation) -> Decision | None:
        if not seen.barrier:
            return None
        loss = mean_loss(seen)
        if loss is None or loss <= 0:
            return self._decision(seen, BOUNDS[0], "no worker reports its loss, so nobody waits")
        if self._began is None or seen.t - self._began >= self.epoch:
            self._began, self._rewards, self._points, self._settled = seen.t, {}, [], None
        if self._settled is None:
            self._points.append((seen.t, 1 / loss))
            if self._points[-1][0] - self._points[0][0] >= self.probe:
                self._rewards[BOUNDS[len(self._rewards)]] = slope(self._points)
                self._points, self._settled = [], self._found()
        if self._settled is not None:
            tried = ", ".join(f"{bound}: {reward:.3g}" for bound, reward in self._rewards.items())
            return self._decision(seen, self._settled, f"growth of 1/loss per second, by bound: {tried}")
        bound = BOUNDS[len(self._rewards)]
        return self._decision(seen, bound, f"bound {bound} is being tried")

    def _found(self) -> int | None:
        """The best bound, when a smaller one is no better or none is left; else None."""
        rewards = list(self._rewards.values())
        if len(rewards) > 1 and rewards[-1] <= rewards[-2]:
            return BOUNDS[len(rewards) - 2]
        return BOUNDS[-1] if len(rewards) == len(BOUNDS) else None

    @staticmethod
    def _decision(seen: Observation, bound: int, why: str) -> Decision:
        evicted = frozenset(worker.id for worker in seen.workers if not worker.is_member)
        return Decision(SSP(bound) if bound else BSP(), evicted, f"{why}: staleness bound {bound}")
