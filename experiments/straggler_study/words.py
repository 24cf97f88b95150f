"""The answer in sentences: which words they have is decided by the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.straggler_study.names import percent
from experiments.straggler_study.study import Spread

SAME = 0.03  # a change below this is none that anybody would notice


def change(spread: Spread) -> str:
    """A change of a time as a reader says it: "63 % less", "12 % more", "the same"; with what the seeds say."""
    if not spread.count:
        return "not measured"
    if not np.isfinite(spread.middle):
        return "without end (the accuracy is not reached)"
    high = f"{100 * spread.high:+.0f}" if np.isfinite(spread.high) else "never"
    seeds = f" [{100 * spread.low:+.0f}, {high}]"
    if abs(spread.middle) < SAME:
        return f"the same within {100 * SAME:.0f} %{seeds}"
    size = f"{100 * abs(spread.middle):.0f} % {'less' if spread.middle < 0 else 'more'}{seeds}"
    return size if decided(spread) else f"{size}, which the seeds do not agree on"


def decided(spread: Spread) -> bool:
    """Whether all seeds say that it is less, or all that it is more."""
    return bool(spread.count) and (spread.high < 0 or spread.low > 0)


def less(spread: Spread) -> bool:
    """Less time, by every seed, and enough to be noticed."""
    return decided(spread) and spread.middle <= -SAME


@dataclass(frozen=True)
class Answer:
    """Changes of the time to the target, by the exchange's share of a step.

    switch: BSP through the embedded switch against BSP through one parameter server; gloo: against gloo's all-reduce.
    hybrid: SSP(10) against BSP, both through the embedded switch. bmv2: the same on BMv2.
    """

    target: float
    switch: Mapping[float, Spread]
    sharded: Mapping[float, Spread]
    gloo: Mapping[float, Spread]
    hybrid: Mapping[float, Spread]
    bmv2: Mapping[float, Spread]

    def sentences(self) -> list[str]:
        return [self._network(), self._stragglers(), self._both()]

    def _network(self) -> str:
        return (
            f"Until the accuracy of {self.target:.2f}, adding the gradients up in the switch takes "
            f"{_by_share(self.switch)} time than one parameter server does; against gloo's all-reduce it is "
            f"{_by_share(self.gloo)}, against servers sharded over the workers {_by_share(self.sharded)}."
        )

    def _stragglers(self) -> str:
        begun = "Letting workers run up to ten rounds ahead of a slow one (SSP(10) instead of BSP, same switch) takes "
        on_bmv2 = f"; on BMv2 it is {_by_share(self.bmv2)}" if any(each.count for each in self.bmv2.values()) else ""
        return f"{begun}{_by_share(self.hybrid)} time{on_bmv2}."

    def _both(self) -> str:
        """Where which of the two is worth more."""
        network = [share for share in self._shares if self._larger(self.switch, self.hybrid, share)]
        barrier = [share for share in self._shares if self._larger(self.hybrid, self.switch, share)]
        neither = [share for share in self._shares if share not in network and share not in barrier]
        parts = [
            f"{what} where the exchange takes {_list([percent(share) for share in shares])} of a step"
            for what, shares in (
                ("the switch is worth more than the strategy", network),
                ("the strategy is worth more than the switch", barrier),
                ("neither is clearly worth more than the other", neither),
            )
            if shares
        ]
        return f"So, against one parameter server, {'; '.join(parts)}."

    @property
    def _shares(self) -> Sequence[float]:
        return sorted(self.hybrid, reverse=True)

    @staticmethod
    def _larger(one: Mapping[float, Spread], other: Mapping[float, Spread], share: float) -> bool:
        """Saves time by every seed, and more than the other does."""
        mine, theirs = one[share], other[share]
        return less(mine) and (not less(theirs) or mine.middle < theirs.middle - SAME)


def _by_share(found: Mapping[float, Spread]) -> str:
    """ "63 % less where the exchange is 65 % of a step, ..."; the largest share first."""
    return _list([f"{change(found[share])} (exchange {percent(share)})" for share in sorted(found, reverse=True)])


def _list(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
