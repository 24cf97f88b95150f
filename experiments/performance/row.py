"""A row of `make bench`: a measurement, its peer's, and how both are printed."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

LEAST_OF_A_SPREAD = 3  # samples, for which a spread is shown
HEAD = ["work", "unit", "ours", "spread", "peer", "spread", "limit", "ratio", "target", "the peer"]

Samples = tuple[float, ...]


@dataclass(frozen=True)
class Row:
    """A measurement and its peer's. ours, peer: one number for each repeat, in ``unit``. limit: what no program can
    beat, in ``unit``: for an exchange, the time that its values alone, without headers, take over one link.

    less: whether less is better. bar: the least ratio that we want. most: the largest number that we want, in ``unit``.
    missing: why there is no measurement.
    """

    work: str
    unit: str
    less: bool
    bar: float | None
    ours: Samples = ()
    peer: Samples = ()
    peer_name: str = ""
    limit: float | None = None
    most: float | None = None
    missing: str = ""

    @property
    def ratio(self) -> float | None:
        """How many times better than the peer, by the medians; None without a measurement of both."""
        if not self.ours or not self.peer:
            return None
        ours, peer = statistics.median(self.ours), statistics.median(self.peer)
        return peer / ours if self.less else ours / peer

    def cells(self) -> list[str]:
        """The row as text, in the order of HEAD."""
        ours, peer = (
            ("", "") if self.missing else (self.middle(each), _spread(each)) for each in (self.ours, self.peer)
        )
        limit = self.number(self.limit) if self.limit and not self.missing else ""
        ratio = "" if self.ratio is None or self.missing else f"{self.ratio:.2f}"
        unit = "time" if self.unit == "s" and not self.missing else self.unit
        return [self.work, unit, *ours, *peer, limit, ratio, self.target(), self.missing or self.peer_name]

    def number(self, value: float) -> str:
        """A number in ``unit``; seconds as milliseconds."""
        if self.unit == "s":
            return f"{value * 1e3:,.2f} ms"
        return f"{value / 1e6:,.2f} M" if value >= 1e6 else f"{value:,.0f}"

    def middle(self, samples: Samples) -> str:
        """The median; empty without samples."""
        return self.number(statistics.median(samples)) if samples else ""

    def target(self) -> str:
        """The least ratio and the longest time that we want, and which of them are missed; empty without a target."""
        wanted = []
        if self.bar is not None:
            missed = self.ratio is not None and self.ratio < self.bar
            wanted.append(f"{self.bar:g}{' missed' if missed else ''}")
        if self.most is not None:
            missed = bool(self.ours) and statistics.median(self.ours) > self.most
            wanted.append(f"{self.most * 1e3:g} ms{' missed' if missed else ''}")
        return ", ".join(wanted)


def _spread(samples: Samples) -> str:
    """The least and the largest sample, in percent of the median above it; empty if there are too few samples."""
    if len(samples) < LEAST_OF_A_SPREAD:
        return ""
    middle = statistics.median(samples)
    return f"{100 * (min(samples) / middle - 1):+.0f} {100 * (max(samples) / middle - 1):+.0f} %"
