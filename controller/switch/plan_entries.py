"""Converts the controller's plans to updates, and a switch's entries back to jobs."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from serene import entries
from serene.controller.jobs.plans import Policy, Readmission, Start, Swap
from serene.controller.jobs.slots import SlotRange
from serene.entries import Endpoint, Entry, Group, SwitchAddress, Updates, mac_text
from serene.racks import Racks
from serene.strategy import PolicyFields
from serene.wire import ReadMode, precision_in


def job_entry(plan: Start, members: int) -> Entry:
    """members: their number at this switch, workers or leaves."""
    return entries.job(
        plan.job, first_slot=plan.slots.first, slots=plan.slots.count, vector_length=plan.vector_length,
        scale=plan.scale, limit=plan.limit, workers=members, lost_sessions=plan.lost_sessions, note=plan.note,
    )  # fmt: skip


def policy_entry(job: int, policy: Policy) -> Entry:
    return entries.policy(job, policy.session, policy.epoch, policy.fields)


# Plans. The table `member` admits packets, so it is written last when a job begins, and first when it ends.


def job_entries(plan: Start, switch: SwitchAddress) -> Updates:
    """Inserts all of a job except its policy and its entries in `member`."""
    return [
        +entries.job_group(plan.job, plan.members),
        *(+entries.address(plan.job, worker, at, switch) for worker, at in plan.members.items()),
        +job_entry(plan, max(plan.places, len(plan.members))),
    ]


def members(plan: Start) -> Updates:
    return [+entries.member(plan.job, worker, at) for worker, at in plan.members.items()]


def swap(plan: Swap) -> Updates:
    return [~policy_entry(plan.job, plan.policy)]


def no_member(job: int, worker: int, at: Endpoint) -> Updates:
    """Deletes an entry in `member`."""
    return [-entries.member(job, worker, at)]


def readmission(plan: Readmission) -> Updates:
    """The last step of a readmission: a new epoch, and the worker's entry in `member`."""
    return [*swap(plan.swap), +entries.member(plan.job, plan.worker, plan.new)]


# Reading back


@dataclass
class InstalledJob:
    """The entries of a job in a switch, or in several together. A part is None or empty if they lack it."""

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
    lost: bool = False  # one of several switches has lost its part, so the session is over; the others have the rest
    note: bytes = b""  # as of `Start`
    absent: int = 0  # then: the number of apparent participants that do not take part; it is not known which
    # Further entries of one switch of a tree (controller/switch/tree_entries.py); policies by (session, epoch):
    prepared: dict[tuple[int, int], PolicyFields] = field(default_factory=dict)
    taking_part: dict[tuple[int, int], int] = field(default_factory=dict)  # at a leaf: members of the whole job mod 256
    addresses: set[int] = field(default_factory=set)  # the workers, or at the root the racks, with an address
    rack: int | None = None  # at a leaf: its rack
    rack_size: int | None = None  # at a leaf: the job's workers in the rack

    @property
    def complete(self) -> bool:
        """Whether a job was written completely. One worker's entry in `member` is enough: they are written last, by one
        request. A worker without one was being readmitted."""
        return self.slots is not None and self.fields is not None and bool(self.members) and not self.lost

    @property
    def record(self) -> bool:
        """Whether only the policy of a finished job is left."""
        return self.slots is None and not self.members and self.rack_size is None and not self.lost

    @property
    def bare(self) -> bool:
        """Whether a leaf or the root holds only a record, and no entry that is written before a job's other entries."""
        return self.record and not self.prepared and not self.addresses


@dataclass
class Installed:
    """A switch's entries. jobs: by id. forwarded: the port to which frames for each MAC address go. known: pairs of a
    MAC address and its known port."""

    jobs: dict[int, InstalledJob] = field(default_factory=dict)
    forwarded: dict[str, int] = field(default_factory=dict)
    known: set[tuple[str, int]] = field(default_factory=set)

    def job(self, job: int) -> InstalledJob:
        """The job with this id; an empty one is made if it is missing."""
        return self.jobs.setdefault(job, InstalledJob())


def installed(held: Iterable[Entry]) -> Installed:
    """Collects the table entries that were read from a switch."""
    found = Installed()
    for entry in held:
        key, args = entry.match, entry.params
        if entry.table == "member":
            job, worker = found.job(key["job"]), key["worker"]
            ip = str(ipaddress.IPv4Address(key["ip"]))
            at = Endpoint(key["port"], mac_text(key["mac"]), ip, key["udp_port"], key["incarnation"])
            if worker in job.members:
                job.strays.append((worker, at))
            else:
                job.members[worker] = at
        elif entry.table == "job":
            job = found.job(key["job"])
            job.slots = SlotRange(args["first_slot"], args["slots"])
            job.vector_length, job.scale, job.limit = args["vector_length"], args["scale"], args["limit"]
            job.workers, job.lost_sessions, job.note = args["workers"], args["lost_sessions"], entry.note
        elif entry.table == "policy":
            job = found.job(key["job"])
            job.session, job.epoch = args["session"], args["epoch"]
            job.fields = _fields(args, "staleness")
        elif entry.table == "prepared":
            job, era = found.job(key["job"]), (key["session"], key["epoch"])
            job.prepared[era] = _fields(args, "staleness_bound")
            job.taking_part[era] = args["members"]
        elif entry.table == "root":
            job = found.job(key["job"])
            job.rack, job.rack_size = args["rack"], args["own_mac"] >> 16 & 0xFF
        elif entry.table == "address":
            found.job(key["job"]).addresses.add(key["worker"])
        elif entry.table == "forward":
            found.forwarded[mac_text(key["destination"])] = args["port"]
        elif entry.table == "known_source":
            found.known.add((mac_text(key["source"]), key["port"]))
    return found


def _fields(args: Mapping[str, int], staleness: str) -> PolicyFields:
    """staleness: the name of that parameter."""
    return PolicyFields(
        args["member_mask"], args["sync_mask"], args[staleness], args["quorum"], ReadMode(args["read_mode"]),
        precision_in(args["members"]) or 32,
    )  # fmt: skip


def removal(job: int, held: InstalledJob) -> Updates:
    """Deletes a switch's entries of a job, except its policy, from which a new controller reads the last session."""
    members = [*held.members.items(), *held.strays]
    return [
        *(update for who, at in members for update in no_member(job, who, at)),
        *([-Entry("job", {"job": job})] if held.slots is not None else []),
        *(-Entry("address", {"job": job, "worker": who}) for who in sorted(held.addresses)),
        *(-entries.not_prepared(job, session, epoch) for session, epoch in held.prepared),
        *([-Entry("root", {"job": job})] if held.rack_size is not None else []),
        -Group(entries.JOB_GROUPS + job),
    ]
