"""What a leaf and the root of a tree of switches have besides a single switch's entries (docs/hierarchy.md): the
switches are admitted at one another, and a leaf holds an epoch's policy before it is in force."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import finsy as fy

from controller.jobs.plans import Endpoint, Start
from controller.switch import entries
from controller.switch.entries import JOB_GROUPS, InstalledJob, SwitchAddress, Updates
from serene.racks import LeafPolicy
from serene.sim.entries import ECHOES
from serene.wire import ROOT, SERENE_UDP_PORT, members_field


def root_port(rack: int) -> int:
    """The root's port to the leaf of a rack."""
    return rack + 1


def leaf_address(rack: int, size: int) -> SwitchAddress:
    """The address from which a leaf sends to the root. size: the job's workers in that rack, which a controller that
    takes over reads from the address (`entries.installed`)."""
    return SwitchAddress(f"10.0.253.{rack + 1}", f"02:00:00:{size:02x}:fd:{rack:02x}")


def rack_size(leaf: Endpoint) -> int:
    """The job's workers in a rack, by its leaf's address."""
    return int(leaf.mac.split(":")[3], 16)


def leaf_at(rack: int, size: int, session: int) -> Endpoint:
    """A leaf as the root sees it. A switch's incarnation is the session."""
    own = leaf_address(rack, size)
    return Endpoint(root_port(rack), own.mac, own.ip, SERENE_UDP_PORT, session)


def root_at(port: int, session: int, own: SwitchAddress) -> Endpoint:
    """The root as a leaf sees it."""
    return Endpoint(port, own.mac, own.ip, SERENE_UDP_PORT, session)


# A leaf


def uplink(job: int, rack: int, size: int, port: int, root: SwitchAddress) -> fy.P4TableEntry:
    """Tells a leaf where the root is, and which rack is its own. size: the job's workers in it; port: to the root."""
    own = leaf_address(rack, size)
    return fy.P4TableEntry(
        "root",
        match=fy.Match(job=job),
        action=fy.Action("set_root", port=port, rack=rack, mac=root.mac, ip=root.ip, own_mac=own.mac, own_ip=own.ip),
    )


def prepared(job: int, session: int, epoch: int, policy: LeafPolicy, members: int) -> fy.P4TableEntry:
    """An epoch's policy at a leaf, in force as soon as the root says so. members: of the whole job."""
    fields = policy.fields
    return fy.P4TableEntry(
        "prepared",
        match=fy.Match(job=job, session=session, epoch=epoch),
        action=fy.Action(
            "set_prepared",
            member_mask=fields.member_mask,
            sync_mask=fields.sync_mask,
            staleness_bound=fields.staleness,
            quorum=fields.quorum,
            read_mode=int(fields.read_mode),
            members=members_field(members, fields.precision),
            enough=policy.enough,
            by_arrivals=int(policy.by_arrivals),
            flush_mask=policy.flush_mask,
        ),
    )


def not_prepared(job: int, session: int, epoch: int) -> fy.P4TableEntry:
    return fy.P4TableEntry("prepared", match=fy.Match(job=job, session=session, epoch=epoch))


def leaf_group(job: int, here: Mapping[int, Endpoint], port: int) -> fy.P4MulticastGroupEntry:
    """A rack's workers, and the root behind ``port``."""
    workers = [(at.port, place + 1) for place, at in here.items()]
    return fy.P4MulticastGroupEntry(JOB_GROUPS + job, replicas=[*workers, (port, ROOT + 1)])


def leaf_entries(
    plan: Start, rack: int, here: Mapping[int, Endpoint], policy: LeafPolicy, port: int, own: SwitchAddress
) -> Updates:
    """Inserts all of a job at a leaf but the policy in force and the entries in `member`. here: the rack's workers by
    their numbers in it; port: to the root."""
    session, epoch = plan.policy.session, plan.policy.epoch
    return [
        +leaf_group(plan.job, here, port),
        *(+entries.address(plan.job, place, at, own) for place, at in here.items()),
        +entries.job_entry(plan),
        +uplink(plan.job, rack, plan.racks.sizes[rack], port, own),
        +prepared(plan.job, session, epoch, policy, plan.policy.fields.members),
    ]


# The root


def root_entries(plan: Start, leaves: Mapping[int, Endpoint], own: SwitchAddress) -> Updates:
    """Inserts all of a job at the root but its policy and its entries in `member`. leaves: by rack."""
    # Each leaf gets two copies, one of which may echo a worker's request.
    replicas = [(at.port, first + rack + 1) for rack, at in leaves.items() for first in (0, ECHOES)]
    return [
        +fy.P4MulticastGroupEntry(JOB_GROUPS + plan.job, replicas=replicas),
        *(+entries.address(plan.job, rack, at, own) for rack, at in leaves.items()),
        +entries.job_entry(replace(plan, members=leaves)),
    ]


# Both


def removal(job: int, held: InstalledJob) -> Updates:
    """Deletes all of a job that a leaf or the root holds but its policy."""
    members = [*held.members.items(), *held.strays]
    return [
        *(update for who, at in members for update in entries.no_member(job, who, at)),
        *([-fy.P4TableEntry("job", match=fy.Match(job=job))] if held.slots is not None else []),
        *(-fy.P4TableEntry("address", match=fy.Match(job=job, worker=who)) for who in sorted(held.addresses)),
        *(-not_prepared(job, session, epoch) for session, epoch in held.prepared),
        *([-fy.P4TableEntry("root", match=fy.Match(job=job))] if held.rack_size is not None else []),
        -fy.P4MulticastGroupEntry(JOB_GROUPS + job),
    ]


def needless_epochs(prepared_epochs: Iterable[tuple[int, int]], session: int, in_force: int) -> list[tuple[int, int]]:
    """The prepared epochs that may be deleted while no swap is under way: all but the one in force and the one before,
    so also those of swaps that failed. Epochs go with their sessions."""
    return [era for era in prepared_epochs if era not in ((session, in_force - 1), (session, in_force))]


def old_epochs(prepared_epochs: Iterable[tuple[int, int]], session: int, in_force: int) -> list[tuple[int, int]]:
    """The prepared epochs that may be deleted at any time, since without an entry a packet counts as one of an old
    epoch. The epoch before the one in force stays, for packets that are under way. Epochs go with their sessions."""
    return [era for era in prepared_epochs if era < (session, in_force - 1)]
