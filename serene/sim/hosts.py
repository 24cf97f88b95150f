"""Workers' places at a switch in process, and the entries of a whole job there: for runs that have no controller."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from serene import entries
from serene.entries import CPU_PORT, Endpoint, Entry
from serene.fixedpoint import DEFAULT_LIMIT, DEFAULT_SCALE
from serene.strategy import PolicyFields
from serene.wire import SERENE_UDP_PORT, SWITCH_IP, SWITCH_MAC, encapsulation


@dataclass(frozen=True)
class Host(Endpoint):
    """A worker's place, by default with the UDP port and incarnation of the first process there."""

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
        return frame_head(self, payload_bytes)


def frame_head(at: Endpoint, payload_bytes: int) -> bytes:
    """Ethernet, IPv4 and UDP headers of packets to the switch."""
    source, switch = (at.mac, at.ip, at.udp_port), (SWITCH_MAC, SWITCH_IP, SERENE_UDP_PORT)
    return encapsulation(payload_bytes, source=source, destination=switch)


def job_of(
    job_id: int, *, slots: int, vector_length: int, workers: int, first_slot: int = 0, scale: int = DEFAULT_SCALE,
    limit: float = DEFAULT_LIMIT, lost_sessions: int = 0,
) -> Entry:  # fmt: skip
    """A job's slots and sizes."""
    return entries.job(
        job_id, first_slot=first_slot, slots=slots, vector_length=vector_length, scale=scale,
        limit=round(limit * scale), workers=workers, lost_sessions=lost_sessions,
    )  # fmt: skip


def running_job(
    job_id: int,
    hosts: Mapping[int, Endpoint],
    fields: PolicyFields,
    *,
    slots: int,
    vector_length: int,
    first_slot: int = 0,
    session: int = 1,
    epoch: int = 1,
) -> list[Entry]:
    """All entries of a job whose workers have joined. hosts: by worker. The multicast group is not an entry."""
    return [
        job_of(job_id, slots=slots, vector_length=vector_length, workers=len(hosts), first_slot=first_slot),
        entries.policy(job_id, session, epoch, fields),
        *(entries.address(job_id, worker, host) for worker, host in hosts.items()),
        *(entries.member(job_id, worker, host) for worker, host in hosts.items()),
    ]
