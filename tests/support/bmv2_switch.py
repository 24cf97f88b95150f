"""BMv2 as the switch of a run in virtual time, which waits with every packet until BMv2 has processed it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from finsy.proto import p4r

from serene.entries import Entry, Group
from serene.program import Program
from tests.embedded.bmv2 import Bmv2


class Bmv2Switch:
    """A `VirtualSwitch` that is BMv2 with the P4 program ``serene``."""

    def __init__(self, folder: Path) -> None:
        program = Program.load("serene")
        self.lanes, self.slots = program.lanes, program.slots
        self._table: dict[tuple[str, tuple[int, ...]], Entry] = {}
        self._bmv2 = Bmv2(program.config_path, program.p4info_path, folder / "log")
        self._controller = self._bmv2.controller
        self._groups: set[int] = set()

    def close(self) -> None:
        self._bmv2.close()

    def process(self, packets: Sequence[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        return self._bmv2.process(packets)

    def put(self, entry: Entry) -> None:
        self._controller.write_entry(p4r.Update.MODIFY if self.has(entry) else p4r.Update.INSERT, entry)
        self._table[entry.key] = entry

    def delete(self, entry: Entry) -> None:
        self._controller.write_entry(p4r.Update.DELETE, entry)
        del self._table[entry.key]

    def has(self, entry: Entry) -> bool:
        return entry.key in self._table

    def entries(self) -> list[Entry]:
        return list(self._table.values())

    def set_group(self, group: Group) -> None:
        if group.number in self._groups:
            self._controller.delete_group(group.number)
        self._groups.add(group.number)
        self._controller.group(group.number, group.replicas)

    def count(self, counter: str, worker: int) -> int:
        return self._controller.count(counter, worker)
