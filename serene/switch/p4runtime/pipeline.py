"""A P4Info and the program it describes, checked against each other, with look-ups by id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from finsy.proto import p4i

from serene.errors import choices
from serene.switch.p4runtime.status import Failure, invalid, not_found
from serene.switch.program import Program, Table

T = TypeVar("T")

MATCH_KINDS: Mapping[int, str] = {
    p4i.MatchField.EXACT: "exact",
    p4i.MatchField.LPM: "lpm",
    p4i.MatchField.TERNARY: "ternary",
    p4i.MatchField.RANGE: "range",
    p4i.MatchField.OPTIONAL: "optional",
}


class Schema:
    """The P4Info's objects by id. Raises INVALID_ARGUMENT where it does not fit the program."""

    def __init__(self, p4info: p4i.P4Info, program: Program) -> None:
        self.p4info = p4info
        self.program = program
        self.tables = {item.preamble.id: item for item in p4info.tables}
        self.actions = {item.preamble.id: item for item in p4info.actions}
        self.counters = {item.preamble.id: item for item in p4info.counters}
        self.direct_counters = {item.direct_table_id: item for item in p4info.direct_counters}
        self.meters = {item.preamble.id: item for item in p4info.meters}
        self.direct_meters = {item.direct_table_id: item for item in p4info.direct_meters}
        self.digests = {item.preamble.id: item for item in p4info.digests}
        self.digests_by_name = {item.preamble.name: item for item in p4info.digests}
        self.packet_in = self._controller_header("packet_in")
        self.packet_out = self._controller_header("packet_out")
        self._check()

    def _controller_header(self, name: str) -> list[tuple[int, str, int]]:
        for item in self.p4info.controller_packet_metadata:
            if item.preamble.name == name:
                return [(field.id, field.name, field.bitwidth) for field in item.metadata]
        return []

    def program_table(self, table: p4i.Table) -> Table:
        return self.program.tables[table.preamble.name]

    def action_name(self, action_id: int) -> str:
        return self.actions[action_id].preamble.name

    def table(self, id_: int) -> p4i.Table:
        return self._known(self.tables, id_, "table")

    def counter(self, id_: int) -> p4i.Counter:
        return self._known(self.counters, id_, "counter")

    def meter(self, id_: int) -> p4i.Meter:
        return self._known(self.meters, id_, "meter")

    def digest(self, id_: int) -> p4i.Digest:
        return self._known(self.digests, id_, "digest")

    @staticmethod
    def _known(items: Mapping[int, T], id_: int, what: str) -> T:
        if id_ not in items:
            names = (f"{key} ({item.preamble.name})" for key, item in items.items())  # type: ignore[attr-defined]
            raise not_found(f"there is no {what} {id_}; there are {choices(names) or 'none'}")
        return items[id_]

    # -- does it fit? ----------------------------------------------------------------------------------------

    def _check(self) -> None:
        for table in self.p4info.tables:
            self._check_table(table)
        program = self.program
        for what, items, known in (
            ("counter", self.p4info.counters, program.counters),
            ("direct counter", self.p4info.direct_counters, program.counters),
            ("meter", self.p4info.meters, program.meters),
            ("direct meter", self.p4info.direct_meters, program.meters),
            ("register", self.p4info.registers, program.registers),
            ("digest", self.p4info.digests, {name for name, _ in program.digests.values()}),
        ):
            self._check_names(what, items, known)
        for profile in self.p4info.action_profiles:
            raise _misfit(f"action profile {profile.preamble.name!r} is not in the program")

    @staticmethod
    def _check_names(what: str, items: Iterable[Any], known: Iterable[str]) -> None:
        names = set(known)
        for item in items:
            if item.preamble.name not in names:
                raise _misfit(f"{what} {item.preamble.name!r} is not in the program; it has {choices(sorted(names))}")

    def _check_table(self, table: p4i.Table) -> None:
        name = table.preamble.name
        program = self.program.tables.get(name)
        if program is None:
            raise _misfit(f"table {name!r} is not in the program; it has {choices(sorted(self.program.tables))}")
        given = [(field.name, field.bitwidth, MATCH_KINDS.get(field.match_type, "other")) for field in table.match_fields]
        held = [(key.name, key.width, "exact" if key.match_type == "valid" else key.match_type) for key in program.keys]
        if [item[1:] for item in given] != [item[1:] for item in held]:
            raise _misfit(f"table {name!r} matches on {given} in the P4Info and on {held} in the program")
        for reference in table.action_refs:
            action = self.actions.get(reference.id)
            label = action.preamble.name if action else str(reference.id)
            if action is None or label not in program.actions:
                raise _misfit(f"table {name!r}: action {label!r} is not the program's; it has {choices(program.actions)}")
            widths = [parameter.bitwidth for parameter in action.params]
            if widths != [parameter.width for parameter in program.actions[label].parameters]:
                raise _misfit(f"action {label!r}: its parameters differ between P4Info and program")


def _misfit(message: str) -> Failure:
    return invalid(f"the P4Info does not fit the program: {message}")
