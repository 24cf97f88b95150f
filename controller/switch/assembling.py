"""Combines the entries of leaves and root, as if one switch held them. A controller needs this when it takes over, and
after a switch has lost its state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from serene import entries
from serene.controller.switch import tree_entries
from serene.controller.switch.plan_entries import Installed, InstalledJob
from serene.fixedpoint import POOL_SCALE
from serene.racks import MAX_QUORUM, Racks
from serene.strategy import PolicyFields
from serene.wire import ROOT

ROOT_NUMBER = 0  # the root's index among the switches; that of rack r's leaf is r + 1
NOTHING = InstalledJob()  # of a switch that has lost its state: not even the record that remains after a removal


@dataclass
class Assembled:
    """installed: complete jobs, jobs with a lost part (`InstalledJob.lost`), and records of removed jobs. useless:
    parts of incomplete jobs, as (index of the switch, job). unnotified: jobs for which some leaf lacks the policy in
    force. misplaced: by a leaf's place among the leaves, its rack in jobs, if the two differ."""

    installed: Installed
    useless: list[tuple[int, int]] = field(default_factory=list)
    unnotified: set[int] = field(default_factory=set)
    misplaced: dict[int, int] = field(default_factory=dict)


def assembled(root: Installed, leaves: Sequence[Installed], known: Mapping[int, Racks] | None = None) -> Assembled:
    """root, leaves: each switch's entries, leaves in the order of their names. known: the racks of jobs that were
    complete the last time."""
    found = Assembled(Installed())
    for job in sorted({job for held in (root, *leaves) for job in held.jobs}):
        parts = [leaf.jobs.get(job, NOTHING) for leaf in leaves]
        held_by_root = root.jobs.get(job, NOTHING)
        decides = held_by_root if held_by_root != NOTHING else _lost_root(parts)
        here = {rack: part for rack, part in enumerate(parts) if _belongs(part, decides)}
        found.misplaced |= {
            place: part.rack for place, part in here.items() if part.rack is not None and part.rack != place
        }
        admitted = any(len(part.members) > 1 for part in here.values())  # workers, otherwise the job was about to begin
        if held_by_root.complete and admitted and set(here) == set(decides.members):
            found.installed.jobs[job] = _whole(decides, here, len(leaves))
            if any((part.session, part.epoch) != (decides.session, decides.epoch) for part in here.values()):
                found.unnotified.add(job)
        else:
            latest = max(part.session for part in (decides, *parts))
            remains = _remains(decides, parts, here) if admitted or set(here) != set(decides.members) else None
            removed = _removed(held_by_root, parts, known[job].sizes if known and job in known else ())
            found.installed.jobs[job] = remains or InstalledJob(session=latest, lost=not removed)
            here = {}
            if not held_by_root.bare:
                found.useless.append((ROOT_NUMBER, job))
        found.useless += [(rack + 1, job) for rack, part in enumerate(parts) if rack not in here and not part.bare]
    return found


def _belongs(part: InstalledJob, decides: InstalledJob) -> bool:
    """Whether a leaf's part fits the root's, ``decides``. Its workers may all have left."""
    decider = part.members.get(ROOT)
    return (
        part.rack in decides.members
        and part.slots == decides.slots
        and part.rack_size is not None
        and (decides.session, decides.epoch) in part.prepared
        and decider is not None
        and decider.incarnation == decides.session
    )


def _removed(root: InstalledJob, leaves: Sequence[InstalledJob], sizes: Sequence[int]) -> bool:
    """Whether all switches that had a part of a job have only a record of it: it was removed. sizes: workers by rack,
    empty if not known."""
    had = [root, *(leaf for leaf, size in zip(leaves, sizes, strict=False) if size)]
    return all(part.bare for part in (root, *leaves)) and NOTHING not in had


