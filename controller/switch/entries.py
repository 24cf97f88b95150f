"""The program's table entries as finsy entities: from plans to updates, and from what a switch holds back to jobs."""

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

FLOOD_GROUP = 1  # multicast group of ordinary traffic
JOB_GROUPS = 16  # job 0's multicast group; the other jobs' follow
LEARNED = "learned_source_t"  # the digest's type

Updates = list[P4UpdateList]


@dataclass(frozen=True)
class SwitchAddress:
    """The address under which the data plane itself answers, as text."""

    ip: str
    mac: str


# The switch itself


def switch_address(address: SwitchAddress) -> fy.P4TableEntry:
    return fy.P4TableEntry(
        "switch_address", match=fy.Match(ip=address.ip), action=fy.Action("answer_arp", mac=address.mac)
    )


def impostor_mac(address: SwitchAddress) -> fy.P4TableEntry:
    """Drops frames from hosts that send from the switch's MAC address: workers believe what the switch says."""
    return fy.P4TableEntry("switch_mac", match=fy.Match(mac=address.mac), action=fy.Action("impostor"))


def impostor_ip(address: SwitchAddress) -> fy.P4TableEntry:
    """The same for its IP address, in IPv4 and ARP."""
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
    """members: how many workers take part, at other switches too."""
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


# Plans. The table `member` admits packets, so it is written last when a job begins, and first when it ends.


def job_entries(plan: Start, switch: SwitchAddress) -> Updates:
    """Inserts all of a job but its policy and its entries in `member`."""
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
    """Deletes an entry in `member`. A DELETE needs only the key, whatever the entry said."""
    return [-fy.P4TableEntry("member", match=member(job, worker, at).match)]


def readmission(plan: Readmission) -> Updates:
    """The last step of a readmission: a new epoch, and the worker's entry in `member`."""
    return [*swap(plan.swap), +member(plan.job, plan.worker, plan.new)]


def removal(job: int, members: Mapping[int, Endpoint]) -> Updates:
    """Deletes all of a job but its policy, which tells a new controller which session was the last."""
    return [
        *(update for worker, at in members.items() for update in no_member(job, worker, at)),
        -fy.P4TableEntry("job", match=fy.Match(job=job)),
        *(-fy.P4TableEntry("address", match=fy.Match(job=job, worker=worker)) for worker in members),
        -fy.P4MulticastGroupEntry(JOB_GROUPS + job),
    ]


# Reading back


@dataclass
class InstalledJob:
    """What a switch, or several together, hold of a job; a part is None or missing where they lack it."""

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
    strays: list[tuple[int, Endpoint]] = field(default_factory=list)  # entries in `member` beyond a worker's one
    racks: Racks | None = None  # of a job over several switches
    lost: bool = False  # one of several switches has lost its part, so the session is over; the others say the rest
    absent: int = 0  # then: of the workers that seem to take part, so many do not, and nobody knows which
    # What one switch of a tree holds besides (controller/switch/tree_entries.py); policies by (session, epoch):
    prepared: dict[tuple[int, int], PolicyFields] = field(default_factory=dict)
    taking_part: dict[tuple[int, int], int] = field(default_factory=dict)  # at a leaf: members of the whole job mod 256
    addresses: set[int] = field(default_factory=set)  # the workers, or at the root the racks, with an address
    rack: int | None = None  # at a leaf: which one is its rack
    rack_size: int | None = None  # at a leaf: the job's workers in the rack

    @property
    def complete(self) -> bool:
        """Whether a job was written whole. One worker's entry in `member` is enough: they are written last and all at
        once, and a worker without one was about to be readmitted."""
        return self.slots is not None and self.fields is not None and bool(self.members) and not self.lost

    @property
    def record(self) -> bool:
        """Whether only the policy of a finished job is left."""
        return self.slots is None and not self.members and self.rack_size is None and not self.lost

    @property
    def bare(self) -> bool:
        """Whether a leaf or the root holds a record alone, and nothing of what is written before a job's other
        entries."""
        return self.record and not self.prepared and not self.addresses


@dataclass
class Installed:
    """What a switch holds. jobs: by id. forwarded: the port to which frames for each MAC address go. known: pairs of a
    MAC address and the port behind which it is known."""

    jobs: dict[int, InstalledJob] = field(default_factory=dict)
    forwarded: dict[str, int] = field(default_factory=dict)
    known: set[tuple[str, int]] = field(default_factory=set)

    def job(self, job: int) -> InstalledJob:
        """The job with this id, made if there is none yet."""
        return self.jobs.setdefault(job, InstalledJob())


def installed(entries: Iterable[fy.P4TableEntry]) -> Installed:
    """What table entries, as read from a switch, say together."""
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
