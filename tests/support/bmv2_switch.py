"""BMv2 as the switch of a run in virtual time, which waits with every packet until BMv2 has processed it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from finsy.proto import p4r

from serene.program import Program
from serene.sim import entries
from serene.sim.entries import Entry, Host
from tests.switch.bmv2 import Bmv2


class Bmv2Switch:
    """A `VirtualSwitch` that is BMv2 with the P4 program ``serene``."""

    def __init__(self, folder: Path) -> None:
        program = Program.load("serene")
        self.lanes, self.slots = program.lanes, program.slots
        self.table: dict[tuple[str, tuple[int, ...]], Entry] = {}
        self._bmv2 = Bmv2(program.config_path, program.p4info_path, folder / "log")
        self._controller = self._bmv2.controller
        self._groups: set[int] = set()

    def close(self) -> None:
        self._bmv2.close()

    def process(self, packets: Sequence[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        return self._bmv2.process(packets)

    def put(self, entry: Entry) -> None:
        known = (entry.table, tuple(entry.match)) in self.table
        written = self._controller.entry(entry.table, entry.match, entry.action, entry.params)
        self._controller.write(p4r.Update.MODIFY if known else p4r.Update.INSERT, {"table_entry": written})
        self.table[entry.table, tuple(entry.match)] = entry

    def delete(self, entry: Entry) -> None:
        gone = self._controller.entry(entry.table, entry.match)
        self._controller.write(p4r.Update.DELETE, {"table_entry": gone})
        del self.table[entry.table, tuple(entry.match)]

    def set_group(self, hosts: Mapping[int, Host], job: int = 0) -> None:
        number = entries.JOB_GROUPS + job
        if number in self._groups:
            self._controller.delete_group(number)
        self._groups.add(number)
        self._controller.group(number, entries.replicas(hosts))

    def set_ports(self, ports: Sequence[int]) -> None:
        """Does nothing: the ports matter to ordinary traffic only, and virtual runs have none."""

    def count(self, counter: str, worker: int) -> int:
        return self._controller.counter(counter, worker)
