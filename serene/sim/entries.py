"""The program's table entries as numbers, for a switch in process and for tests of either target.

The controller writes the same entries by name, over P4Runtime (controller/switch/entries.py).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from serene.fixedpoint import DEFAULT_LIMIT, DEFAULT_SCALE
from serene.racks import LeafPolicy
from serene.strategy import PolicyFields
from serene.wire import ROOT, SERENE_UDP_PORT, SWITCH_IP, SWITCH_MAC, encapsulation, mac_bytes

FLOOD_GROUP = 1  # p4src/include/sizes.p4
JOB_GROUPS = 16  # job j's multicast group is JOB_GROUPS + j
CPU_PORT = 255


class Entry(NamedTuple):
    """table and action by the last part of their names; every match is exact."""

    table: str
    match: Sequence[int]
    action: str
    params: Sequence[int] = ()


def number(address: str) -> int:
    """A MAC or an IPv4 address as a number."""
    if ":" in address:
        return int.from_bytes(mac_bytes(address), "big")
    return int(ipaddress.IPv4Address(address))


@dataclass(frozen=True)
class Host:
    """A worker's place: its port of the switch, its addresses, and its process's incarnation."""

    port: int
    mac: str
    ip: str
    udp_port: int = 40000
    incarnation: int = 1

    @classmethod
    def of(cls, worker: int) -> Host:
        """Port and addresses derived from the worker's id; port 255 is the controller's."""
        port = worker + 1 if worker + 1 < CPU_PORT else worker + 2
        return cls(port, f"02:00:00:00:{port >> 7:02x}:{port & 0x7F:02x}", f"10.0.{port >> 7}.{port & 0x7F}")

    def restarted(self) -> Host:
        """The next process, at the same addresses."""
        return replace(self, incarnation=self.incarnation + 1)

    def frame_head(self, payload_bytes: int) -> bytes:
        """Ethernet, IPv4 and UDP headers of its packets to the switch."""
        source, switch = (self.mac, self.ip, self.udp_port), (SWITCH_MAC, SWITCH_IP, SERENE_UDP_PORT)
        return encapsulation(payload_bytes, source=source, destination=switch)


def own_addresses() -> list[Entry]:
    """The entries for the switch's own addresses, which nobody else may use."""
    return [
        Entry("switch_address", [number(SWITCH_IP)], "answer_arp", [number(SWITCH_MAC)]),
        Entry("switch_mac", [number(SWITCH_MAC)], "impostor"),
        Entry("switch_ip", [number(SWITCH_IP)], "impostor"),
    ]


def member(host: Host, job: int, worker: int) -> Entry:
    place = [number(host.mac), number(host.ip), host.udp_port]
    return Entry("member", [host.port, *place, job, worker, host.incarnation], "admit")


def address(host: Host, job: int, worker: int) -> Entry:
    place = [number(host.mac), number(host.ip), host.udp_port]
    return Entry("address", [job, worker], "to_member", [*place, number(SWITCH_MAC), number(SWITCH_IP)])


def job(
    job: int,
    *,
    slots: int,
    vector_length: int,
    workers: int,
    first_slot: int = 0,
    scale: int = DEFAULT_SCALE,
    limit: float = DEFAULT_LIMIT,
    lost_sessions: int = 0,
) -> Entry:
    share = -(-65536 // workers)
    params = [first_slot, slots, vector_length, scale, round(limit * scale), workers & 0xFF, lost_sessions, share]
    return Entry("job", [job], "set_job", params)


def policy(job: int, session: int, epoch: int, fields: PolicyFields) -> Entry:
    return Entry(
        "policy",
        [job],
        "set_policy",
        [
            session,
            epoch,
            fields.member_mask,
            fields.sync_mask,
            fields.staleness,
            fields.quorum,
            int(fields.read_mode),
            fields.members_field,
        ],
    )


def running_job(
    job_id: int,
    hosts: Mapping[int, Host],
    fields: PolicyFields,
    *,
    slots: int,
    vector_length: int,
    first_slot: int = 0,
    session: int = 1,
    epoch: int = 1,
) -> list[Entry]:
    """All entries of a job whose workers have joined. hosts: by worker. The multicast group is not an entry."""
    sizes = {"slots": slots, "vector_length": vector_length, "workers": len(hosts), "first_slot": first_slot}
    return [
        job(job_id, **sizes),
        policy(job_id, session, epoch, fields),
        *(address(host, job_id, worker) for worker, host in hosts.items()),
        *(member(host, job_id, worker) for worker, host in hosts.items()),
    ]


def replicas(hosts: Mapping[int, Host]) -> list[tuple[int, int]]:
    """The (port, replica) pairs that get the copies of a release."""
    return [(host.port, worker + 1) for worker, host in hosts.items()]


# -- a tree of switches: its root is a member of each rack, its leaves are the root's ---------------------------

ECHOES = 128  # p4src/v1model/root_answer.p4


def switch_host(port: int, rack: int, session: int) -> Host:
    """A rack's leaf as the root's member, behind a port of the root. A switch's incarnation is the session."""
    return Host(port, f"02:00:00:00:fd:{rack:02x}", f"10.0.253.{rack + 1}", SERENE_UDP_PORT, session)


def root_host(port: int, session: int) -> Host:
    """The root as a leaf's member, behind a port of the leaf."""
    return Host(port, SWITCH_MAC, SWITCH_IP, SERENE_UDP_PORT, session)


def uplink(job: int, rack: int, port: int) -> Entry:
    """A leaf's entry for where the root is."""
    own = switch_host(0, rack, 0)
    ends = [number(address) for address in (SWITCH_MAC, SWITCH_IP, own.mac, own.ip)]
    return Entry("root", [job], "set_root", [port, rack, *ends])


def prepared(job: int, session: int, epoch: int, policy: LeafPolicy) -> Entry:
    """A leaf's entry for an epoch's policy, which is in force as soon as the root says so."""
    fields = policy.fields
    params = [
        fields.member_mask,
        fields.sync_mask,
        fields.staleness,
        fields.quorum & 0xFF,
        int(fields.read_mode),
        fields.members_field,
        policy.enough,
        int(policy.by_arrivals),
        policy.flush_mask,
    ]
    return Entry("prepared", [job, session, epoch], "set_prepared", params)


def leaf_replicas(hosts: Mapping[int, Host], root_port: int) -> list[tuple[int, int]]:
    """A leaf's multicast group: its workers and the root."""
    return [*replicas(hosts), (root_port, ROOT + 1)]


def root_replicas(ports: Sequence[int]) -> list[tuple[int, int]]:
    """The root's multicast group; ports: to the leaves, by rack. Each leaf gets two copies, one of them to echo a
    worker's request."""
    return [(port, first + rack + 1) for rack, port in enumerate(ports) for first in (0, ECHOES)]
