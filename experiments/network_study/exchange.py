"""What the methods have to do: exchange a gradient among all hosts of a network, through hosts alone or through our
switches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from serene.client.protocol.window import LARGEST_WINDOW
from serene.errors import SereneError
from serene.experiments.network_study.flows.clos import Clos, Ints
from serene.program import Program
from serene.wire import SERENE_FIELDS

SERVER_SHARE = 8  # one host in eight is a parameter server


class BadMethod(SereneError):
    """A method does not exist, or the network's size does not allow it; the message states what is valid."""


@dataclass(frozen=True)
class Exchange:
    """One exchange of a gradient of ``size`` bytes among all hosts of a network."""

    network: Clos
    size: float
    switch: SwitchSizes

    @property
    def hosts(self) -> Ints:
        """The nodes that are hosts, int64[hosts]."""
        return np.arange(self.network.hosts)

    @property
    def places(self) -> Ints:
        """Which host of a leaf has its special role (head, server), int64[leaves]: another one in each leaf and pod. If
        they were the same in all leaves, static routes by destination would use the same upper switch for all of
        them."""
        leaves = np.arange(self.network.leaves)
        pods = leaves // self.network.half if self.network.layers == 3 else 0
        return (leaves + pods) % self.network.half

    @property
    def heads(self) -> Ints:
        """The head of every leaf, int64[leaves]."""
        return np.arange(self.network.leaves) * self.network.half + self.places


HEADER_BYTES = 14 + 20 + 8 + sum(size for _, size in SERENE_FIELDS)  # Ethernet, IPv4, UDP, ours
VALUE_BYTES = 4


@dataclass(frozen=True)
class SwitchSizes:
    """``lanes``: values in a packet. ``slots``: how many packets' values the switch holds. ``window``: unanswered
    packets that a worker may have. A gradient with more values uses the slots in turn; a slot is free for the next part
    when its sum has been answered, so that slots limit a worker as its window does. Raises SereneError."""

    lanes: int
    slots: int
    window: int = LARGEST_WINDOW

    def __post_init__(self) -> None:
        for name in ("lanes", "slots", "window"):
            if getattr(self, name) < 1:
                raise SereneError(f"{name} {getattr(self, name)}; expected 1 or more")

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
