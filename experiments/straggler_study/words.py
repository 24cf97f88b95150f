"""The answer in sentences: which words they have is decided by the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.straggler_study.names import percent
from experiments.straggler_study.study import Spread

SAME = 0.03  # a change below this is none that anybody would notice


def change(spread: Spread) -> str:
    """A change of a time in words: "saves 63 % (60 to 65)", "takes 12 % more", "changes nothing"; with what the seeds
    say."""
    if not spread.count:
        return "was not measured"
    if not np.isfinite(spread.middle):
        return "does not get there"
    low, middle, high = (100 * value for value in (spread.low, spread.middle, spread.high))
    signed = f" ({low:+.0f} to {f'{high:+.0f} %' if np.isfinite(high) else 'never'})" if spread.count > 1 else ""
    if abs(spread.middle) < SAME:
        return f"changes nothing to speak of{signed}"
    if not decided(spread):
        size = f"{'saves' if middle < 0 else 'costs'} {abs(middle):.0f} %"
        return f"{size}, but the seeds do not agree{signed}"
    if middle < 0:
        return f"saves {-middle:.0f} %" + (f" ({-high:.0f} to {-low:.0f})" if spread.count > 1 else "")
    return f"takes {middle:.0f} % more" + (f" ({low:.0f} to {high:.0f})" if spread.count > 1 else "")


def decided(spread: Spread) -> bool:
    """Whether all seeds say that it is less, or all that it is more."""
    return bool(spread.count) and (spread.high < 0 or spread.low > 0)


def less(spread: Spread) -> bool:
    """Less time, by every seed, and enough to be noticed."""
    return decided(spread) and spread.middle <= -SAME


@dataclass(frozen=True)
class Answer:
    """Changes of the time to the target, by the exchange's share of a step.

    switch, gloo: BSP through the embedded switch against one parameter server's BSP, and against gloo's all-reduce.
    hybrid: SSP(10) against BSP, both through the embedded switch. bmv2: the same on BMv2.
    """

    target: float
    switch: Mapping[float, Spread]
    gloo: Mapping[float, Spread]
    hybrid: Mapping[float, Spread]
    bmv2: Mapping[float, Spread]

    def sentences(self) -> list[str]:
        return [self._network(), self._stragglers(), self._both()]

    def _network(self) -> str:
        instead = (
            f"Of the time to an accuracy of {self.target:.2f}, adding the gradients up in the switch instead of in one "
            "parameter server"
        )
        return f"{instead} {_by_share(self.switch)}; instead of by gloo's all-reduce it {_by_share(self.gloo)}."

    def _stragglers(self) -> str:
        hybrid = "Letting workers run up to ten rounds ahead of a slow one (SSP(10) instead of BSP, same switch)"
        on_bmv2 = f"; on BMv2 it {_by_share(self.bmv2)}" if any(each.count for each in self.bmv2.values()) else ""
        return f"{hybrid} {_by_share(self.hybrid)}{on_bmv2}."

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
    """The largest share first, which says what the shares are of."""
    told: list[str] = []
    for share in sorted(found, reverse=True):
        where = percent(share) if told else f"where the exchange takes {percent(share)} of a step"
        told.append(f"{change(found[share])} {'at ' if told else ''}{where}")
    return _list(told)


def _list(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
