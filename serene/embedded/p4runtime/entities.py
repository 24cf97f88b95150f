"""Writes and reads of all kinds of entities."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from finsy.proto import p4d, p4i, p4r

from serene.embedded import engine
from serene.embedded.control import types as control
from serene.embedded.p4runtime.digests import Deliver, DigestLists
from serene.embedded.p4runtime.direct import counter_value
from serene.embedded.p4runtime.idle import IdleTimeouts
from serene.embedded.p4runtime.indices import indices
from serene.embedded.p4runtime.meters import Meters
from serene.embedded.p4runtime.pipeline import Schema
from serene.embedded.p4runtime.profiles import Profiles
from serene.embedded.p4runtime.replication import Replication
from serene.embedded.p4runtime.status import Code, Failure, invalid, unimplemented
from serene.embedded.p4runtime.tables import DELETE, INSERT, MODIFY, Tables
from serene.embedded.p4runtime.value_sets import ValueSets
from serene.embedded.p4runtime.values import decode, encode

PART = 65536  # cells of an array read at a time

T = TypeVar("T")


class Entities:
    """One program's control state. Except for the digests it is not thread-safe; callers have the service's lock."""

    def __init__(self, schema: Schema, switch: engine.Switch, deliver: Deliver) -> None:
        self.schema = schema
        self._switch = switch
        self._translation = schema.translation
        self.idle = IdleTimeouts(switch, self._translation.notify(deliver))
        self._profiles = Profiles(schema, switch)
        self.tables = Tables(schema, switch, self.idle, self._profiles)
        self.meters = Meters(schema, switch)
        self._replication = Replication(switch)
        self._value_sets = ValueSets(schema, switch)
        self.digests = DigestLists(schema.p4info, deliver, schema.types)

    def write_all(self, updates: Sequence[p4r.Update], request: bytes) -> list[Failure | None]:
        """Performs the updates of a WriteRequest. request: the encoded message, from which the engine performs the
        plain updates. Returns each update's error, or None."""
        results: list[Failure | None] = [None] * len(updates)
        plain = self.tables.plain.begin(request)
        while (number := plain.next_other(len(updates))) < len(updates):
            try:
                self.write(updates[number])
            except Failure as failure:
                results[number] = failure
        return results

    def write(self, update: p4r.Update) -> None:
        """Performs one update. If it raises Failure, nothing has changed."""
        if update.type not in (INSERT, MODIFY, DELETE):
            raise invalid("an update is an INSERT, a MODIFY or a DELETE")
        kind = update.entity.WhichOneof("entity")
        if kind is None:
            raise invalid("an update without an entity")
        writer = getattr(self, f"_write_{kind}", None)
        if writer is None:
            raise unimplemented(f"writing a {kind} is not supported on this switch")
        entity = self._translation.incoming(update.entity, self._written)
        try:
            writer(update.type, getattr(entity, kind))
        except control.ControlError as error:
            raise Failure(Code.INTERNAL, str(error)) from error

    def read(self, wanted: p4r.Entity) -> Iterator[p4r.Entity]:
        """Yields the entities that a request names. An id of 0 or a missing index means all."""
        kind = wanted.WhichOneof("entity")
        if kind is None:
            raise invalid("a read request without an entity")
        reader = getattr(self, f"_read_{kind}", None)
        if reader is None:
            raise unimplemented(f"reading a {kind} is not supported on this switch")
        found = reader(getattr(self._translation.incoming(wanted, self._written), kind))
        for answer in found if kind == "table_entry" else _entities(kind, found):
            yield self._translation.outgoing(answer)

    def take_over_strings(self, old: Entities) -> None:
        """Keeps the numbers that controllers' strings had in the previous program."""
        self._translation.take_over(old._translation)

    def _written(self) -> Iterator[p4r.Entity]:
        """All entities that may contain values of translated types."""
        for defaults in (False, True):
            yield from self.tables.read(p4r.TableEntry(is_default_action=defaults))
        for member in self._profiles.read_members(p4r.ActionProfileMember()):
            yield p4r.Entity(action_profile_member=member)
        for value_set in self._value_sets.read(p4r.ValueSetEntry()):
            yield p4r.Entity(value_set_entry=value_set)
        for replication in self._replication.read(p4r.PacketReplicationEngineEntry()):
            yield p4r.Entity(packet_replication_engine_entry=replication)

    # -- tables, direct counters, direct meters --------------------------------------------------------------

    def _write_table_entry(self, kind: int, entry: p4r.TableEntry) -> None:
        self.tables.write(kind, entry)

    def _read_table_entry(self, wanted: p4r.TableEntry) -> Iterator[p4r.Entity]:
        """Yields whole entities in the engine's encoding, because there may be many."""
        return self.tables.read(wanted)

    def _write_direct_counter_entry(self, kind: int, entry: p4r.DirectCounterEntry) -> None:
        _only_modify(kind, "a direct counter")
        table, held = self.tables.identified(entry.table_entry)
        self.tables.direct.check_counter(table, entry.data)
        if entry.HasField("data"):
            self.tables.direct.write_counter(table, held.handle, entry.data)

    def _read_direct_counter_entry(self, wanted: p4r.DirectCounterEntry) -> Iterator[p4r.DirectCounterEntry]:
        if wanted.table_entry.table_id:
            self.tables.direct.check_counter(self.schema.table(wanted.table_entry.table_id))
        for table, held in self.tables.chosen(wanted.table_entry):
            if table.preamble.id in self.schema.direct_counters:
                data = self.tables.direct.read_counter(table, held.handle)
                yield p4r.DirectCounterEntry(table_entry=_identity(held.entry), data=data)

    def _write_direct_meter_entry(self, kind: int, entry: p4r.DirectMeterEntry) -> None:
        _only_modify(kind, "a direct meter")
        table, held = self.tables.identified(entry.table_entry)
        self.tables.direct.check_meter(table)
        config = entry.config if entry.HasField("config") else None
        as_entry = p4r.TableEntry(is_default_action=entry.table_entry.is_default_action, meter_config=config)
        self.tables.direct.check(table, as_entry)
        if entry.HasField("counter_data"):
            raise unimplemented("meters do not count by colour on this switch: leave counter_data out")
        self.tables.write_meter(table, held, config)

    def _read_direct_meter_entry(self, wanted: p4r.DirectMeterEntry) -> Iterator[p4r.DirectMeterEntry]:
        if wanted.HasField("counter_data"):
            raise unimplemented("meters do not count by colour on this switch: leave counter_data out")
        if wanted.table_entry.table_id:
            self.tables.direct.check_meter(self.schema.table(wanted.table_entry.table_id))
        for table, held in self.tables.chosen(wanted.table_entry):
            if table.preamble.id in self.schema.direct_meters:
                config = self.tables.direct.read_meter(table, held.handle)
                yield p4r.DirectMeterEntry(table_entry=_identity(held.entry), config=config)

    # -- counters, meters, registers -------------------------------------------------------------------------

    def _write_counter_entry(self, kind: int, entry: p4r.CounterEntry) -> None:
        _only_modify(kind, "a counter")
        counter = self.schema.counter(entry.counter_id)
        cells, value = indices(entry, counter), counter_value(entry.data)
        if entry.HasField("data") and cells:
            self._switch.counter_write(counter.preamble.name, cells.start, value, len(cells))

    def _read_counter_entry(self, wanted: p4r.CounterEntry) -> Iterator[p4r.CounterEntry]:
        counters = [self.schema.counter(wanted.counter_id)] if wanted.counter_id else self.schema.counters.values()
        for counter in counters:
            cells = indices(wanted, counter) if wanted.counter_id else range(counter.size)
            for index, value in _in_parts(cells, counter.preamble.name, self._switch.counter_read_all):
                data = p4r.CounterData(packet_count=value.packets, byte_count=value.bytes)
                yield p4r.CounterEntry(counter_id=counter.preamble.id, index=p4r.Index(index=index), data=data)

    def _write_meter_entry(self, kind: int, entry: p4r.MeterEntry) -> None:
        _only_modify(kind, "a meter")
        self.meters.write(entry)

    def _read_meter_entry(self, wanted: p4r.MeterEntry) -> Iterator[p4r.MeterEntry]:
        return self.meters.read(wanted)

    def _write_register_entry(self, kind: int, entry: p4r.RegisterEntry) -> None:
        _only_modify(kind, "a register")
        register = self.schema.register(entry.register_id)
        cells, value = indices(entry, register), self._register_value(register, entry.data)
        if cells:
            self._switch.register_write(register.preamble.name, cells.start, value, len(cells))

    def _register_value(self, register: p4i.Register, data: p4d.P4Data) -> int:
        name, width = register.preamble.name, self._register_width(register)
        kind = data.WhichOneof("data")
        if kind != "bitstring":
            raise invalid(f"register {name!r}: expected a bitstring of {width} bits, not {kind or 'nothing'}")
        return decode(data.bitstring, width, f"register {name!r}")

    @staticmethod
    def _register_width(register: p4i.Register) -> int:
        if not register.type_spec.bitstring.HasField("bit"):
            raise unimplemented(f"register {register.preamble.name!r}: only registers of bit<W> are supported")
        return int(register.type_spec.bitstring.bit.bitwidth)

    def _read_register_entry(self, wanted: p4r.RegisterEntry) -> Iterator[p4r.RegisterEntry]:
        ids = [wanted.register_id] if wanted.register_id else list(self.schema.registers)
        for register in map(self.schema.register, ids):
            name = register.preamble.name
            self._register_width(register)
            cells = indices(wanted, register) if wanted.register_id else range(register.size)
            for index, value in _in_parts(cells, name, self._switch.register_read_all):
                data = p4d.P4Data(bitstring=encode(value))
                yield p4r.RegisterEntry(register_id=register.preamble.id, index=p4r.Index(index=index), data=data)

    def _write_value_set_entry(self, kind: int, entry: p4r.ValueSetEntry) -> None:
        self._value_sets.write(kind, entry)

    def _read_value_set_entry(self, wanted: p4r.ValueSetEntry) -> Iterator[p4r.ValueSetEntry]:
        return self._value_sets.read(wanted)

    # -- action profiles, and entities that v1model programs never have --------------------------------------

    def _write_action_profile_member(self, kind: int, entry: p4r.ActionProfileMember) -> None:
        self._profiles.write_member(kind, entry)

    def _read_action_profile_member(self, wanted: p4r.ActionProfileMember) -> Iterator[p4r.ActionProfileMember]:
        return self._profiles.read_members(wanted)

    def _write_action_profile_group(self, kind: int, entry: p4r.ActionProfileGroup) -> None:
        self._profiles.write_group(kind, entry)

    def _read_action_profile_group(self, wanted: p4r.ActionProfileGroup) -> Iterator[p4r.ActionProfileGroup]:
        return self._profiles.read_groups(wanted)

    def _read_extern_entry(self, wanted: p4r.ExternEntry) -> Iterator[p4r.ExternEntry]:
        return _none_of("extern", wanted.extern_id or wanted.extern_type_id)

    # -- replication and digests -----------------------------------------------------------------------------

    def _write_packet_replication_engine_entry(self, kind: int, entry: p4r.PacketReplicationEngineEntry) -> None:
        self._replication.write(kind, entry)

    def _read_packet_replication_engine_entry(
        self, wanted: p4r.PacketReplicationEngineEntry
    ) -> Iterator[p4r.PacketReplicationEngineEntry]:
        return self._replication.read(wanted)

    def _write_digest_entry(self, kind: int, entry: p4r.DigestEntry) -> None:
        self.schema.digest(entry.digest_id)
        if kind == INSERT:
            self.digests.insert(entry)
        elif kind == MODIFY:
            self.digests.modify(entry)
        else:
            self.digests.delete(entry.digest_id)

    def _read_digest_entry(self, wanted: p4r.DigestEntry) -> Iterator[p4r.DigestEntry]:
        if wanted.digest_id:
            self.schema.digest(wanted.digest_id)
        return (entry for entry in self.digests.entries() if wanted.digest_id in (0, entry.digest_id))


def _entities(kind: str, found: Iterator[Any]) -> Iterator[p4r.Entity]:
    for result in found:
        answer = p4r.Entity()
        getattr(answer, kind).CopyFrom(result)
        yield answer


def _in_parts(cells: range, name: str, read: Callable[[str, int, int], list[T]]) -> Iterator[tuple[int, T]]:
    """Yields cells with their values. They are read in parts, so that a reader can stop inside a large array."""
    for start in range(0, len(cells), PART):
        part = cells[start : start + PART]
        yield from zip(part, read(name, part.start, len(part)), strict=True)


def _none_of(what: str, id_: int) -> Iterator:  # type: ignore[type-arg]
    """Reads a kind of entity that no program has. Reading all yields nothing; reading one by its id is an error."""
    if id_:
        raise invalid(f"there is no {what} {id_}; the program has none")
    return iter(())


def _only_modify(kind: int, what: str) -> None:
    if kind != MODIFY:
        raise invalid(f"{what} can only be modified")


def _identity(entry: p4r.TableEntry) -> p4r.TableEntry:
    return p4r.TableEntry(
        table_id=entry.table_id,
        match=entry.match,
        priority=entry.priority,
        is_default_action=entry.is_default_action,
    )
