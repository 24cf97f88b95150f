"""Multicast groups and clone sessions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from finsy.proto import p4r

from serene.embedded import engine
from serene.embedded.control.loaded import MAX_PORTS
from serene.embedded.p4runtime.status import Code, Failure, invalid, not_found, unimplemented
from serene.embedded.p4runtime.values import decode

T = TypeVar("T")
INSERT, DELETE = p4r.Update.INSERT, p4r.Update.DELETE
PORT_BITS = 32  # bits of a replica's port in P4Runtime; whether the switch has the port is checked separately


class Replication:
    def __init__(self, switch: engine.Switch) -> None:
        self._switch = switch
        self._groups: dict[int, p4r.MulticastGroupEntry] = {}
        self._sessions: dict[int, p4r.CloneSessionEntry] = {}

    def write(self, kind: int, entry: p4r.PacketReplicationEngineEntry) -> None:
        which = entry.WhichOneof("type")
        if which == "multicast_group_entry":
            self._write_group(kind, entry.multicast_group_entry)
        elif which == "clone_session_entry":
            self._write_session(kind, entry.clone_session_entry)
        else:
            raise invalid("a replication entry is a multicast group or a clone session")

    def _write_group(self, kind: int, group: p4r.MulticastGroupEntry) -> None:
        id_ = group.multicast_group_id
        _check(kind, self._groups, id_, "multicast group", engine.MAX_GROUPS)
        if kind == DELETE:
            self._switch.multicast_delete(id_)
            del self._groups[id_]
            return
        self._switch.multicast_set(id_, _replicas(group.replicas))
        self._groups[id_] = p4r.MulticastGroupEntry.FromString(group.SerializeToString())

    def _write_session(self, kind: int, session: p4r.CloneSessionEntry) -> None:
        id_ = session.session_id
        _check(kind, self._sessions, id_, "clone session", engine.MAX_SESSIONS)
        if kind == DELETE:
            self._switch.clone_session_delete(id_)
            del self._sessions[id_]
            return
        if session.packet_length_bytes < 0:
            raise invalid(f"clone session {id_}: a packet length of {session.packet_length_bytes}; 0 is no limit")
        if session.class_of_service:
            raise unimplemented(f"clone session {id_}: there are no classes of service on this switch")
        self._switch.clone_session_set(id_, _replicas(session.replicas), session.packet_length_bytes)
        self._sessions[id_] = p4r.CloneSessionEntry.FromString(session.SerializeToString())

    def read(self, wanted: p4r.PacketReplicationEngineEntry) -> Iterator[p4r.PacketReplicationEngineEntry]:
        kind = wanted.WhichOneof("type")
        if kind in (None, "multicast_group_entry"):
            for group in _of(self._groups, wanted.multicast_group_entry.multicast_group_id):
                yield p4r.PacketReplicationEngineEntry(multicast_group_entry=group)
        if kind in (None, "clone_session_entry"):
            for session in _of(self._sessions, wanted.clone_session_entry.session_id):
                yield p4r.PacketReplicationEngineEntry(clone_session_entry=session)


def _of(entries: Mapping[int, T], id_: int) -> list[T]:
    """The object with this id, if there is one; 0 means all."""
    return [entries[id_]] if id_ in entries else [] if id_ else list(entries.values())


def _check(kind: int, held: Mapping[int, object], id_: int, what: str, end: int) -> None:
    if not 0 < id_ < end:
        raise invalid(f"{what} {id_}: expected 1 to {end - 1}")
    if kind == INSERT and id_ in held:
        raise Failure(Code.ALREADY_EXISTS, f"{what} {id_} exists already")
    if kind != INSERT and id_ not in held:
        raise not_found(f"{what} {id_} does not exist")


def _replicas(replicas: Sequence[p4r.Replica]) -> list[tuple[int, int]]:
    if len(replicas) > engine.MAX_REPLICAS:
        raise invalid(f"{len(replicas)} replicas; at most {engine.MAX_REPLICAS}")
    pairs: dict[tuple[int, int], None] = {}  # an ordered set
    for replica in replicas:
        kind = replica.WhichOneof("port_kind")
        if kind is None:
            raise invalid("a replica has no port")
        port = decode(replica.port, PORT_BITS, "a replica's port") if kind == "port" else replica.egress_port
        if replica.backup_replicas:
            raise unimplemented("backup replicas are not supported on this switch")
        if port >= MAX_PORTS:
            raise invalid(f"a replica on port {port}: ports are 0 to {MAX_PORTS - 1}")
        if replica.instance >= 1 << 16:
            raise invalid(f"a replica's instance of {replica.instance} does not fit 16 bits")
        if (port, replica.instance) in pairs:
            raise invalid(f"two replicas with port {port} and instance {replica.instance}")
        pairs[port, replica.instance] = None
    return list(pairs)
