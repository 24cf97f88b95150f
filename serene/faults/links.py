"""What happens to a packet on a worker's link, decided here for all ways of running, without sockets and clock.

The same class decides in the shim between two interfaces and in the network of virtual time. Each link draws from a
random sequence of its own in each direction, the same number of draws for every packet: what happens to a link's
fifth packet does not depend on what the other links carry.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from serene.faults.plan import OTHER, RELEASE, Direction, Faults, PacketFaults
from serene.wire import ENCAPSULATION_BYTES, SERENE_UDP_PORT, Op

_PORT = SERENE_UDP_PORT.to_bytes(2, "big")
_OP, _SEQ = ENCAPSULATION_BYTES + 1, ENCAPSULATION_BYTES + 16  # offsets of the header's fields
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

    def fate(self, packet: bytes, worker: int, direction: Direction, now: float) -> list[tuple[float, bytes]]:
        """What the other end gets: (delay in seconds, packet), nothing if it is lost.

        ``now``: seconds since the beginning of the run.
        """
        draw = self._draws.get((worker, direction)) or self._stream(worker, direction)
        lost, twice, late, jitter, lateness = draw(), draw(), draw(), draw(), draw()
        self.carried += 1
        faults = self._decisive(worker, direction, kind_of(packet), now)
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

    def _stream(self, worker: int, direction: Direction) -> Callable[[], float]:
        # A text seeds the same sequence on every machine and in every process.
        draw = random.Random(f"{self._faults.seed}/{worker}/{direction.value}").random
        self._draws[worker, direction] = draw
        return draw

    def _decisive(self, worker: int, direction: Direction, kind: str, now: float) -> PacketFaults | None:
        key = worker, direction, kind
        if key not in self._fitting:
            self._fitting[key] = tuple(
                faults for faults in self._faults.packets if faults.fits(worker, direction, kind)
            )
        return next((faults for faults in self._fitting[key] if faults.start_s <= now < faults.end_s), None)
