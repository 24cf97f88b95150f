"""The program's tables as finsy entities: plans become updates; what a switch holds is read back."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import finsy as fy
from finsy.p4entity import P4UpdateList

from controller.jobs.plans import Endpoint, Policy, Readmission, Start, Swap
from controller.jobs.slots import SlotRange
from serene.racks import Racks
from serene.strategy import PolicyFields
from serene.wire import ReadMode, members_field, precision_in

FLOOD_GROUP = 1
JOB_GROUPS = 16
LEARNED = "learned_source_t"

Updates = list[P4UpdateList]


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


def impostor_mac(address: SwitchAddress) -> fy.P4TableEntry:
    """Nobody else may send from the switch's addresses: workers believe what the switch says."""
    return fy.P4TableEntry("switch_mac", match=fy.Match(mac=address.mac), action=fy.Action("impostor"))


def impostor_ip(address: SwitchAddress) -> fy.P4TableEntry:
    """The same, in IPv4 and ARP."""
    return fy.P4TableEntry("switch_ip", match=fy.Match(ip=address.ip), action=fy.Action("impostor"))


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
        match=fy.Match(
            port=at.port,
            mac=at.mac,
            ip=at.ip,
            udp_port=at.udp_port,
            job=job,
            worker=worker,
            incarnation=at.incarnation,
        ),
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
    """1 / workers as a fraction of 2**16, rounded up: the data plane multiplies by it instead of dividing."""
    return -(-65536 // workers)


def job_entry(plan: Start) -> fy.P4TableEntry:
    return fy.P4TableEntry(
        "job",
        match=fy.Match(job=plan.job),
        action=fy.Action(
            "set_job",
            first_slot=plan.slots.first,
            slots=plan.slots.count,
            vector_length=plan.vector_length,
            scale=plan.scale,
            limit=plan.limit,
            workers=len(plan.members) & 0xFF,  # a byte: over racks 256 is 0
            lost_sessions=plan.lost_sessions,
            share=share_of(len(plan.members)),
        ),
    )


def policy_entry(job: int, policy: Policy) -> fy.P4TableEntry:
    return policy_of(job, policy.session, policy.epoch, policy.fields, policy.fields.members)


def policy_of(job: int, session: int, epoch: int, fields: PolicyFields, members: int) -> fy.P4TableEntry:
    """members: how many take part, who may be more than this switch's."""
    return fy.P4TableEntry(
        "policy",
        match=fy.Match(job=job),
        action=fy.Action(
            "set_policy",
            session=session,
            epoch=epoch,
            member_mask=fields.member_mask,
            sync_mask=fields.sync_mask,
            staleness=fields.staleness,
            quorum=fields.quorum,
            read_mode=int(fields.read_mode),
            members=members_field(members, fields.precision),
        ),
    )


# Plans. The table `member` admits packets, so it is written last when a job begins and first when it ends.


def job_entries(plan: Start, switch: SwitchAddress) -> Updates:
    """All of a job but its policy and its members."""
    return [
        +job_group(plan.job, plan.members),
        *(+address(plan.job, worker, at, switch) for worker, at in plan.members.items()),
        +job_entry(plan),
    ]


def members(plan: Start) -> Updates:
    return [+member(plan.job, worker, at) for worker, at in plan.members.items()]


def swap(plan: Swap) -> Updates:
    return [~policy_entry(plan.job, plan.policy)]


def no_member(job: int, worker: int, at: Endpoint) -> Updates:
    """A DELETE names its key only, so that it holds whatever the entry said."""
    return [-fy.P4TableEntry("member", match=member(job, worker, at).match)]


def readmission(plan: Readmission) -> Updates:
    """The last step of a readmission: a new epoch, and the worker's entry in `member`."""
    return [*swap(plan.swap), +member(plan.job, plan.worker, plan.new)]


def removal(job: int, members: Mapping[int, Endpoint]) -> Updates:
    """Everything of a job but its policy, which tells a new controller which session was the last."""
    return [
        *(update for worker, at in members.items() for update in no_member(job, worker, at)),
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
    limit: int = 0
    workers: int = 0
    lost_sessions: int = 0
    session: int = 0
    epoch: int = 0
    fields: PolicyFields | None = None
    members: dict[int, Endpoint] = field(default_factory=dict)
    strays: list[tuple[int, Endpoint]] = field(default_factory=list)  # more entries in `member`: a worker has one
    racks: Racks | None = None  # of a job over several switches
    lost: bool = False  # one of them has lost its part, so the session is over; this is what the others say
    absent: int = 0  # then: of the workers that seem to take part, so many do not, and nobody knows which
    # What one of these holds of it (controller/switch/tree_entries.py), by (session, epoch) and worker:
    prepared: dict[tuple[int, int], PolicyFields] = field(default_factory=dict)
    taking_part: dict[tuple[int, int], int] = field(default_factory=dict)  # a leaf's: of the whole job, mod 256
    addresses: set[int] = field(default_factory=set)
    rack: int | None = None  # a leaf's
    rack_size: int | None = None  # a leaf's: workers in the rack

    @property
    def complete(self) -> bool:
        """Members are written last and all at once; one that is missing was about to be admitted again."""
        return self.slots is not None and self.fields is not None and bool(self.members) and not self.lost

    @property
    def record(self) -> bool:
        """Whether only the policy of a finished job is left."""
        return self.slots is None and not self.members and self.rack_size is None and not self.lost

    @property
    def bare(self) -> bool:
        """Whether a leaf or the root holds a record alone; of what was written first, something may be left."""
        return self.record and not self.prepared and not self.addresses


@dataclass
class Installed:
    """What a switch holds: jobs by id, the port each address is forwarded to, and which are known behind which port."""

    jobs: dict[int, InstalledJob] = field(default_factory=dict)
    forwarded: dict[str, int] = field(default_factory=dict)
    known: set[tuple[str, int]] = field(default_factory=set)

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
            job, worker = found.job(key["job"]), key["worker"]
            at = Endpoint(
                key["port"],
                mac_text(key["mac"]),
                str(ipaddress.IPv4Address(key["ip"])),
                key["udp_port"],
                key["incarnation"],
            )
            if worker in job.members:
                job.strays.append((worker, at))
            else:
                job.members[worker] = at
        elif entry.table_id == "job":
            job = found.job(key["job"])
            job.slots = SlotRange(args["first_slot"], args["slots"])
            job.vector_length, job.scale, job.limit = args["vector_length"], args["scale"], args["limit"]
            job.workers, job.lost_sessions = args["workers"], args["lost_sessions"]
        elif entry.table_id == "policy":
            job = found.job(key["job"])
            job.session, job.epoch = args["session"], args["epoch"]
            job.fields = PolicyFields(
                member_mask=args["member_mask"],
                sync_mask=args["sync_mask"],
                staleness=args["staleness"],
                quorum=args["quorum"],
                read_mode=ReadMode(args["read_mode"]),
                precision=precision_in(args["members"]) or 32,
            )
        elif entry.table_id == "prepared":
            job, era = found.job(key["job"]), (key["session"], key["epoch"])
            job.prepared[era] = PolicyFields(
                args["member_mask"],
                args["sync_mask"],
                args["staleness_bound"],
                args["quorum"],
                ReadMode(args["read_mode"]),
                precision_in(args["members"]) or 32,
            )
            job.taking_part[era] = args["members"]
        elif entry.table_id == "root":
            job = found.job(key["job"])
            job.rack, job.rack_size = args["rack"], args["own_mac"] >> 16 & 0xFF
        elif entry.table_id == "address":
            found.job(key["job"]).addresses.add(key["worker"])
        elif entry.table_id == "forward":
            found.forwarded[mac_text(key["destination"])] = args["port"]
        elif entry.table_id == "known_source":
            found.known.add((mac_text(key["source"]), key["port"]))
    return found


def mac_text(mac: int) -> str:
    """``0x020000000001`` as ``02:00:00:00:00:01``."""
    return ":".join(f"{octet:02x}" for octet in mac.to_bytes(6, "big"))
