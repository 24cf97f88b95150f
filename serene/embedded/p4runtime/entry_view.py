"""Converts a table's entries from the engine's limbs to P4Runtime's messages."""

from __future__ import annotations

from finsy.proto import p4i, p4r

from serene.embedded.control import types as control
from serene.embedded.control.entries import Row
from serene.embedded.control.loaded import integer
from serene.embedded.p4runtime.matches import Match, canonical_action, canonical_match, needs_priority
from serene.embedded.p4runtime.pipeline import MATCH_KINDS, Schema
from serene.embedded.p4runtime.profiles import Choice, Profiles
from serene.embedded.program.ir import Action, limbs_of


class EntryView:
    def __init__(self, schema: Schema, table: p4i.Table, profiles: Profiles) -> None:
        self._schema, self._table, self._profiles = schema, table, profiles
        program = schema.program_table(table)
        self._key_limbs = program.key_limbs
        self._indirect = program.profile is not None
        self._priority = needs_priority(table)
        self._actions: dict[int, Action] = {action.id: action for action in program.actions.values()}
        self._ids = {schema.action_name(ref.id): ref.id for ref in reversed(table.action_refs)}
        self._fields: list[tuple[str, slice]] = []
        at = 0
        for field, key in zip(table.match_fields, program.keys, strict=True):
            self._fields.append((MATCH_KINDS[field.match_type], slice(at, at + limbs_of(key.width))))
            at += limbs_of(key.width)

    def match(self, row: Row) -> Match:
        """An entry's match in the form of ``match_of``."""
        masks = row.limbs[self._key_limbs : 2 * self._key_limbs]
        return tuple(_field(kind, integer(row.limbs[at]), integer(masks[at])) for kind, at in self._fields)

    def entry(self, row: Row) -> tuple[p4r.TableEntry, Choice | None]:
        """The entry in canonical form, and the member or group that it refers to if the table has an action profile."""
        entry = p4r.TableEntry(
            table_id=self._table.preamble.id,
            priority=row.rank if self._priority else 0,
            controller_metadata=row.metadata,
            is_const=self._table.is_const_table,
        )
        entry.match.extend(canonical_match(self._table, self.match(row)))
        data = row.limbs[2 * self._key_limbs :]
        if self._indirect:
            choice, action = self._profiles.chosen(self._table, group=bool(data[0]), place=data[1])
            entry.action.CopyFrom(action)
            return entry, choice
        held, params, at = self._actions[row.action], [], 0
        for parameter in held.parameters:
            params.append(integer(data[at : at + limbs_of(parameter.width)]))
            at += limbs_of(parameter.width)
        entry.action.CopyFrom(canonical_action(self._schema, self._table, held.name, params) or p4r.TableAction())
        return entry, None

    def fits(self, row: Row, match: Match | None, wanted: p4r.TableEntry) -> bool:
        """Whether a read request matches this entry. A field with its default value matches all."""
        action = wanted.action.action.action_id
        return (
            wanted.priority in (0, row.rank if self._priority else 0)
            and wanted.controller_metadata in (0, row.metadata)
            and (not action or self._action_id(row) == action)
            and (match is None or self.match(row) == match)
        )

    def _action_id(self, row: Row) -> int:
        return 0 if self._indirect else self._ids.get(self._actions[row.action].name, 0)


def _field(kind: str, value: int, mask: int) -> control.Match:
    if kind == "exact":
        return control.Exact(value)
    if kind == "lpm":
        return control.Lpm(value, mask.bit_count())
    if kind == "ternary":
        return control.Ternary(value, mask)
    if kind == "optional":
        return control.Optional(value if mask else None)
    return control.Range(value, mask)
