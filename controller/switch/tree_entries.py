"""The entries of the controller's plans for a leaf and the root of a tree of switches, beside a single switch's entries
(docs/hierarchy.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from serene import entries
from serene.controller.jobs.plans import Start
from serene.controller.switch.plan_entries import job_entry
from serene.entries import Endpoint, SwitchAddress, Updates
from serene.racks import LeafPolicy


def rack_size(leaf: Endpoint) -> int:
    """The job's workers in a rack, by its leaf's address."""
    return int(leaf.mac.split(":")[3], 16)


def leaf_entries(
    plan: Start, rack: int, here: Mapping[int, Endpoint], policy: LeafPolicy, port: int, own: SwitchAddress
) -> Updates:
    """Inserts all of a job at a leaf except the policy in force and the entries in `member`. here: the rack's workers
    by their numbers in it; port: to the root."""
    session, epoch = plan.policy.session, plan.policy.epoch
    return [
        +entries.leaf_group(plan.job, here, port),
        *(+entries.address(plan.job, place, at, own) for place, at in here.items()),
        +job_entry(plan, len(plan.members)),
        +entries.uplink(plan.job, rack, plan.racks.sizes[rack], port, own),
        +entries.prepared(plan.job, session, epoch, policy, plan.policy.fields.members),
    ]


def root_entries(plan: Start, leaves: Mapping[int, Endpoint], own: SwitchAddress) -> Updates:
    """Inserts all of a job at the root except its policy and its entries in `member`. leaves: by rack."""
    return [
        +entries.root_group(plan.job, [(rack, at.port) for rack, at in leaves.items()]),
        *(+entries.address(plan.job, rack, at, own) for rack, at in leaves.items()),
        +job_entry(plan, len(leaves)),
    ]


def needless_epochs(prepared_epochs: Iterable[tuple[int, int]], session: int, in_force: int) -> list[tuple[int, int]]:
    """The prepared epochs that may be deleted while no swap is in progress: all except the one in force and the one
    before, including those of failed swaps. An epoch includes its session."""
    return [era for era in prepared_epochs if era not in ((session, in_force - 1), (session, in_force))]


def old_epochs(prepared_epochs: Iterable[tuple[int, int]], session: int, in_force: int) -> list[tuple[int, int]]:
    """The prepared epochs that may be deleted at any time: without an entry a packet counts as one of an old epoch. The
    epoch before the one in force stays, for packets in flight. An epoch includes its session."""
    return [era for era in prepared_epochs if era < (session, in_force - 1)]
