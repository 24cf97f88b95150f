"""Converts matches and actions between P4Runtime's messages and the engine's values, and checks all rules of their
form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from finsy.proto import p4i, p4r

from serene.embedded.control import types as control
from serene.embedded.p4runtime.pipeline import MATCH_KINDS, Schema
from serene.embedded.p4runtime.status import denied, invalid
from serene.embedded.p4runtime.values import decode, encode
from serene.embedded.program.ir import mask
from serene.errors import choices

Match = tuple[control.Match, ...]  # in the order of the table's keys, one for each


def match_of(table: p4i.Table, given: Sequence[p4r.FieldMatch]) -> Match:
    """An entry's match in the engine's form. Raises INVALID_ARGUMENT if it does not fit the table."""
    name = table.preamble.name
    by_id = {field.field_id: field for field in given}
    known = {field.id: field for field in table.match_fields}
    if len(by_id) != len(given) or not set(by_id) <= set(known):
        names = ", ".join(f"{id_} ({field.name})" for id_, field in known.items()) or "none"
        raise invalid(
            f"table {name!r}: match fields {[field.field_id for field in given]}; expected each of {names} at most once"
        )
    return tuple(_field(name, field, by_id.get(id_)) for id_, field in known.items())


def needs_priority(table: p4i.Table) -> bool:
    return any(MATCH_KINDS[field.match_type] in ("ternary", "range", "optional") for field in table.match_fields)


def check_priority(table: p4i.Table, priority: int) -> None:
    if needs_priority(table) and priority <= 0:
        raise invalid(f"table {table.preamble.name!r}: an entry needs a priority above 0, not {priority}")
    if not needs_priority(table) and priority:
        raise invalid(f"table {table.preamble.name!r}: its entries have no priority, not {priority}")


def _field(table: str, field: p4i.MatchField, given: p4r.FieldMatch | None) -> control.Match:
    kind, width = MATCH_KINDS[field.match_type], field.bitwidth
    what = f"table {table!r}, {field.name}"
    if given is None:
        if kind == "exact":
            raise invalid(f"{what}: an exact field cannot be left out")
        everything: dict[str, control.Match] = {
            "lpm": control.Lpm(0, 0),
            "ternary": control.Ternary(0, 0),
            "range": control.Range(0, mask(width)),
            "optional": control.Optional(None),
        }
        return everything[kind]
    if given.WhichOneof("field_match_type") != kind:
        raise invalid(f"{what} is matched as {kind}, not as {given.WhichOneof('field_match_type')}")
    if kind == "exact":
        return control.Exact(decode(given.exact.value, width, what))
    if kind == "optional":
        return control.Optional(decode(given.optional.value, width, what))
    if kind == "lpm":
        value, length = decode(given.lpm.value, width, what), given.lpm.prefix_len
        if not 0 < length <= width:
            raise invalid(f"{what}: a prefix of 1 to {width} bits, not {length} (leave the field out to match all)")
        if value & mask(width - length):
            raise invalid(f"{what}: {value:#x} has bits beyond its prefix of {length}")
        return control.Lpm(value, length)
    if kind == "ternary":
        value, keep = decode(given.ternary.value, width, what), decode(given.ternary.mask, width, what)
        if not keep:
            raise invalid(f"{what}: a mask of 0; leave the field out to match everything")
        if value & ~keep:
            raise invalid(f"{what}: {value:#x} has bits beyond its mask {keep:#x}")
        return control.Ternary(value, keep)
    low, high = decode(given.range.low, width, what), decode(given.range.high, width, what)
    if low > high:
        raise invalid(f"{what}: the range {low} to {high} is empty")
    if low == 0 and high == mask(width):
        raise invalid(f"{what}: a range that matches everything; leave the field out")
    return control.Range(low, high)


def normal(table: p4i.Table, match: Match) -> Match:
    """A match in the form of ``match_of``. It differs for the program's own entries: they have ternary values for
    optional fields, and p4c does not clear unmasked bits of their values."""
    return tuple(_normal(field, item) for field, item in zip(table.match_fields, match, strict=True))


def _normal(field: p4i.MatchField, item: control.Match) -> control.Match:
    if isinstance(item, control.Ternary) and MATCH_KINDS[field.match_type] == "optional":
        return control.Optional(item.value if item.mask else None)
    if isinstance(item, control.Ternary):
        return control.Ternary(item.value & item.mask, item.mask)
    if isinstance(item, control.Lpm):
        return control.Lpm(item.value & ~mask(field.bitwidth - item.prefix_len), item.prefix_len)
    return item


def canonical_match(table: p4i.Table, match: Match) -> Iterator[p4r.FieldMatch]:
    """The inverse of ``match_of``, without fields that match everything."""
    for field, item in zip(table.match_fields, match, strict=True):
        result = p4r.FieldMatch(field_id=field.id)
        if isinstance(item, control.Exact):
            result.exact.value = encode(item.value)
        elif isinstance(item, control.Lpm) and item.prefix_len:
            result.lpm.value, result.lpm.prefix_len = encode(item.value), item.prefix_len
        elif isinstance(item, control.Ternary) and item.mask:
            result.ternary.value, result.ternary.mask = encode(item.value), encode(item.mask)
        elif isinstance(item, control.Optional) and item.value is not None:
            result.optional.value = encode(item.value)
        elif isinstance(item, control.Range) and (item.low or item.high != mask(field.bitwidth)):
            result.range.low, result.range.high = encode(item.low), encode(item.high)
        else:
            continue
        yield result


def action_of(schema: Schema, table: p4i.Table, given: p4r.TableAction, *, default: bool) -> tuple[str, list[int]]:
    """An action's name and parameters. Raises PERMISSION_DENIED if the program does not allow it in such an entry."""
    name = table.preamble.name
    if given.WhichOneof("type") != "action":
        why = "a default entry takes" if default else "it has no action profile: an entry takes"
        raise invalid(f"table {name!r}: {why} an action of its own")
    scopes = {ref.id: ref.scope for ref in table.action_refs}
    id_ = given.action.action_id
    if id_ not in scopes:
        names = choices(f"{known} ({schema.action_name(known)})" for known in scopes)
        raise invalid(f"table {name!r}: no action {id_} here; there are {names}")
    label = schema.action_name(id_)
    if scopes[id_] == (p4i.ActionRef.TABLE_ONLY if default else p4i.ActionRef.DEFAULT_ONLY):
        where = "entries, not as default action" if default else "the default action only, not for entries"
        raise denied(f"table {name!r}: action {label!r} is for {where}")
    return action_values(schema, table, given.action)


