"""Decides which faults a packet gets on a worker's link or a rack's uplink. It needs neither sockets nor a clock.

The shim between two interfaces and the network of virtual time use the same class. Each link has its own random
sequence in each direction, with the same number of draws for every packet. So the faults of a link's fifth packet do
not depend on the other links' packets.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from serene.faults.plan import OTHER, RELEASE, Direction, Faults, PacketFaults
from serene.wire import ENCAPSULATION_BYTES, SERENE_UDP_PORT, Op

_PORT = SERENE_UDP_PORT.to_bytes(2, "big")
_OP, _SEQ = ENCAPSULATION_BYTES + 1, ENCAPSULATION_BYTES + 16  # byte offsets of the header's fields
_NAMES = {int(op): op.name for op in Op}


def kind_of(packet: bytes) -> str:
    """A frame's kind, one of ``KINDS``."""
    if packet[12:14] != b"\x08\x00" or packet[23:24] != b"\x11" or _PORT not in (packet[34:36], packet[36:38]):
        return OTHER
    name = _NAMES.get(packet[_OP] if len(packet) > _OP else 0, OTHER)
    return RELEASE if name == "ANSWER" and packet[_SEQ : _SEQ + 4] == bytes(4) else name


class Links:
    """The links of one run."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._draws: dict[tuple[int, Direction], Callable[[], float]] = {}
        self._fitting: dict[tuple[int, Direction, str], tuple[PacketFaults, ...]] = {}
        self.lost = self.duplicated = self.reordered = self.carried = 0

    def fate(self, packet: bytes, link: int, direction: Direction, now: float) -> list[tuple[float, bytes]]:
        """The copies that arrive at the other end, as (delay in seconds, packet); none if the packet is lost.

        ``link``: a worker, or ``uplink`` of a rack. ``now``: seconds since the beginning of the run.
        """
        draw = self._draws.get((link, direction)) or self._random_numbers(link, direction)
        lost, twice, late, jitter, lateness = draw(), draw(), draw(), draw(), draw()
        self.carried += 1
        faults = self._first_match(link, direction, kind_of(packet), now)
        if faults is None:
            return [(0.0, packet)]
        if lost < faults.loss:
            self.lost += 1
            return []
        delay = faults.delay_s
        if faults.jitter_s:
            delay -= faults.jitter_s * math.log(1.0 - jitter)
        behind = delay - faults.late_s * math.log(1.0 - lateness)
        if late < faults.reordering:
            self.reordered += 1
            delay = behind
        if twice < faults.duplication:
            self.duplicated += 1
            return [(delay, packet), (behind, packet)]
        return [(delay, packet)]

    def _random_numbers(self, link: int, direction: Direction) -> Callable[[], float]:
        # The seed is a text, so that the sequence is the same on every machine and in every process.
        draw = random.Random(f"{self._faults.seed}/{link}/{direction.value}").random
        self._draws[link, direction] = draw
        return draw

    def _first_match(self, link: int, direction: Direction, kind: str, now: float) -> PacketFaults | None:
        key = link, direction, kind
        if key not in self._fitting:
            self._fitting[key] = tuple(faults for faults in self._faults.packets if faults.fits(link, direction, kind))
        return next((faults for faults in self._fitting[key] if faults.start_s <= now < faults.end_s), None)
