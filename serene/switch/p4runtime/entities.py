"""Everything a controller writes and reads: tables, counters, meters, replication, digests."""

from __future__ import annotations

from collections.abc import Iterator

from finsy.proto import p4r

from serene.switch import engine
from serene.switch.engine import CounterValue, Switch
from serene.switch.p4runtime.pipeline import Schema
from serene.switch.p4runtime.status import Code, Failure, invalid, not_found, unimplemented
from serene.switch.p4runtime.tables import Tables, rates

INSERT, MODIFY, DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE


class Entities:
    """The switch's control state as P4Runtime entities. Not thread-safe: the service holds a lock."""

    def __init__(self, schema: Schema, switch: Switch) -> None:
        self._schema = schema
        self._switch = switch
        self.tables = Tables(schema, switch)
        self._groups: dict[int, p4r.MulticastGroupEntry] = {}
        self._sessions: dict[int, p4r.CloneSessionEntry] = {}
        self._meters: dict[tuple[int, int], p4r.MeterConfig] = {}
        self.digests: dict[int, p4r.DigestEntry] = {}

    def write(self, update: p4r.Update) -> None:
        """One update; raises Failure and changes nothing where it cannot be done."""
        if update.type not in (INSERT, MODIFY, DELETE):
            raise invalid("an update is an INSERT, a MODIFY or a DELETE")
        kind = update.entity.WhichOneof("entity")
        writer = getattr(self, f"_write_{kind}", None)
        if writer is None:
            raise unimplemented(f"writing {kind or 'an empty entity'} is not supported")
        try:
            writer(update.type, getattr(update.entity, kind))
        except engine.ControlError as error:
            raise invalid(str(error)) from error

    def read(self, entity: p4r.Entity) -> Iterator[p4r.Entity]:
        """What a request asks for; ids of 0 and indices left out ask for all."""
        kind = entity.WhichOneof("entity")
        reader = getattr(self, f"_read_{kind}", None)
        if reader is None:
            raise unimplemented(f"reading {kind or 'an empty entity'} is not supported")
        for result in reader(getattr(entity, kind)):
            answer = p4r.Entity()
            getattr(answer, kind).CopyFrom(result)
            yield answer

    # -- tables and direct counters --------------------------------------------------------------------------

    def _write_table_entry(self, kind: int, entry: p4r.TableEntry) -> None:
        self.tables.write(kind, entry)

    def _read_table_entry(self, wanted: p4r.TableEntry) -> Iterator[p4r.TableEntry]:
        return self.tables.read(wanted)

    def _write_direct_counter_entry(self, kind: int, entry: p4r.DirectCounterEntry) -> None:
        _only_modify(kind, "a direct counter")
        table, handle = self.tables.handle(entry.table_entry)
        self.tables.write_counter(table, handle, entry.data)

    def _read_direct_counter_entry(self, wanted: p4r.DirectCounterEntry) -> Iterator[p4r.DirectCounterEntry]:
        for table, held in self.tables.counter_entries(wanted.table_entry):
            identity = p4r.TableEntry(table_id=held.entry.table_id, match=held.entry.match, priority=held.entry.priority)
            yield p4r.DirectCounterEntry(table_entry=identity, data=self.tables.read_counter(table, held.handle))

    # -- counters and meters ---------------------------------------------------------------------------------

    def _write_counter_entry(self, kind: int, entry: p4r.CounterEntry) -> None:
        _only_modify(kind, "a counter")
        name = self._schema.counter(entry.counter_id).preamble.name
        value = CounterValue(entry.data.packet_count, entry.data.byte_count)
        indices = [entry.index.index] if entry.HasField("index") else range(self._schema.counters[entry.counter_id].size)
        for index in indices:
            self._switch.counter_write(name, index, value)

    def _read_counter_entry(self, wanted: p4r.CounterEntry) -> Iterator[p4r.CounterEntry]:
        ids = [wanted.counter_id] if wanted.counter_id else list(self._schema.counters)
        for id_ in ids:
            name = self._schema.counter(id_).preamble.name
            first, count = (wanted.index.index, 1) if wanted.HasField("index") else (0, None)
            try:
                values = self._switch.counter_read_all(name, first, count)
            except engine.ControlError as error:
                raise invalid(str(error)) from error
            for offset, value in enumerate(values):
                data = p4r.CounterData(packet_count=value.packets, byte_count=value.bytes)
                yield p4r.CounterEntry(counter_id=id_, index=p4r.Index(index=first + offset), data=data)

    def _write_meter_entry(self, kind: int, entry: p4r.MeterEntry) -> None:
        _only_modify(kind, "a meter")
        meter = self._schema.meter(entry.meter_id)
        if not entry.HasField("index"):
            raise invalid(f"meter {meter.preamble.name!r}: an index is missing")
        config = rates(entry.config) if entry.HasField("config") else None
        self._switch.meter_set(meter.preamble.name, entry.index.index, config)
        key = (entry.meter_id, entry.index.index)
        if config is None:
            self._meters.pop(key, None)
        else:
            self._meters[key] = p4r.MeterConfig()
            self._meters[key].CopyFrom(entry.config)

    def _read_meter_entry(self, wanted: p4r.MeterEntry) -> Iterator[p4r.MeterEntry]:
        ids = [wanted.meter_id] if wanted.meter_id else list(self._schema.meters)
        for id_ in ids:
            size = self._schema.meter(id_).size
            indices = [wanted.index.index] if wanted.HasField("index") else range(size)
            for index in indices:
                entry = p4r.MeterEntry(meter_id=id_, index=p4r.Index(index=index))
                if (id_, index) in self._meters:
                    entry.config.CopyFrom(self._meters[id_, index])
                yield entry

    # -- replication -----------------------------------------------------------------------------------------

    def _write_packet_replication_engine_entry(self, kind: int, entry: p4r.PacketReplicationEngineEntry) -> None:
        if entry.WhichOneof("type") == "multicast_group_entry":
            group = entry.multicast_group_entry
            _check_presence(kind, group.multicast_group_id in self._groups, f"multicast group {group.multicast_group_id}")
            if kind == DELETE:
                self._switch.multicast_delete(group.multicast_group_id)
                del self._groups[group.multicast_group_id]
                return
            self._switch.multicast_set(group.multicast_group_id, _replicas(group.replicas))
            self._groups[group.multicast_group_id] = _copy(group)
        elif entry.WhichOneof("type") == "clone_session_entry":
            session = entry.clone_session_entry
            _check_presence(kind, session.session_id in self._sessions, f"clone session {session.session_id}")
            if kind == DELETE:
                self._switch.clone_session_delete(session.session_id)
                del self._sessions[session.session_id]
                return
            if session.packet_length_bytes < 0:
                raise invalid(f"clone session {session.session_id}: a packet length below 0")
            self._switch.clone_session_set(
                session.session_id, _replicas(session.replicas), session.packet_length_bytes, session.class_of_service
            )
            self._sessions[session.session_id] = _copy(session)
        else:
            raise invalid("a replication entry is a multicast group or a clone session")

    def _read_packet_replication_engine_entry(
        self, wanted: p4r.PacketReplicationEngineEntry
    ) -> Iterator[p4r.PacketReplicationEngineEntry]:
        kind = wanted.WhichOneof("type")
        if kind in (None, "multicast_group_entry"):
            only = wanted.multicast_group_entry.multicast_group_id
            for id_, group in self._groups.items():
                if only in (0, id_):
                    yield p4r.PacketReplicationEngineEntry(multicast_group_entry=group)
        if kind in (None, "clone_session_entry"):
            only = wanted.clone_session_entry.session_id
            for id_, session in self._sessions.items():
                if only in (0, id_):
                    yield p4r.PacketReplicationEngineEntry(clone_session_entry=session)

    # -- digests ---------------------------------------------------------------------------------------------

    def _write_digest_entry(self, kind: int, entry: p4r.DigestEntry) -> None:
        name = self._schema.digest(entry.digest_id).preamble.name
        _check_presence(kind, entry.digest_id in self.digests, f"digest {name!r}")
        if kind == DELETE:
            del self.digests[entry.digest_id]
        else:
            self.digests[entry.digest_id] = _copy(entry)

    def _read_digest_entry(self, wanted: p4r.DigestEntry) -> Iterator[p4r.DigestEntry]:
        if wanted.digest_id:
            self._schema.digest(wanted.digest_id)
        for id_, entry in self.digests.items():
            if wanted.digest_id in (0, id_):
                yield entry


