"""The program's tables as finsy entities: plans become updates; what a switch holds is read back."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import finsy as fy

from controller.plans import Endpoint, Policy, Readmission, Start, Swap
from controller.slots import SlotRange
from serene.strategy import PolicyFields
from serene.wire import ReadMode

FLOOD_GROUP = 1
JOB_GROUPS = 16
LEARNED = "learned_source_t"

Updates = list[Any]


@dataclass(frozen=True)
class SwitchAddress:
    """The address under which the data plane itself answers."""

    ip: str
    mac: str


# The switch itself


def switch_address(address: SwitchAddress) -> fy.P4TableEntry:
    return fy.P4TableEntry(
        "switch_address", match=fy.Match(ip=address.ip), action=fy.Action("answer_arp", mac=address.mac)
    )


def flood_group(ports: Iterable[int]) -> fy.P4MulticastGroupEntry:
    return fy.P4MulticastGroupEntry(FLOOD_GROUP, replicas=list(ports))


def learning_digest() -> fy.P4DigestEntry:
    return fy.P4DigestEntry(LEARNED, max_list_size=16, max_timeout_ns=10_000_000, ack_timeout_ns=1_000_000_000)


def known_source(mac: str, port: int) -> fy.P4TableEntry:
    return fy.P4TableEntry("known_source", match=fy.Match(source=mac, port=port), action=fy.Action("NoAction"))


def forward(mac: str, port: int) -> fy.P4TableEntry:
    return fy.P4TableEntry("forward", match=fy.Match(destination=mac), action=fy.Action("to_port", port=port))


# A job


def member(job: int, worker: int, at: Endpoint) -> fy.P4TableEntry:
    return fy.P4TableEntry(
        "member",
        action=fy.Action("admit"),
        match=fy.Match(port=at.port, mac=at.mac, ip=at.ip, udp_port=at.udp_port, job=job, worker=worker),
    )


def address(job: int, worker: int, at: Endpoint, switch: SwitchAddress) -> fy.P4TableEntry:
    return fy.P4TableEntry(
        "address",
        match=fy.Match(job=job, worker=worker),
        action=fy.Action(
            "to_member",
            mac=at.mac,
            ip=at.ip,
            udp_port=at.udp_port,
            switch_mac=switch.mac,
            switch_ip=switch.ip,
        ),
    )


def job_group(job: int, members: Mapping[int, Endpoint]) -> fy.P4MulticastGroupEntry:
    return fy.P4MulticastGroupEntry(
        JOB_GROUPS + job, replicas=[(at.port, worker + 1) for worker, at in members.items()]
    )


def share_of(workers: int) -> int:
    """1 / workers as a fraction of 2**16, rounded up: the data plane divides by multiplying with it."""
    return -(-65536 // workers)


def job_entry(
    job: int, slots: SlotRange, vector_length: int, scale: int, workers: int, incarnation: int
) -> fy.P4TableEntry:
    return fy.P4TableEntry(
        "job",
        match=fy.Match(job=job),
        action=fy.Action(
            "set_job",
            first_slot=slots.first,
            slots=slots.count,
            vector_length=vector_length,
            scale=scale,
            workers=workers,
            incarnation=incarnation,
            share=share_of(workers),
        ),
    )


def policy_entry(job: int, policy: Policy) -> fy.P4TableEntry:
    fields = policy.fields
    return fy.P4TableEntry(
        "policy",
        match=fy.Match(job=job),
        action=fy.Action(
            "set_policy",
            session=policy.session,
            epoch=policy.epoch,
            sync_mask=fields.sync_mask,
            staleness=fields.staleness,
            quorum=fields.quorum,
            read_mode=int(fields.read_mode),
        ),
    )


# Plans. A packet gets in through `member`, so that table comes last when a job begins and first when it ends.


def start(plan: Start, switch: SwitchAddress) -> Updates:
    return [
        +job_group(plan.job, plan.members),
        *(+address(plan.job, worker, at, switch) for worker, at in plan.members.items()),
        +job_entry(plan.job, plan.slots, plan.vector_length, plan.scale, len(plan.members), plan.incarnation),
        +policy_entry(plan.job, plan.policy),
        *(+member(plan.job, worker, at) for worker, at in plan.members.items()),
    ]


def swap(plan: Swap) -> Updates:
    return [~policy_entry(plan.job, plan.policy)]


def readmission(plan: Readmission, switch: SwitchAddress) -> Updates:
    if plan.old is None:
        return [
            ~job_group(plan.job, plan.members),
            +address(plan.job, plan.worker, plan.new, switch),
            *swap(plan.swap),
            +member(plan.job, plan.worker, plan.new),
        ]
    return [
        -member(plan.job, plan.worker, plan.old),
        ~address(plan.job, plan.worker, plan.new, switch),
        *swap(plan.swap),
        +member(plan.job, plan.worker, plan.new),
    ]


def removal(job: int, members: Mapping[int, Endpoint]) -> Updates:
    """Everything of a job. A DELETE names its key only, so that it holds whatever the entry said."""
    return [
        *(-fy.P4TableEntry("member", match=member(job, worker, at).match) for worker, at in members.items()),
        -fy.P4TableEntry("policy", match=fy.Match(job=job)),
        -fy.P4TableEntry("job", match=fy.Match(job=job)),
        *(-fy.P4TableEntry("address", match=fy.Match(job=job, worker=worker)) for worker in members),
        -fy.P4MulticastGroupEntry(JOB_GROUPS + job),
    ]


# Reading back


@dataclass
class InstalledJob:
    """What a switch holds of a job; a part is None or missing when the switch lacks it."""

    slots: SlotRange | None = None
    vector_length: int = 0
    scale: int = 0
    workers: int = 0
    incarnation: int = 0
    session: int = 0
    epoch: int = 0
    fields: PolicyFields | None = None
    members: dict[int, Endpoint] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Members are written last, all at once in a first session; a later one may begin without those who left."""
        if self.slots is None or self.fields is None or not self.members:
            return False
        counted = {worker for worker in range(32) if self.fields.sync_mask >> worker & 1}
        return len(self.members) == self.workers or (self.incarnation > 0 and counted <= self.members.keys())


