"""Ranges of the switch's slots: each job gets the first contiguous range that is free."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SlotRange:
    """Slots ``first`` .. ``first + count - 1`` of the switch."""

    first: int
    count: int

    @property
    def end(self) -> int:
        return self.first + self.count


def free_ranges(total: int, taken: list[SlotRange]) -> list[SlotRange]:
    """The gaps between the taken ranges of ``total`` slots, lowest first."""
    gaps = []
    position = 0
    for used in sorted(taken, key=lambda used: used.first):
        if used.first > position:
            gaps.append(SlotRange(position, used.first - position))
        position = max(position, used.end)
    if position < total:
        gaps.append(SlotRange(position, total - position))
    return gaps


def first_fit(total: int, taken: list[SlotRange], count: int) -> SlotRange | None:
    """The lowest free range of ``count`` slots, or None when no gap is long enough."""
    for gap in free_ranges(total, taken):
        if gap.count >= count:
            return SlotRange(gap.first, count)
    return None