def _remains(
    decides: InstalledJob, parts: Sequence[InstalledJob], here: dict[int, InstalledJob]
) -> InstalledJob | None:
    """The rest of a running job of which a switch has lost its part. None if the job was about to begin or to be
    removed, or if the rest does not determine how many workers of lost racks took part."""
    lost = {rack: tree_entries.rack_size(leaf) for rack, leaf in decides.members.items() if rack not in here}
    if not here or any(rack >= len(parts) or parts[rack] != NOTHING for rack in lost):
        return None
    if any(part.bare and part.session == decides.session for part in parts):  # its removal has begun
        return None
    era, any_leaf = (decides.session, decides.epoch), next(iter(here.values()))
    unknown = sum(lost.values())
    known = sum(part.prepared[era].members for part in here.values())
    absent = (known + unknown - any_leaf.taking_part[era]) % 256  # as the entry has it
    if absent > unknown or absent == known + unknown:
        return None
    supplied = {rack: _lost_leaf(decides, rack, size, any_leaf) for rack, size in lost.items()}
    return replace(_whole(decides, here | supplied, len(parts)), lost=True, absent=absent)


def _lost_root(leaves: Sequence[InstalledJob]) -> InstalledJob:
    """The part of a root that has lost its state, from the leaves' entries: that of the newest epoch that any of them
    has."""
    here = {rack: leaf for rack, leaf in enumerate(leaves) if leaf.rack_size}
    if all(len(leaf.members) < 2 for leaf in here.values()):  # the job was about to begin, or does not exist
        return NOTHING
    newest = max(here.values(), key=lambda leaf: (leaf.session, leaf.epoch))
    if newest.fields is None:
        return NOTHING
    era = newest.session, newest.epoch
    counted = sum(leaf.prepared[era].sync_mask.bit_count() for leaf in here.values() if era in leaf.prepared)
    by_arrivals = newest.fields.quorum < min(counted, MAX_QUORUM)
    fields = replace(newest.fields, quorum=newest.fields.quorum if by_arrivals else 0)
    members = {rack: entries.leaf_at(rack, leaf.rack_size or 0, newest.session) for rack, leaf in here.items()}
    return InstalledJob(slots=newest.slots, session=newest.session, epoch=newest.epoch, fields=fields, members=members)


def _lost_leaf(decides: InstalledJob, rack: int, size: int, another: InstalledJob) -> InstalledJob:
    """The part of a leaf that has lost its state, from the entries of the root and another leaf. It assumes that all
    workers in the rack are members, and that all or none of them count."""
    era, everybody = (decides.session, decides.epoch), (1 << size) - 1
    counted = decides.fields is not None and decides.fields.sync_mask >> rack & 1
    of_rack = replace(another.prepared[era], member_mask=everybody, sync_mask=everybody if counted else 0)
    return InstalledJob(rack=rack, rack_size=size, prepared={era: of_rack})


def _whole(decides: InstalledJob, here: dict[int, InstalledJob], leaves: int) -> InstalledJob:
    """The job as one switch would hold it, workers by their numbers in the job. A leaf's entry in `prepared` has the
    rack's participants: its `policy` may still be that of the previous epoch."""
    racks = Racks(tuple((here[rack].rack_size if rack in here else None) or 0 for rack in range(leaves)))
    any_leaf = next(iter(here.values()))
    era = decides.session, decides.epoch
    members, strays = {}, []
    member_mask = sync_mask = 0
    for rack, part in here.items():
        first = racks.first(rack)
        of_epoch = part.prepared[era]
        sync_mask |= of_epoch.sync_mask << first
        member_mask |= of_epoch.member_mask << first
        for place, at in part.members.items():
            if place != ROOT:
                members[first + place] = replace(at, rack=rack)
        strays += [(first + place, replace(at, rack=rack)) for place, at in part.strays if place != ROOT]
    of_epoch = any_leaf.prepared[era]
    assert decides.fields is not None
    quorum = decides.fields.quorum or sync_mask.bit_count()
    precision = of_epoch.precision if any_leaf.scale == POOL_SCALE else 32
    fields = PolicyFields(member_mask, sync_mask, of_epoch.staleness, quorum, of_epoch.read_mode, precision)
    return InstalledJob(
        slots=any_leaf.slots, vector_length=any_leaf.vector_length, scale=any_leaf.scale, limit=any_leaf.limit,
        workers=sum(racks.sizes), lost_sessions=any_leaf.lost_sessions, session=decides.session, epoch=decides.epoch,
        fields=fields, members=members, strays=strays, racks=racks, note=any_leaf.note,
    )  # fmt: skip