@dataclass
class Installed:
    """What a switch holds: jobs by id, and the port each learned address is behind."""

    jobs: dict[int, InstalledJob] = field(default_factory=dict)
    learned: dict[str, int] = field(default_factory=dict)

    def job(self, job: int) -> InstalledJob:
        return self.jobs.setdefault(job, InstalledJob())


def installed(entries: Iterable[fy.P4TableEntry]) -> Installed:
    """Table entries as read from a switch, put together again."""
    found = Installed()
    for entry in entries:
        if entry.is_default_action or entry.match is None or not isinstance(entry.action, fy.Action):
            continue
        key, args = entry.match, entry.action.args
        if entry.table_id == "member":
            found.job(key["job"]).members[key["worker"]] = Endpoint(
                key["port"], mac_text(key["mac"]), str(ipaddress.IPv4Address(key["ip"])), key["udp_port"]
            )
        elif entry.table_id == "job":
            job = found.job(key["job"])
            job.slots = SlotRange(args["first_slot"], args["slots"])
            job.vector_length, job.scale, job.workers = args["vector_length"], args["scale"], args["workers"]
            job.incarnation = args["incarnation"]
        elif entry.table_id == "policy":
            job = found.job(key["job"])
            job.session, job.epoch = args["session"], args["epoch"]
            job.fields = PolicyFields(
                sync_mask=args["sync_mask"],
                staleness=args["staleness"],
                quorum=args["quorum"],
                read_mode=ReadMode(args["read_mode"]),
            )
        elif entry.table_id == "forward":
            found.learned[mac_text(key["destination"])] = args["port"]
    return found


def mac_text(mac: int) -> str:
    """``0x020000000001`` as ``02:00:00:00:00:01``."""
    return ":".join(f"{octet:02x}" for octet in mac.to_bytes(6, "big"))
