"""A P4Info and the program that it describes, checked against each other, with lookups by id."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from finsy.proto import p4i, p4r

from serene.embedded.p4runtime.datatypes import Types
from serene.embedded.p4runtime.status import Failure, invalid
from serene.embedded.p4runtime.translation import Translation
from serene.embedded.program.ir import ActionProfile, Array, Program, Table
from serene.errors import choices

T = TypeVar("T")

_UNNAMED = re.compile(r"digest_\d+")  # p4c's name of a digest whose type has none
MATCH_KINDS: Mapping[int, str] = {
    p4i.MatchField.EXACT: "exact",
    p4i.MatchField.LPM: "lpm",
    p4i.MatchField.TERNARY: "ternary",
    p4i.MatchField.RANGE: "range",
    p4i.MatchField.OPTIONAL: "optional",
}


class Schema:
    """The P4Info's objects by id, with the program's widths for translated types. ``ports`` are the names of the
    switch's ports. Raises INVALID_ARGUMENT if the P4Info does not fit the program."""

    def __init__(self, p4info: p4i.P4Info, program: Program, ports: Mapping[str, int] | None = None) -> None:
        self.translation = Translation(p4info, program, ports or {})
        self.p4info = p4info = self.translation.p4info
        self.program = program
        self.types = Types(p4info, program, self.translation)
        self.tables: dict[int, p4i.Table] = _by_id(p4info.tables, "table")
        self.actions: dict[int, p4i.Action] = _by_id(p4info.actions, "action")
        self.counters: dict[int, p4i.Counter] = _by_id(p4info.counters, "counter")
        self.direct_counters = {item.direct_table_id: item for item in p4info.direct_counters}
        self.meters: dict[int, p4i.Meter] = _by_id(p4info.meters, "meter")
        self.direct_meters = {item.direct_table_id: item for item in p4info.direct_meters}
        self.registers: dict[int, p4i.Register] = _by_id(p4info.registers, "register")
        self.profiles: dict[int, p4i.ActionProfile] = _by_id(p4info.action_profiles, "action profile")
        self.value_sets: dict[int, p4i.ValueSet] = _by_id(p4info.value_sets, "value set")
        self.digests: dict[int, p4i.Digest] = _by_id(p4info.digests, "digest")
        self.digest_names = self._digest_names()
        self._removed = self._leave_out_removed()
        self._check()

    def program_table(self, table: p4i.Table) -> Table:
        return self.program.tables[table.preamble.name]

    def action_name(self, action_id: int) -> str:
        return str(self.actions[action_id].preamble.name)

    def table(self, id_: int) -> p4i.Table:
        return _known(self.tables, id_, "table")

    def counter(self, id_: int) -> p4i.Counter:
        return _known(self.counters, id_, "counter")

    def meter(self, id_: int) -> p4i.Meter:
        return _known(self.meters, id_, "meter")

    def register(self, id_: int) -> p4i.Register:
        return _known(self.registers, id_, "register")

    def value_set(self, id_: int) -> p4i.ValueSet:
        return _known(self.value_sets, id_, "value set")

    def profile(self, id_: int) -> p4i.ActionProfile:
        return _known(self.profiles, id_, "action profile")

    def program_profile(self, profile: p4i.ActionProfile) -> ActionProfile:
        return self.program.action_profiles[profile.preamble.name]

    def digest(self, id_: int) -> p4i.Digest:
        return _known(self.digests, id_, "digest")

    # -- the same as in another program? ---------------------------------------------------------------------

    def check_same(self, old: Schema, entity: p4r.Entity) -> None:
        """Raises INVALID_ARGUMENT if an id in the old program's entities means another object in this program."""
        kind = str(entity.WhichOneof("entity"))
        known: dict[str, tuple[str, str, Mapping[int, Any], Mapping[int, Any]]] = {
            "action_profile_member": ("action profile", "action_profile_id", self.profiles, old.profiles),
            "action_profile_group": ("action profile", "action_profile_id", self.profiles, old.profiles),
            "meter_entry": ("meter", "meter_id", self.meters, old.meters),
            "value_set_entry": ("value set", "value_set_id", self.value_sets, old.value_sets),
            "digest_entry": ("digest", "digest_id", self.digests, old.digests),
        }
        if kind not in known:
            return  # multicast groups and clone sessions do not belong to a program
        what, field, objects, others = known[kind]
        id_ = getattr(getattr(entity, kind), field)
        names = [_known(held, id_, what).preamble.name for held in (others, objects)]
        if names[0] != names[1]:
            raise invalid(f"{what} {id_} is {names[0]!r} in the old program and {names[1]!r} in the new one")
        if kind == "action_profile_member":
            self.check_same_action(old, entity.action_profile_member.action.action_id)

    def check_same_table(self, old: Schema, id_: int) -> None:
        """As ``check_same``, for a table with entries: match fields and parameters are identified by their ids."""
        self.check_same_key(old, id_)
        for reference in old.table(id_).action_refs:
            self.check_same_action(old, reference.id)

    def check_same_key(self, old: Schema, id_: int) -> None:
        was, is_ = old.table(id_), self.table(id_)
        fields = [[(field.id, field.name) for field in table.match_fields] for table in (was, is_)]
        if was.preamble.name != is_.preamble.name or fields[0] != fields[1]:
            raise _other(f"table {id_}", was, fields[0], is_, fields[1])

    def check_same_action(self, old: Schema, id_: int) -> None:
        was, is_ = old.actions.get(id_), self.actions.get(id_)
        if was is None or is_ is None:
            return  # refused when it is used
        params = [[(param.id, param.name) for param in action.params] for action in (was, is_)]
        if was.preamble.name != is_.preamble.name or params[0] != params[1]:
            raise _other(f"action {id_}", was, params[0], is_, params[1])

    # -- does it fit? ----------------------------------------------------------------------------------------

    def _leave_out_removed(self) -> set[int]:
        """Leaves out what p4c describes in the P4Info and then removes from the program: tables that no packet reaches,
        or without match fields, as it calls their actions directly; and action profiles that no table uses. Returns the
        ids of these tables. If the P4Info lacks a table of the program, it is another program's: then it may not have
        further tables with match fields."""
        held, names = self.program.tables, {table.preamble.name for table in self.tables.values()}
        complete = all(name in names for name, table in held.items() if table.keys)
        removed = {
            id_
            for id_, table in self.tables.items()
            if table.preamble.name not in held and (complete or not table.match_fields)
        }
        self.tables = {id_: table for id_, table in self.tables.items() if id_ not in removed}
        self.profiles = {
            id_: profile
            for id_, profile in self.profiles.items()
            if not removed.issuperset(profile.table_ids) or profile.preamble.name in self.program.action_profiles
        }
        return removed

    def _check(self) -> None:
        program = self.program
        for table in self.tables.values():
            self._check_table(table)
        for profile in self.profiles.values():
            self._check_profile(profile)
        for value_set in self.p4info.value_sets:
            name, bits = value_set.preamble.name, sum(field.bitwidth for field in value_set.match)
            _check_name("value set", name, program.value_sets)
            if bits != program.value_sets[name]:
                raise _mismatch(
                    f"value set {name!r} has {bits} bits in the P4Info and {program.value_sets[name]} in the program"
                )
        _check_arrays("counter", self.p4info.counters, program.counters)
        _check_arrays("meter", self.p4info.meters, program.meters)
        _check_arrays("register", self.p4info.registers, program.registers)
        self._check_direct("direct counter", self.p4info.direct_counters, program.counters)
        self._check_direct("direct meter", self.p4info.direct_meters, program.meters)
        for digest in self.p4info.digests:
            self._check_digest(digest)

    def _check_table(self, table: p4i.Table) -> None:
        name = table.preamble.name
        _check_name("table", name, self.program.tables)
        program = self.program.tables[name]
        given = [(field.bitwidth, MATCH_KINDS.get(field.match_type, "other")) for field in table.match_fields]
        held = [(key.width, "exact" if key.match_type == "valid" else key.match_type) for key in program.keys]
        if _as_in_json(given) != _as_in_json(held):
            raise _mismatch(
                f"table {name!r} matches on {_keys(given)} in the P4Info and on {_keys(held)} in the program"
            )
        profile = self.profiles.get(table.implementation_id)
        if (profile.preamble.name if profile else None) != program.profile:
            raise _mismatch(
                f"table {name!r} has the action profile {program.profile!r} in the program, not in the P4Info"
            )
        for reference in table.action_refs:
            action = self.actions.get(reference.id)
            label = action.preamble.name if action else str(reference.id)
            if action is None or label not in program.actions:
                names = choices(program.actions)
                raise _mismatch(f"table {name!r}: action {label!r} is not one of the program's, which are {names}")
            widths = [parameter.bitwidth for parameter in action.params]
            expected = [parameter.width for parameter in program.actions[label].parameters]
            if widths != expected:
                raise _mismatch(
                    f"action {label!r} takes parameters of {_bits(widths)} in the P4Info "
                    f"and of {_bits(expected)} in the program"
                )

    def _check_profile(self, profile: p4i.ActionProfile) -> None:
        name = profile.preamble.name
        _check_name("action profile", name, self.program.action_profiles)
        held = self.program.action_profiles[name]
        if profile.with_selector != (held.selector is not None):
            raise _mismatch(f"action profile {name!r} has a selector only in the P4Info or only in the program")
        if profile.size != held.size:
            raise _mismatch(
                f"action profile {name!r} has {profile.size} members in the P4Info and {held.size} in the program"
            )

    def _check_direct(self, what: str, items: Iterable[Any], arrays: Mapping[str, Array]) -> None:
        for item in items:
            name = item.preamble.name
            if item.direct_table_id in self._removed:
                continue
            _check_name(what, name, arrays)
            table = self.tables.get(item.direct_table_id)
            if table is None or table.preamble.name != arrays[name].direct_table:
                label = table.preamble.name if table else item.direct_table_id
                raise _mismatch(f"{what} {name!r} belongs to table {arrays[name].direct_table!r}, not {label!r}")

    def _check_digest(self, digest: p4i.Digest) -> None:
        name = digest.preamble.name
        lists = [id_ for id_, known in self.digest_names.items() if known == name]
        if not lists and len(self.digest_names) < len(self.program.digests):  # or else p4c has removed its call
            _check_name("digest", name, {held for held, _ in self.program.digests.values()})
        for id_ in lists:
            self.types.check_digest(digest, self.program.digests[id_][1])

    def _digest_names(self) -> dict[int, str]:
        """The P4Info's name of each list of digests in the program.

        Digests of structs have one name in both. p4c calls others, such as those of tuples, ``digest_0`` and so on in
        the P4Info, one for each call. In the program those of one type are all called ``tuple_0``, say. So a call's
        list is the first one with the fields of the call's type."""
        program = self.program
        known = {digest.preamble.name for digest in self.p4info.digests}
        names = {id_: name for id_, (name, _) in program.digests.items() if name in known}
        calls = [digest for digest in self.p4info.digests if _UNNAMED.fullmatch(digest.preamble.name)]
        calls = [digest for digest in calls if digest.preamble.name not in names.values()]
        for id_, (_, fields) in sorted(program.digests.items()):
            fitting = [] if id_ in names else [digest for digest in calls if self.types.fits(digest, fields)]
            if fitting:
                unused = [digest for digest in fitting if digest.preamble.name not in names.values()]
                names[id_] = (unused or fitting)[0].preamble.name
        return names


