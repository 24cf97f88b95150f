"""The switch of a run: the compiled P4 program in this process, and the interface that it shares with others.

The program is loaded once for many runs: as with jobs, a newer session is enough to begin from zero (docs/protocol.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Protocol

from serene.embedded import CounterValue
from serene.entries import Cell, Entry, Group, mac_text
from serene.program import Program
from serene.sim.hosts import Host
from serene.sim.switch import ProgramSwitch

Packets = list[tuple[int, bytes]]


class Traffic(Protocol):
    """What packets go through: one switch, or several."""

    lanes: int
    slots: int

    def process(self, packets: Sequence[tuple[int, bytes]]) -> Packets:
        """Processes (port, frame) pairs one after the other; returns all frames that come out, with their ports."""


class Plane(Traffic, Protocol):
    """The same with a controller."""

    @property
    def switches(self) -> Sequence[CommandedSwitch]:
        """Those that it commands."""


class VirtualSwitch(Traffic, Protocol):
    """What a run without a controller needs of a switch."""

    def put(self, entry: Entry) -> None:
        """Inserts an entry, or replaces the one that has the same match."""

    def delete(self, entry: Entry) -> None:
        """Deletes the entry that has this table and match."""

    def has(self, entry: Entry) -> bool:
        """Whether there is an entry with this table and match."""

    def entries(self) -> list[Entry]:
        """What was written and is there."""

    def set_group(self, group: Group) -> None: ...


class CommandedSwitch(VirtualSwitch, Protocol):
    """What the controller needs of it besides."""

    program: Program
    counters: Sequence[str]

    def packets(self, cell: Cell) -> int:
        """What a cell of a counter has counted."""

    def zero(self, cell: Cell) -> None:
        """Sets it to zero."""

    def learned(self) -> list[tuple[str, int]]:
        """Sources of ordinary frames that it did not know, since the last call: MAC address and port."""

    def restart(self) -> None:
        """Loses its entries, groups, registers and counters."""


@cache
def frame_head(host: Host, payload_bytes: int) -> bytes:
    """Ethernet, IPv4 and UDP headers of a frame from a host to the switch; cached, for most frames have the same."""
    return host.frame_head(payload_bytes)


class P4Switch(ProgramSwitch):
    """The P4 program."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._groups: set[int] = set()  # numbers of those that were set
        self.lanes, self.slots = program.lanes, program.slots
        self.counters: Sequence[str] = [
            name for name, full in self.names.items() if full in self.switch.program.counters
        ]

    @property
    def switches(self) -> Sequence[CommandedSwitch]:
        return [self]

    def process(self, packets: Sequence[tuple[int, bytes]]) -> Packets:
        return [packet for caused in self.switch.process_many(packets) for packet in caused]

    def packets(self, cell: Cell) -> int:
        return self.count(cell.counter, cell.index)

    def zero(self, cell: Cell) -> None:
        self.switch.counter_write(self.names[cell.counter], cell.index, CounterValue(0, 0))

    def learned(self) -> list[tuple[str, int]]:
        return [(mac_text(digest.values[0]), digest.values[1]) for digest in self.switch.poll_digests()]

    def set_group(self, group: Group) -> None:
        self._groups.add(group.number)
        super().set_group(group)

    def restart(self) -> None:
        for _, entry in list(self._held.values()):
            self.delete(entry)
        for number in self._groups:  # else it would flood what a host forged before it knows its own address
            self.set_group(Group(number))
        self.learned()
        known = self.switch.program
        for name, register in known.registers.items():
            self.switch.register_write(name, 0, 0, register.size)
        for name, counter in known.counters.items():
            self.switch.counter_write(name, 0, CounterValue(0, 0), counter.size)

    def bases(self, slots: int) -> list[int]:
        """Rounds of the present epoch that are complete, per slot."""
        return self.switch.register_read_all(self.names["base_of"], 0, slots)
