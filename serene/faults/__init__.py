"""Faults as data: loss, duplication, reordering and delay of packets, and processes that stop or restart."""

from serene.faults.links import Links, kind_of
from serene.faults.plan import KINDS, Action, BadFaults, Direction, Event, Faults, PacketFaults, uplink
from serene.faults.toml import load, parse

__all__ = [
    "KINDS",
    "Action",
    "BadFaults",
    "Direction",
    "Event",
    "Faults",
    "Links",
    "PacketFaults",
    "kind_of",
    "load",
    "parse",
    "uplink",
]
