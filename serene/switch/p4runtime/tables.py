"""Table entries: what P4Runtime says of them, checked, beside the engine's handles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from finsy.proto import p4i, p4r

from serene.errors import choices
from serene.switch import engine
from serene.switch.expressions import mask
from serene.switch.p4runtime.pipeline import MATCH_KINDS, Schema
from serene.switch.p4runtime.status import Code, Failure, invalid, not_found, unimplemented
from serene.switch.p4runtime.values import decode, encode

Key = tuple[int, tuple[engine.Match, ...], int]  # table id, match, priority


@dataclass
class Installed:
    entry: p4r.TableEntry  # canonical
    handle: int


class Tables:
    """All entries that controllers wrote, and the tables' default entries."""

    def __init__(self, schema: Schema, switch: engine.Switch) -> None:
        self._schema = schema
        self._switch = switch
        self._entries: dict[Key, Installed] = {}
        self._defaults: dict[int, p4r.TableEntry] = {}

    # -- writing ---------------------------------------------------------------------------------------------

    def write(self, kind: int, entry: p4r.TableEntry) -> None:
        table = self._schema.table(entry.table_id)
        name = table.preamble.name
        if entry.idle_timeout_ns:
            raise unimplemented(f"table {name!r}: idle timeouts are not supported")
        if table.is_const_table:
            raise Failure(Code.PERMISSION_DENIED, f"table {name!r} has constant entries only")
        if entry.is_default_action:
            self._write_default(kind, table, entry)
            return
        key = self.key(table, entry)
        held = self._entries.get(key)
        if kind == p4r.Update.INSERT:
            if held:
                raise Failure(Code.ALREADY_EXISTS, f"table {name!r} has an entry with this match already")
            self._insert(table, key, entry)
            return
        if held is None:
            raise not_found(f"table {name!r} has no entry with this match")
        if kind == p4r.Update.DELETE:
            self._switch.table_delete(name, held.handle)
            del self._entries[key]
            return
        action, params = self._action(table, entry.action)
        self._switch.table_modify(name, held.handle, action, params)
        held.entry.action.CopyFrom(_canonical_action(entry.action))
        self._write_direct(table, entry, held.handle)

    def _insert(self, table: p4i.Table, key: Key, entry: p4r.TableEntry) -> None:
        action, params = self._action(table, entry.action)
        try:
            handle = self._switch.table_add(table.preamble.name, key[1], action, params, entry.priority)
        except engine.TableFull as error:
            raise Failure(Code.RESOURCE_EXHAUSTED, str(error)) from error
        held = p4r.TableEntry(table_id=entry.table_id, priority=entry.priority)
        held.controller_metadata, held.metadata = entry.controller_metadata, entry.metadata
        held.match.extend(self._canonical_match(table, key[1]))
        held.action.CopyFrom(_canonical_action(entry.action))
        self._entries[key] = Installed(held, handle)
        self._write_direct(table, entry, handle)

    def _write_direct(self, table: p4i.Table, entry: p4r.TableEntry, handle: int) -> None:
        if entry.HasField("counter_data"):
            self.write_counter(table, handle, entry.counter_data)
        if entry.HasField("meter_config"):
            meter = self._schema.direct_meters.get(table.preamble.id)
            if meter is None:
                raise invalid(f"table {table.preamble.name!r} has no direct meter")
            self._switch.meter_set(meter.preamble.name, handle, rates(entry.meter_config))

    def _write_default(self, kind: int, table: p4i.Table, entry: p4r.TableEntry) -> None:
        name = table.preamble.name
        if kind != p4r.Update.MODIFY:
            raise invalid(f"table {name!r}: a default entry can only be modified")
        if entry.match or entry.priority:
            raise invalid(f"table {name!r}: a default entry has no match and no priority")
        if table.const_default_action_id:
            raise Failure(Code.PERMISSION_DENIED, f"table {name!r} has a constant default action")
        if not entry.HasField("action"):
            self._switch.table_reset_default(name)
            self._defaults.pop(entry.table_id, None)
            return
        action, params = self._action(table, entry.action, default=True)
        self._switch.table_set_default(name, action, params)
        held = p4r.TableEntry(table_id=entry.table_id, is_default_action=True)
        held.action.CopyFrom(_canonical_action(entry.action))
        self._defaults[entry.table_id] = held

    def _action(self, table: p4i.Table, given: p4r.TableAction, default: bool = False) -> tuple[str, list[int]]:
        name = table.preamble.name
        if given.WhichOneof("type") != "action":
            raise invalid(f"table {name!r}: an entry needs an action (action profiles are not supported)")
        scope = p4i.ActionRef.TABLE_ONLY if default else p4i.ActionRef.DEFAULT_ONLY
        allowed = {ref.id: self._schema.action_name(ref.id) for ref in table.action_refs if ref.scope != scope}
        if given.action.action_id not in allowed:
            names = choices(f"{id_} ({label})" for id_, label in allowed.items())
            raise invalid(f"table {name!r}: no action {given.action.action_id} here; there are {names}")
        action = self._schema.actions[given.action.action_id]
        params = {param.param_id: param.value for param in given.action.params}
        if set(params) != {param.id for param in action.params} or len(params) != len(given.action.params):
            names = ", ".join(f"{param.id} ({param.name})" for param in action.params) or "none"
            raise invalid(f"action {action.preamble.name!r}: parameters {sorted(params)}; expected each of {names} once")
        label = action.preamble.name
        return label, [decode(params[p.id], p.bitwidth, f"action {label!r}, {p.name}") for p in action.params]

    # -- matches ---------------------------------------------------------------------------------------------

    def key(self, table: p4i.Table, entry: p4r.TableEntry) -> Key:
        """The entry's identity; INVALID_ARGUMENT where the match or the priority is not the table's."""
        name = table.preamble.name
        given = {field.field_id: field for field in entry.match}
        known = {field.id: field for field in table.match_fields}
        if len(given) != len(entry.match) or not set(given) <= set(known):
            names = ", ".join(f"{id_} ({field.name})" for id_, field in known.items()) or "none"
            raise invalid(f"table {name!r}: match fields {[f.field_id for f in entry.match]}; there are {names}")
        match = tuple(self._field(name, field, given.get(id_)) for id_, field in known.items())
        kinds = {MATCH_KINDS[field.match_type] for field in table.match_fields}
        needs_priority = bool(kinds & {"ternary", "range", "optional"})
        if needs_priority and entry.priority <= 0:
            raise invalid(f"table {name!r}: an entry needs a priority above 0")
        if not needs_priority and entry.priority:
            raise invalid(f"table {name!r}: its entries have no priority")
        return (entry.table_id, match, entry.priority)

    @staticmethod
    def _field(table: str, field: p4i.MatchField, given: p4r.FieldMatch | None) -> engine.Match:
        kind, width = MATCH_KINDS[field.match_type], field.bitwidth
        what = f"table {table!r}, {field.name}"
        if given is None:
            if kind == "exact":
                raise invalid(f"{what}: an exact field cannot be left out")
            return {
                "lpm": engine.Lpm(0, 0),
                "ternary": engine.Ternary(0, 0),
                "range": engine.Range(0, mask(width)),
                "optional": engine.Optional(None),
            }[kind]
        if given.WhichOneof("field_match_type") != kind:
            raise invalid(f"{what} is matched as {kind}, not as {given.WhichOneof('field_match_type')}")
        if kind == "exact":
            return engine.Exact(decode(given.exact.value, width, what))
        if kind == "optional":
            return engine.Optional(decode(given.optional.value, width, what))
        if kind == "lpm":
            value, length = decode(given.lpm.value, width, what), given.lpm.prefix_len
            if not 0 < length <= width:
                raise invalid(f"{what}: a prefix of 1 to {width} bits, not {length} (leave the field out to match all)")
            if value & mask(width - length):
                raise invalid(f"{what}: {value:#x} has bits beyond its prefix of {length}")
            return engine.Lpm(value, length)
        if kind == "ternary":
            value, keep = decode(given.ternary.value, width, what), decode(given.ternary.mask, width, what)
            if not keep:
                raise invalid(f"{what}: a mask of 0; leave the field out to match all")
            if value & ~keep:
                raise invalid(f"{what}: {value:#x} has bits beyond its mask {keep:#x}")
            return engine.Ternary(value, keep)
        low, high = decode(given.range.low, width, what), decode(given.range.high, width, what)
        if low > high:
            raise invalid(f"{what}: the range {low} to {high} is empty")
        if low == 0 and high == mask(width):
            raise invalid(f"{what}: a range of everything; leave the field out")
        return engine.Range(low, high)

    @staticmethod
    def _canonical_match(table: p4i.Table, match: Sequence[engine.Match]) -> Iterator[p4r.FieldMatch]:
        for field, item in zip(table.match_fields, match, strict=True):
            result = p4r.FieldMatch(field_id=field.id)
            if isinstance(item, engine.Exact):
                result.exact.value = encode(item.value)
            elif isinstance(item, engine.Lpm) and item.prefix_len:
                result.lpm.value, result.lpm.prefix_len = encode(item.value), item.prefix_len
            elif isinstance(item, engine.Ternary) and item.mask:
                result.ternary.value, result.ternary.mask = encode(item.value), encode(item.mask)
            elif isinstance(item, engine.Optional) and item.value is not None:
                result.optional.value = encode(item.value)
            elif isinstance(item, engine.Range) and (item.low or item.high != mask(field.bitwidth)):
                result.range.low, result.range.high = encode(item.low), encode(item.high)
            else:
                continue
            yield result

    # -- reading ---------------------------------------------------------------------------------------------

    def read(self, wanted: p4r.TableEntry) -> Iterator[p4r.TableEntry]:
        """Entries that match a read request; a field left at its default asks for all."""
        if wanted.table_id:
            self._schema.table(wanted.table_id)
        for table_id, table in self._schema.tables.items():
            if wanted.table_id not in (0, table_id):
                continue
            if wanted.is_default_action:
                yield self._default(table)
                continue
            only = self.key(table, wanted) if wanted.match else None
            for key, held in self._entries.items():
                if key[0] != table_id or (only and key != only):
                    continue
                if not only and wanted.priority and key[2] != wanted.priority:
                    continue
                yield self._with_counter(table, held, wanted)

    def _with_counter(self, table: p4i.Table, held: Installed, wanted: p4r.TableEntry) -> p4r.TableEntry:
        entry = p4r.TableEntry()
        entry.CopyFrom(held.entry)
        if wanted.HasField("counter_data") and table.preamble.id in self._schema.direct_counters:
            entry.counter_data.CopyFrom(self.read_counter(table, held.handle))
        return entry

    def _default(self, table: p4i.Table) -> p4r.TableEntry:
        id_ = table.preamble.id
        if id_ in self._defaults:
            return self._defaults[id_]
        entry = p4r.TableEntry(table_id=id_, is_default_action=True)
        program = self._schema.program_table(table)
        if program.default_action is not None:
            action, params = program.default_action
            by_name = {self._schema.action_name(ref.id): ref.id for ref in table.action_refs}
            if action.name in by_name:
                info = self._schema.actions[by_name[action.name]]
                entry.action.action.action_id = info.preamble.id
                for parameter, value in zip(info.params, params, strict=True):
                    entry.action.action.params.add(param_id=parameter.id, value=encode(value))
        return entry

    # -- direct counters -------------------------------------------------------------------------------------

    def counter_entries(self, wanted: p4r.TableEntry) -> Iterator[tuple[p4i.Table, Installed]]:
        for table_id, table in self._schema.tables.items():
            if wanted.table_id not in (0, table_id) or table_id not in self._schema.direct_counters:
                continue
            only = self.key(table, wanted) if wanted.match else None
            for key, held in self._entries.items():
                if key[0] == table_id and only in (None, key):
                    yield table, held

    def handle(self, entry: p4r.TableEntry) -> tuple[p4i.Table, int]:
        table = self._schema.table(entry.table_id)
        held = self._entries.get(self.key(table, entry))
        if held is None:
            raise not_found(f"table {table.preamble.name!r} has no entry with this match")
        return table, held.handle

    def read_counter(self, table: p4i.Table, handle: int) -> p4r.CounterData:
        value = self._switch.direct_counter_read(table.preamble.name, handle)
        return p4r.CounterData(packet_count=value.packets, byte_count=value.bytes)

    def write_counter(self, table: p4i.Table, handle: int, data: p4r.CounterData) -> None:
        if table.preamble.id not in self._schema.direct_counters:
            raise invalid(f"table {table.preamble.name!r} has no direct counter")
        value = engine.CounterValue(data.packet_count, data.byte_count)
        self._switch.direct_counter_write(table.preamble.name, handle, value)


def rates(config: p4r.MeterConfig) -> engine.MeterRates:
    if min(config.cir, config.cburst, config.pir, config.pburst) < 0 or config.pir < config.cir:
        raise invalid("meter rates are at least 0, the peak rate at least the committed one")
    return engine.MeterRates(config.cir, config.cburst, config.pir, config.pburst)


def _canonical_action(given: p4r.TableAction) -> p4r.TableAction:
    result = p4r.TableAction()
    result.action.action_id = given.action.action_id
    for param in sorted(given.action.params, key=lambda item: item.param_id):
        result.action.params.add(param_id=param.param_id, value=encode(int.from_bytes(param.value, "big")))
    return result
