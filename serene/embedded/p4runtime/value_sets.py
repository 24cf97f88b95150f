"""Parser value sets. A controller writes all members of a set at once."""

from __future__ import annotations

from collections.abc import Iterator

from finsy.proto import p4i, p4r

from serene.embedded.engine import Switch
from serene.embedded.p4runtime.pipeline import Schema
from serene.embedded.p4runtime.status import Code, Failure, invalid, unimplemented
from serene.embedded.p4runtime.values import decode
from serene.embedded.program.limits import MOST_VALUES

MODIFY = p4r.Update.MODIFY


class ValueSets:
    def __init__(self, schema: Schema, switch: Switch) -> None:
        self._schema = schema
        self._switch = switch
        self._entries = {id_: p4r.ValueSetEntry(value_set_id=id_) for id_ in schema.value_sets}

    def write(self, kind: int, entry: p4r.ValueSetEntry) -> None:
        if kind != MODIFY:
            raise invalid("a value set can only be modified")
        value_set = self._schema.value_set(entry.value_set_id)
        name, most = value_set.preamble.name, min(value_set.size, MOST_VALUES)
        if len(entry.members) > most:
            raise Failure(Code.RESOURCE_EXHAUSTED, f"value set {name!r}: {len(entry.members)} members; at most {most}")
        values = [_value(value_set, member) for member in entry.members]
        if len(set(values)) < len(values):
            raise Failure(Code.ALREADY_EXISTS, f"value set {name!r} has a member twice")
        self._switch.value_set_write(name, values)
        self._entries[entry.value_set_id] = p4r.ValueSetEntry()
        self._entries[entry.value_set_id].CopyFrom(entry)

    def read(self, wanted: p4r.ValueSetEntry) -> Iterator[p4r.ValueSetEntry]:
        if wanted.value_set_id:
            self._schema.value_set(wanted.value_set_id)
        yield from (entry for id_, entry in self._entries.items() if wanted.value_set_id in (0, id_))


def _value(value_set: p4i.ValueSet, member: p4r.ValueSetMember) -> int:
    """The member's fields concatenated, as the parser compares them."""
    name = value_set.preamble.name
    given = {match.field_id: match for match in member.match}
    if set(given) != {field.id for field in value_set.match} or len(given) != len(member.match):
        names = ", ".join(f"{field.id} ({field.name})" for field in value_set.match)
        raise invalid(f"value set {name!r}: fields {[m.field_id for m in member.match]}; expected each of {names} once")
    value = 0
    for field in value_set.match:
        match = given[field.id]
        if match.WhichOneof("field_match_type") != "exact":
            raise unimplemented(f"value set {name!r}: only exact members are supported on this switch")
        value = value << field.bitwidth | decode(match.exact.value, field.bitwidth, f"value set {name!r}")
    return value
