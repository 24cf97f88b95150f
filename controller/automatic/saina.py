"""SAINA: k-of-n, whose k grows when training with the present k converges (Lee et al., "Straggler-Aware In-Network
Aggregation for Accelerating Distributed Deep Learning", IEEE Transactions on Services Computing 16(6), 2023).

Their switch adds up the gradients of the fastest k workers. When training has converged with that k, it takes another
k, to balance speed and accuracy. This follows the paper's abstract, which does not give the rule. Here training has
converged if the mean loss of the last ``window`` rounds is not lower by ``gain`` than that of as many rounds before.
Then k grows by one. In SAINA the others' gradients are lost; here they count when they arrive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from serene.controller.automatic.base import Automatic, Decision, Observation, expect, expect_period
from serene.controller.automatic.progress import mean_loss, mean_round
from serene.strategy import BSP, Quorum


@dataclass
class Saina(Automatic):
    """fewest: k at first, as a share of the workers. window: rounds whose mean losses are compared. gain: the share by
    which the loss has to fall from one window to the next. period: seconds between decisions."""

    fewest: float = 0.5
    window: int = 10
    gain: float = 0.02
    period: float = 1.0
    needs: ClassVar[tuple[str, ...]] = ("loss",)

    def __post_init__(self) -> None:
        expect("saina", "fewest", self.fewest, 0, 1)
        expect("saina", "window", self.window, 1, 1e6)
        expect("saina", "gain", self.gain, 0, 1)
        expect_period("saina", self.period)
        self.period_s = self.period
        self._more = 0  # workers beyond the first k
        self._losses: list[tuple[float, float]] = []  # round and mean loss, since k changed last

    def decide(self, seen: Observation) -> Decision | None:
        count, loss = len(seen.barrier), mean_loss(seen)
        if not count:
            return None
        if loss is not None:
            self._losses.append((mean_round(seen), loss))
        first = max(round(self.fewest * count), 1)
        why = "no worker reports its loss" if loss is None else "the loss falls"
        if self._converged() and first + self._more < count:
            self._more, self._losses = self._more + 1, []
            why = "the loss stopped falling"
        k = min(first + self._more, count)
        evicted = frozenset(worker.id for worker in seen.workers if not worker.is_member)
        return Decision(Quorum(k) if k < count else BSP(), evicted, f"{why}: a round waits for {k} of {count}")

    def _converged(self) -> bool:
        if not self._losses or self._losses[-1][0] - self._losses[0][0] < 2 * self.window:
            return False
        last = self._losses[-1][0]
        ages = [((last - at) // self.window, loss) for at, loss in self._losses]
        now, before = ([loss for age, loss in ages if age == wanted] for wanted in (0, 1))
        return bool(before) and sum(now) / len(now) > (1 - self.gain) * sum(before) / len(before)