def _copy(message):  # type: ignore[no-untyped-def]
    result = type(message)()
    result.CopyFrom(message)
    return result


def _only_modify(kind: int, what: str) -> None:
    if kind != MODIFY:
        raise invalid(f"{what} can only be modified")


def _check_presence(kind: int, present: bool, what: str) -> None:
    if kind == INSERT and present:
        raise Failure(Code.ALREADY_EXISTS, f"{what} exists already")
    if kind != INSERT and not present:
        raise not_found(f"{what} does not exist")


def _replicas(replicas) -> list[tuple[int, int]]:  # type: ignore[no-untyped-def]
    pairs = []
    for replica in replicas:
        if replica.WhichOneof("port_kind") == "port":
            port = int.from_bytes(replica.port, "big")
        else:
            port = replica.egress_port
        if len(replica.backup_replicas):
            raise unimplemented("backup replicas are not supported")
        if not 0 <= port < engine.MAX_PORTS:
            raise invalid(f"replica on port {port}: ports are 0 to {engine.MAX_PORTS - 1}")
        if not 0 <= replica.instance < 1 << 16:
            raise invalid(f"replica instance {replica.instance} does not fit 16 bits")
        pairs.append((port, replica.instance))
    if len(set(pairs)) != len(pairs):
        raise invalid("two replicas with the same port and instance")
    return pairs
