"""The switch of a run: the compiled P4 program in this process, and the interface that it shares with others.

The program is loaded once for many runs: as with jobs, a newer session is enough to begin from zero (docs/protocol.md).
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
    """What a run needs of a switch. table: its entries, by the table's name and the match."""

    lanes: int
    slots: int
    table: dict[tuple[str, tuple[int, ...]], Entry]

    def process(self, packets: Sequence[tuple[int, bytes]]) -> Packets:
        """Processes (port, frame) pairs one after the other; returns all frames that come out, with their ports."""

    def put(self, entry: Entry) -> None:
        """Inserts an entry, or replaces the one that has the same match."""

    def delete(self, entry: Entry) -> None:
        """Deletes the entry that has this table and match."""

    def set_group(self, hosts: Mapping[int, Host], job: int = 0) -> None:
        """Sets the multicast group of a job's releases. hosts: by worker."""

    def set_ports(self, ports: Sequence[int]) -> None:
        """Sets the ports that ordinary traffic is flooded to."""


def has(switch: VirtualSwitch, entry: Entry) -> bool:
    """Whether it has an entry with this table and match."""
    return (entry.table, tuple(entry.match)) in switch.table


@cache
def frame_head(host: Host, payload_bytes: int) -> bytes:
    """Ethernet, IPv4 and UDP headers of a frame from a host to the switch; cached, for most frames have the same."""
    return host.frame_head(payload_bytes)


class P4Switch(ProgramSwitch):
    """The P4 program, with its entries in ``table``, where a controller that takes over reads them."""

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
