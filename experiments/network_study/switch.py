"""What our switch costs an exchange: headers, and how much may be in flight."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.network_study.flows.clos import Clos
from serene.client.window import LARGEST_WINDOW
from serene.errors import SereneError
from serene.program import Program
from serene.wire import SERENE_FIELDS

HEADER_BYTES = 14 + 20 + 8 + sum(size for _, size in SERENE_FIELDS)  # Ethernet, IPv4, UDP, ours
VALUE_BYTES = 4


class BadSwitch(SereneError):
    """Sizes that no switch has."""


@dataclass(frozen=True)
class SwitchSizes:
    """``lanes``: values in a packet. ``slots``: packets' worth of values that the switch holds. ``window``: packets
    that a worker may have unanswered. A gradient of more values than the slots hold goes through them in turns; a
    slot is free for its next part when its sum was answered, so slots limit a worker as its window does."""

    lanes: int
    slots: int
    window: int = LARGEST_WINDOW

    def __post_init__(self) -> None:
        for name in ("lanes", "slots", "window"):
            if getattr(self, name) < 1:
                raise BadSwitch(f"{name} {getattr(self, name)}; expected 1 or more")

    @classmethod
    def of(cls, program: Program) -> SwitchSizes:
        return cls(program.lanes, program.slots)

    @property
    def packet(self) -> int:
        """Bytes of a packet with its headers."""
        return HEADER_BYTES + self.lanes * VALUE_BYTES

    @property
    def overhead(self) -> float:
        """Bytes on the wire for each byte of values."""
        return self.packet / (self.lanes * VALUE_BYTES)

    def round_trip(self, network: Clos, links: int, switches: int) -> float:
        """Seconds from a packet's first bit out to its answer's last bit in, there and back over so many links and
        through so many switches, each of which stores and forwards."""
        return switches * network.switch_latency + links * self.packet / network.bandwidth

    def limit(self, network: Clos, links: int, switches: int) -> float:
        """Bytes/s on the wire that window and slots let a worker send."""
        return min(self.window, self.slots) * self.packet / self.round_trip(network, links, switches)
