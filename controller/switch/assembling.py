"""What leaves and the root hold, put together as if one switch held it: for a controller that takes over, and for one
of whose switches one has lost its state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from controller.switch.entries import Installed, InstalledJob
from serene.racks import Racks
from serene.strategy import PolicyFields
from serene.wire import ROOT

ROOT_NUMBER = 0  # among the switches; the leaf of rack r is r + 1


@dataclass
class Assembled:
    """installed: whole jobs, and of others a record of their session. useless: parts of jobs that are not whole, as
    (switch, job). untold: jobs of which some leaf does not tell of the policy that is in force. misplaced: the rack
    that a leaf is for its jobs, where that is not its place among the leaves."""

    installed: Installed
    useless: list[tuple[int, int]] = field(default_factory=list)
    untold: set[int] = field(default_factory=set)
    misplaced: dict[int, int] = field(default_factory=dict)


def assembled(root: Installed, leaves: Sequence[Installed]) -> Assembled:
    found = Assembled(Installed())
    for job in sorted({job for held in (root, *leaves) for job in held.jobs}):
        parts = [leaf.jobs.get(job, InstalledJob()) for leaf in leaves]
        decides = root.jobs.get(job, InstalledJob())
        here = {rack: part for rack, part in enumerate(parts) if _belongs(part, decides)}
        found.misplaced |= {
            place: part.rack for place, part in here.items() if part.rack is not None and part.rack != place
        }
        admitted = any(len(part.members) > 1 for part in here.values())  # else it was about to begin
        if decides.complete and admitted and set(here) == set(decides.members):
            found.installed.jobs[job] = _whole(decides, here, len(leaves))
            if any((part.session, part.epoch) != (decides.session, decides.epoch) for part in here.values()):
                found.untold.add(job)
        else:
            here = {}
            latest = max(part.session for part in (decides, *parts))
            found.installed.jobs[job] = InstalledJob(session=latest)
            if not decides.bare:
                found.useless.append((ROOT_NUMBER, job))
        found.useless += [(rack + 1, job) for rack, part in enumerate(parts) if rack not in here and not part.bare]
    return found


def _belongs(part: InstalledJob, decides: InstalledJob) -> bool:
    """Whether a leaf has its part of what the root decides about. Its workers may all have left."""
    decider = part.members.get(ROOT)
    return (
        part.rack in decides.members
        and part.slots == decides.slots
        and part.rack_size is not None
        and (decides.session, decides.epoch) in part.prepared
        and decider is not None
        and decider.incarnation == decides.session
    )


def _whole(decides: InstalledJob, here: dict[int, InstalledJob], leaves: int) -> InstalledJob:
    """As one switch would hold it, workers by their numbers in the job. Who takes part, a leaf's entry of `prepared`
    says: that of `policy` may not have been told of this epoch."""
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
    fields = PolicyFields(
        member_mask, sync_mask, of_epoch.staleness, decides.fields.quorum or sync_mask.bit_count(), of_epoch.read_mode
    )
    return InstalledJob(
        slots=any_leaf.slots, vector_length=any_leaf.vector_length, scale=any_leaf.scale, limit=any_leaf.limit,
        workers=sum(racks.sizes), lost_sessions=any_leaf.lost_sessions, session=decides.session, epoch=decides.epoch,
        fields=fields, members=members, strays=strays, racks=racks,
    )  # fmt: skip