def action_values(schema: Schema, table: p4i.Table, given: p4r.Action) -> tuple[str, list[int]]:
    """As ``action_of``, for a member of an action profile."""
    if given.action_id not in {ref.id for ref in table.action_refs}:
        names = choices(f"{ref.id} ({schema.action_name(ref.id)})" for ref in table.action_refs)
        raise invalid(f"table {table.preamble.name!r}: no action {given.action_id} here; there are {names}")
    label, action = schema.action_name(given.action_id), schema.actions[given.action_id]
    params = {param.param_id: param.value for param in given.params}
    if set(params) != {param.id for param in action.params} or len(params) != len(given.params):
        names = ", ".join(f"{param.id} ({param.name})" for param in action.params) or "none"
        ids = [param.param_id for param in given.params]
        raise invalid(f"action {label!r}: parameters {ids}; expected each of {names} once")
    return label, [decode(params[p.id], p.bitwidth, f"action {label!r}, {p.name}") for p in action.params]


def canonical_action(schema: Schema, table: p4i.Table, name: str, values: Sequence[int]) -> p4r.TableAction | None:
    """The inverse of ``action_of``; None for an action that the P4Info does not list for this table."""
    result = p4r.TableAction()
    for ref in table.action_refs:
        if schema.action_name(ref.id) == name:
            result.action.action_id = ref.id
            for param, value in zip(schema.actions[ref.id].params, values, strict=True):
                result.action.params.add(param_id=param.id, value=encode(value))
            return result
    return None
