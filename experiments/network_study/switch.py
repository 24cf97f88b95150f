"""The sizes of our switch that an exchange's time depends on: headers, and how much may be in flight."""

from __future__ import annotations

from dataclasses import dataclass

from serene.client.protocol.window import LARGEST_WINDOW
from serene.errors import SereneError
from serene.experiments.network_study.flows.clos import Clos
from serene.program import Program
from serene.wire import SERENE_FIELDS

HEADER_BYTES = 14 + 20 + 8 + sum(size for _, size in SERENE_FIELDS)  # Ethernet, IPv4, UDP, ours
VALUE_BYTES = 4


class BadSwitch(SereneError):
    """A size is below 1."""


@dataclass(frozen=True)
class SwitchSizes:
    """``lanes``: values in a packet. ``slots``: how many packets' values the switch holds. ``window``: unanswered
    packets that a worker may have. A gradient with more values uses the slots in turn; a slot is free for the next part
    when its sum has been answered, so that slots limit a worker as its window does. Raises BadSwitch."""

    lanes: int
    slots: int
    window: int = LARGEST_WINDOW

    def __post_init__(self) -> None:
        for name in ("lanes", "slots", "window"):
            if getattr(self, name) < 1:
                raise BadSwitch(f"{name} {getattr(self, name)}; expected 1 or more")

    @classmethod
    def of(cls, program: Program) -> SwitchSizes:
        """The sizes of a compiled program, with the largest window."""
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
        """Seconds from the first bit of a packet that is sent to the last bit of its answer, over so many links and
        through so many store-and-forward switches, both ways together."""
        return switches * network.switch_latency + links * self.packet / network.bandwidth

    def limit(self, network: Clos, links: int, switches: int) -> float:
        """The rate at which window and slots let a worker send, in bytes/s on the wire."""
        return min(self.window, self.slots) * self.packet / self.round_trip(network, links, switches)
