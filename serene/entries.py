"""The program's table entries, with the P4 program's names of tables, keys, actions and parameters.

The controller encodes them for P4Runtime (`serene.controller.switch.encoding`); `serene.sim` writes them to a switch in
its own process.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from serene.racks import LeafPolicy
from serene.strategy import PolicyFields
from serene.wire import ROOT, SERENE_UDP_PORT, SWITCH_IP, SWITCH_MAC, mac_bytes, members_field

FLOOD_GROUP = 1  # p4src/include/sizes.p4: the multicast group of ordinary traffic
JOB_GROUPS = 16  # job 0's multicast group; the other jobs' follow
ECHOES = 128  # p4src/v1model/root_answer.p4
CPU_PORT = 255


class Kind(Enum):
    """The type of an update. The switch answers with an error if the update does not fit its present entries."""

    INSERT = "insert"
    MODIFY = "modify"
    DELETE = "delete"


class Entity:
    """An entity that a controller writes: +x inserts it, ~x modifies the entity with the same key, -x deletes that."""

    def __pos__(self) -> Update:
        return Update(Kind.INSERT, self)

    def __invert__(self) -> Update:
        return Update(Kind.MODIFY, self)

    def __neg__(self) -> Update:
        return Update(Kind.DELETE, self)


class Update(NamedTuple):
    kind: Kind
    entity: Entity


Updates = list[Update]


@dataclass(frozen=True)
class Entry(Entity):
    """A table's entry; every match is exact. table, action: the last part of their names. match, params: by name, in
    the program's order. action: empty if only the key matters. note: data that the controller stores with the entry and
    the data plane ignores (P4Runtime's ``metadata``)."""

    table: str
    match: Mapping[str, int]
    action: str = ""
    params: Mapping[str, int] = field(default_factory=dict)
    note: bytes = b""

    @property
    def key(self) -> tuple[str, tuple[int, ...]]:
        """The table and the match key, which identify the entry."""
        return self.table, tuple(self.match.values())


@dataclass(frozen=True)
class Group(Entity):
    """A multicast group. replicas: (port, replica) pairs."""

    number: int
    replicas: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Cell(Entity):
    """A cell of a counter. Only ~cell is useful: it resets the counter to zero."""

    counter: str
    index: int = 0


@dataclass(frozen=True)
class Digest(Entity):
    """A type of digests that the switch has to send."""

    name: str


# Addresses


@dataclass(frozen=True)
class SwitchAddress:
    """The addresses of a data plane, as text."""

    ip: str
    mac: str


OWN = SwitchAddress(SWITCH_IP, SWITCH_MAC)


@dataclass(frozen=True)
class Endpoint:
    """A worker's place in the network: its port at the switch, its addresses as text, and its incarnation. The
    incarnation is a random number that its process drew when it joined. rack: with several switches, the number of the
    leaf that has the port; else 0."""

    port: int
    mac: str
    ip: str
    udp_port: int
    incarnation: int
    rack: int = 0

    @property
    def behind(self) -> tuple[int, int]:
        """Rack and port."""
        return (self.rack, self.port)

    @property
    def host(self) -> tuple[int, int, str, str]:
        """The part that does not change when a worker's process restarts."""
        return (self.rack, self.port, self.mac, self.ip)

    def __str__(self) -> str:
        where = f"port {self.port}" if not self.rack else f"port {self.port} of rack {self.rack}"
        return f"{where} ({self.mac}, {self.ip}:{self.udp_port})"


def number(address: str) -> int:
    """A MAC or an IPv4 address as a number."""
    if ":" in address:
        return int.from_bytes(mac_bytes(address), "big")
    return int(ipaddress.IPv4Address(address))


def mac_text(mac: int) -> str:
    """``0x020000000001`` as ``02:00:00:00:00:01``."""
    return ":".join(f"{octet:02x}" for octet in mac.to_bytes(6, "big"))


# The switch itself


def own_addresses(own: SwitchAddress = OWN) -> list[Entry]:
    """The switch's own addresses. No host may send from them, because workers trust packets from these addresses."""
    return [
        Entry("switch_address", {"ip": number(own.ip)}, "answer_arp", {"mac": number(own.mac)}),
        Entry("switch_mac", {"mac": number(own.mac)}, "impostor"),
        Entry("switch_ip", {"ip": number(own.ip)}, "impostor"),
    ]


def flood_group(ports: Iterable[int]) -> Group:
    return Group(FLOOD_GROUP, tuple((port, 0) for port in ports))


def learning_digest() -> Digest:
    return Digest("learned_source_t")


def known_source(mac: str, port: int) -> Entry:
    return Entry("known_source", {"source": number(mac), "port": port}, "NoAction")


def forward(mac: str, port: int) -> Entry:
    return Entry("forward", {"destination": number(mac)}, "to_port", {"port": port})


# A job


def member(job: int, worker: int, at: Endpoint) -> Entry:
    match = {"port": at.port, "mac": number(at.mac), "ip": number(at.ip), "udp_port": at.udp_port}
    return Entry("member", {**match, "job": job, "worker": worker, "incarnation": at.incarnation}, "admit")


def address(job: int, worker: int, at: Endpoint, own: SwitchAddress = OWN) -> Entry:
    params = {
        "mac": number(at.mac),
        "ip": number(at.ip),
        "udp_port": at.udp_port,
        "switch_mac": number(own.mac),
        "switch_ip": number(own.ip),
    }
    return Entry("address", {"job": job, "worker": worker}, "to_member", params)


def job_group(job: int, members: Mapping[int, Endpoint], *others: tuple[int, int]) -> Group:
    """The receivers of a release's copies. others: further (port, replica) pairs."""
    return Group(JOB_GROUPS + job, (*((at.port, worker + 1) for worker, at in members.items()), *others))


def job(
    job: int, *, first_slot: int, slots: int, vector_length: int, scale: int, limit: int, workers: int,
    lost_sessions: int, note: bytes = b"",
) -> Entry:  # fmt: skip
    """limit: in units of 1 / scale. workers: up to 256; the entry has 0 for 256."""
    params = {
        "first_slot": first_slot,
        "slots": slots,
        "vector_length": vector_length,
        "scale": scale,
        "limit": limit,
        "workers": workers & 0xFF,
        "lost_sessions": lost_sessions,
        "share": -(-65536 // workers),  # rounded up: the data plane multiplies by it instead of dividing
    }
    return Entry("job", {"job": job}, "set_job", params, note)


def policy(job: int, session: int, epoch: int, fields: PolicyFields, members: int | None = None) -> Entry:
    """members: the number of members at all switches; by default, those of ``fields``."""
    params = {"session": session, "epoch": epoch, **_fields(fields, "staleness", members)}
    return Entry("policy", {"job": job}, "set_policy", params)


def _fields(fields: PolicyFields, staleness: str, members: int | None) -> dict[str, int]:
    """staleness: the name of the parameter for the staleness bound."""
    return {
        "member_mask": fields.member_mask,
        "sync_mask": fields.sync_mask,
        staleness: fields.staleness,
        "quorum": fields.quorum & 0xFF,
        "read_mode": int(fields.read_mode),
        "members": members_field(fields.members if members is None else members, fields.precision),
    }


# A tree of switches (docs/hierarchy.md): the root is a member of each leaf's job, and the leaves are the root's


def leaf_address(rack: int, size: int) -> SwitchAddress:
    """The address from which a leaf sends to the root. size: the number of the job's workers in that rack; a controller
    that takes over reads it from the address."""
    return SwitchAddress(f"10.0.253.{rack + 1}", f"02:00:00:{size:02x}:fd:{rack:02x}")


def leaf_at(rack: int, size: int, session: int) -> Endpoint:
    """A leaf's endpoint at the root, whose ports to the leaves are 1, 2, ... A switch's incarnation is the session."""
    own = leaf_address(rack, size)
    return Endpoint(rack + 1, own.mac, own.ip, SERENE_UDP_PORT, session)


def root_at(port: int, session: int, own: SwitchAddress = OWN) -> Endpoint:
    """The root's endpoint at a leaf."""
    return Endpoint(port, own.mac, own.ip, SERENE_UDP_PORT, session)


def uplink(job: int, rack: int, size: int, port: int, root: SwitchAddress = OWN) -> Entry:
    """A leaf's entry with the root's addresses and the leaf's own rack. size: the job's workers in the rack; port: to
    the root."""
    own = leaf_address(rack, size)
    params = {"port": port, "rack": rack, "mac": number(root.mac), "ip": number(root.ip)}
    return Entry("root", {"job": job}, "set_root", {**params, "own_mac": number(own.mac), "own_ip": number(own.ip)})


def prepared(job: int, session: int, epoch: int, policy: LeafPolicy, members: int | None = None) -> Entry:
    """An epoch's policy at a leaf. The leaf puts it in force when the root announces the epoch. members: of the whole
    job."""
    params = {
        **_fields(policy.fields, "staleness_bound", members),
        "enough": policy.enough,
        "by_arrivals": int(policy.by_arrivals),
        "flush_mask": policy.flush_mask,
    }
    return Entry("prepared", {"job": job, "session": session, "epoch": epoch}, "set_prepared", params)


def not_prepared(job: int, session: int, epoch: int) -> Entry:
    return Entry("prepared", {"job": job, "session": session, "epoch": epoch})


def leaf_group(job: int, here: Mapping[int, Endpoint], port: int) -> Group:
    """A rack's workers, and the root behind ``port``."""
    return job_group(job, here, (port, ROOT + 1))


def root_group(job: int, ports: Iterable[tuple[int, int]]) -> Group:
    """The leaves, two replicas each: one copy may echo a worker's request. ports: (rack, the root's port to its
    leaf)."""
    return Group(JOB_GROUPS + job, tuple((port, first + rack + 1) for rack, port in ports for first in (0, ECHOES)))
