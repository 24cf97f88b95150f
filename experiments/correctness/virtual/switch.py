"""The switch of a run: the compiled P4 program in this process, and what else can take its place.

Runs follow one another on one switch, as jobs do: a newer session is all it takes to begin from zero
(docs/protocol.md), so the program is loaded once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Protocol

from serene.program import Program
from serene.sim import entries
from serene.sim.entries import Entry, Host
from serene.sim.switch import ProgramSwitch

CPU_PORT = entries.CPU_PORT

Packets = list[tuple[int, bytes]]


class VirtualSwitch(Protocol):
    """What a run needs of a switch: frames in, frames out, and its table entries."""

    lanes: int
    slots: int
    table: dict[tuple[str, tuple[int, ...]], Entry]  # what is in force, by table and match

    def process(self, packets: Sequence[tuple[int, bytes]]) -> Packets:
        """Frames by port, one after the other; every frame that they cause, by port."""

    def put(self, entry: Entry) -> None:
        """Inserts it, or replaces the entry that has the same match."""

    def delete(self, entry: Entry) -> None:
        """The entry with this table and match."""

    def set_group(self, hosts: Mapping[int, Host], job: int = 0) -> None:
        """Who gets the copies of a release, by worker."""

    def set_ports(self, ports: Sequence[int]) -> None:
        """Where ordinary traffic goes."""


def has(switch: VirtualSwitch, entry: Entry) -> bool:
    """Whether it has an entry with this table and match."""
    return (entry.table, tuple(entry.match)) in switch.table


@cache
def frame_head(host: Host, payload_bytes: int) -> bytes:
    """Ethernet, IPv4 and UDP headers of what a host sends to the switch."""
    return host.frame_head(payload_bytes)


class P4Switch(ProgramSwitch):
    """The P4 program. It remembers its entries, as one reads them back from a switch."""

    def __init__(self, program: Program) -> None:
        self.table: dict[tuple[str, tuple[int, ...]], Entry] = {}
        super().__init__(program)
        self.lanes, self.slots = program.lanes, program.slots

    def insert(self, entry: Entry) -> None:
        super().insert(entry)
        self.table[entry.table, tuple(entry.match)] = entry

    def modify(self, entry: Entry) -> None:
        super().modify(entry)
        self.table[entry.table, tuple(entry.match)] = entry

    def delete(self, entry: Entry) -> None:
        super().delete(entry)
        del self.table[entry.table, tuple(entry.match)]

    def set_ports(self, ports: Sequence[int]) -> None:
        self.switch.multicast_set(entries.FLOOD_GROUP, [(port, 0) for port in ports])

    def process(self, packets: Sequence[tuple[int, bytes]]) -> Packets:
        return [packet for caused in self.switch.process_many(packets) for packet in caused]

    def bases(self, slots: int) -> list[int]:
        """Rounds of the present epoch that are complete, per slot."""
        return self.switch.register_read_all(self.names["base_of"], 0, slots)
