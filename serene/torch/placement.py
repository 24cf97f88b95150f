"""The racks of a process group's ranks, if the controller commands a tree of switches (docs/hierarchy.md).

In packets a rank has its number in its rack, and names its rack: in another rack the controller refuses it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from serene.errors import SereneError, choices
from serene.racks import Racks

RACK = "SERENE_RACK"  # the rack that a rank is in, from 0


class BadPlace(SereneError):
    """A rank that cannot be in the rack that it names."""


@dataclass(frozen=True)
class Placement:
    """racks: the rack of each rank of the group; empty with one switch. leaves: the number of racks."""

    racks: tuple[int, ...] = ()
    leaves: int = 1

    @property
    def sizes(self) -> list[int] | None:
        """The number of ranks in each rack; None with one switch."""
        return [self.racks.count(rack) for rack in range(self.leaves)] if self.racks else None

    def of(self, rank: int) -> tuple[int | None, int]:
        """A rank's rack (None with one switch), and its number in it. The ranks of a rack are numbered in order."""
        if not self.racks:
            return None, rank
        return self.racks[rank], self.racks[:rank].count(self.racks[rank])

    def ranks(self, size: int) -> list[int]:
        """The rank of each worker, by its number in the job."""
        return sorted(range(size), key=lambda rank: (self.racks[rank] if self.racks else 0, rank))

    def worker(self, rank: int) -> int:
        """A rank's number in the job, which counts the racks in order."""
        rack, place = self.of(rank)
        return place if rack is None else place + sum(other < rack for other in self.racks)


def own_rack(racks: int, rank: int, size: int) -> int:
    """The rack of this process: from $SERENE_RACK, else with all ranks divided evenly over the racks in order. rank,
    size: in the default group. Raises BadPlace or BadStrategy."""
    text = os.environ.get(RACK)
    if text is None:
        return Racks.even(size, min(size, racks)).place(rank)[0]
    if text not in map(str, range(racks)):
        raise BadPlace(f"${RACK} is {text!r}: expected {choices(range(racks))}")
    return int(text)
