"""The study's answer in sentences, whose words are chosen by the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from serene.experiments.straggler_study.names import percent
from serene.experiments.straggler_study.study import Spread

SAME = 0.03  # a relative change below this counts as none


def change(spread: Spread) -> str:
    """A change of a time in words, with the spread over the seeds: "saves 63 % (60 to 65)", "takes 12 % more"."""
    if not spread.count:
        return "was not measured"
    if not np.isfinite(spread.middle):
        return "does not get there"
    low, middle, high = (100 * value for value in (spread.low, spread.middle, spread.high))
    if spread.bounds:  # only the run that it is compared with never reached the target
        return f"saves at least {-middle:.0f} %" if middle < 0 else f"takes at most {middle:.0f} % more"
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
    """Whether a number became less with all seeds, or more with all seeds."""
    return bool(spread.count) and (spread.high < 0 or (spread.low > 0 and not spread.bounds))


def less(spread: Spread) -> bool:
    """Whether a time became less with all seeds, by SAME or more."""
    return decided(spread) and spread.middle <= -SAME


@dataclass(frozen=True)
class Through:
    """Changes of the time to the target through one kind of switch, by the exchange's share of a step.

    server, gloo: its BSP against one parameter server's BSP, and against gloo's all-reduce. hybrid: its SSP(10) against
    its BSP.
    """

    switch: str
    server: Mapping[float, Spread]
    gloo: Mapping[float, Spread]
    hybrid: Mapping[float, Spread]

    def worth_more(self) -> str:
        """At which shares the switch is worth more than the strategy, and at which the strategy is, in words."""
        places: dict[str, list[float]] = {}
        for share in sorted(self.hybrid, reverse=True):
            places.setdefault(self._worth_more(share), []).append(share)
        parts = [f"{what} at {_list([percent(share) for share in shares])}" for what, shares in places.items()]
        return f"on {self.switch} {'; '.join(parts)}"

    def _worth_more(self, share: float) -> str:
        server, hybrid = self.server[share], self.hybrid[share]
        if not (server.count and hybrid.count):
            return "it was not measured"
        if _saves_more(server, hybrid):
            return "the switch is worth more than the strategy"
        if _saves_more(hybrid, server):
            return "the strategy is worth more than the switch"
        return "neither is clearly worth more than the other"


def _saves_more(one: Spread, other: Spread) -> bool:
    """Whether one change saves time with all seeds, and clearly more than the other."""
    return less(one) and not other.bounds and (not less(other) or one.middle < other.middle - SAME)


@dataclass(frozen=True)
class Answer:
    """The study's answer. target: the accuracy to reach. switches: the changes through each kind of switch."""

    target: float
    switches: Sequence[Through]

    def sentences(self) -> list[str]:
        """The answer: what the switch saves, what the strategy saves, and which is worth more."""
        return [self._network(), self._stragglers(), self._both()]

    def _network(self) -> str:
        first = f"Of the time to an accuracy of {self.target:.2f}, adding the gradients up in the switch:"
        parts = [
            f"on {each.switch}, instead of in one parameter server, it {_by_share(each.server)}; instead of by gloo's "
            f"all-reduce it {_by_share(each.gloo)}"
            for each in self.switches
        ]
        return f"{first} {'. '.join(part[0].upper() + part[1:] for part in parts)}."

    def _stragglers(self) -> str:
        hybrid = "Letting workers run up to ten rounds ahead of a slow one (SSP(10) instead of BSP, same switch)"
        parts = [f"on {each.switch} {_by_share(each.hybrid)}" for each in self.switches]
        return f"{hybrid} {'; '.join(parts)}."

    def _both(self) -> str:
        """At which shares the switch is worth more, and at which the strategy."""
        parts = [each.worth_more() for each in self.switches]
        return f"So, against one parameter server, by the exchange's share of a step: {'; and '.join(parts)}."


def _by_share(found: Mapping[float, Spread]) -> str:
    """Changes by share, from the largest on; with the first one it is said what they are shares of."""
    told: list[str] = []
    for share in sorted(found, reverse=True):
        where = percent(share) if told else f"where the exchange takes {percent(share)} of a step"
        told.append(f"{change(found[share])} {'at ' if told else ''}{where}")
    return _list(told)


def _list(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