def _other(
    what: str, was: Any, its_parts: Iterable[tuple[int, str]], is_: Any, other_parts: Iterable[tuple[int, str]]
) -> Failure:
    labels = [
        f"{item.preamble.name!r} ({', '.join(f'{id_} {name}' for id_, name in parts)})"
        for item, parts in ((was, its_parts), (is_, other_parts))
    ]
    return invalid(f"{what} is {labels[0]} in the old program and {labels[1]} in the new one")


def _by_id(items: Iterable[T], what: str) -> dict[int, T]:
    result: dict[int, T] = {}
    for item in items:
        preamble = item.preamble  # type: ignore[attr-defined]
        if preamble.id in result or not preamble.id:
            raise invalid(f"the P4Info gives {what} {preamble.name!r} the id {preamble.id}, which is 0 or already used")
        result[preamble.id] = item
    return result


def _known(items: Mapping[int, T], id_: int, what: str) -> T:
    if id_ not in items:
        names = choices(f"{key} ({item.preamble.name})" for key, item in items.items())  # type: ignore[attr-defined]
        raise invalid(f"there is no {what} {id_}; the program has {names or 'none'}")
    return items[id_]


def _check_name(what: str, name: str, known: Iterable[str]) -> None:
    names = sorted(known)
    if name not in names:
        raise _mismatch(f"{what} {name!r} is not in the program, which has {choices(names) or 'none'}")


def _check_arrays(what: str, items: Iterable[Any], arrays: Mapping[str, Array]) -> None:
    for item in items:
        name = item.preamble.name
        _check_name(what, name, arrays)
        if item.size != arrays[name].size:
            raise _mismatch(
                f"{what} {name!r} has {item.size} cells in the P4Info and {arrays[name].size} in the program"
            )


def _as_in_json(keys: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
    """The keys with their match types in the JSON: p4c writes optional keys as ternary ones."""
    return [(width, "ternary" if kind == "optional" else kind) for width, kind in keys]


def _keys(keys: Iterable[tuple[int, str]]) -> str:
    return ", ".join(f"{kind} {width} bits" for width, kind in keys) or "nothing"


def _bits(widths: Iterable[int]) -> str:
    return f"({', '.join(str(width) for width in widths)}) bits"


def _mismatch(message: str) -> Failure:
    return invalid(f"the P4Info does not fit the program: {message}")
