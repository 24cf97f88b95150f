"""A strategy over several racks: what each leaf switch and the root are told of it (docs/hierarchy.md).

A leaf gets the job's policy and when to tell the root; the root gets which racks to wait for. Workers are told what
they would be told by one switch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from serene.strategy import BadStrategy, PolicyFields, Strategy

MAX_RACKS = 8  # LEAVES in p4src/include/sizes.p4
MAX_QUORUM = 255  # of k-of-n: the root's policy has 8 bits for it
FLUSH_EVERY = 1  # contributions


@dataclass(frozen=True)
class LeafPolicy:
    """An epoch's policy at one leaf.

    fields: the job's. enough: arrivals in the rack from which on a round concerns the root. by_arrivals: k-of-n, in
    which the root adds up arrivals; otherwise a rack reports rounds that all its counted workers have completed.
    flush_mask: in a latest epoch the root is sent the rack's sum whenever total & flush_mask is 0.
    """

    fields: PolicyFields
    enough: int
    by_arrivals: bool
    flush_mask: int = FLUSH_EVERY - 1


def compile_for_racks(
    strategy: Strategy, racks: Sequence[Sequence[int]], flush_every: int = FLUSH_EVERY
) -> tuple[list[LeafPolicy], PolicyFields]:
    """Each leaf's policy, and the root's: its workers are racks, and its quorum is of arrivals in all of them (k-of-n)
    or 0, when every counted rack has to complete a round.

    racks: the members' ids, which are the whole job's, by rack; a rack may have none. flush_every: a power of two.
    Raises BadStrategy where the strategy cannot be meant for these workers.
    """
    fields = strategy.compile([worker for rack in racks for worker in rack])
    return policies(fields, [sum(1 << worker for worker in rack) for rack in racks], flush_every)


def policies(
    fields: PolicyFields, racks: Sequence[int], flush_every: int = FLUSH_EVERY
) -> tuple[list[LeafPolicy], PolicyFields]:
    """The same of a compiled strategy; racks: masks of the workers in each."""
    if not 1 <= len(racks) <= MAX_RACKS:
        raise BadStrategy(f"{len(racks)} racks: expected 1 to {MAX_RACKS}")
    if flush_every < 1 or flush_every & (flush_every - 1):
        raise BadStrategy(f"the root is told of every {flush_every}th contribution: expected a power of two")
    counted = [(fields.sync_mask & rack).bit_count() for rack in racks]
    by_arrivals = 0 < fields.quorum < sum(counted)
    if by_arrivals and fields.staleness:
        raise BadStrategy(
            f"a quorum of {fields.quorum} of {sum(counted)} workers with staleness {fields.staleness}: over racks "
            "k-of-n has staleness 0, because the root adds up arrivals of one round at a time"
        )
    if by_arrivals and fields.quorum > MAX_QUORUM:
        raise BadStrategy(f"a quorum of {fields.quorum}: over racks expected at most {MAX_QUORUM}, or all workers")
    # So many of a round's arrivals must be this rack's, whatever the others send.
    least = fields.quorum - sum(counted) if by_arrivals else 0
    leaves = [
        LeafPolicy(fields, max(least + here, 1) if by_arrivals else here, by_arrivals, flush_every - 1)
        for here in counted
    ]
    root = PolicyFields(
        member_mask=sum(1 << number for number, rack in enumerate(racks) if fields.member_mask & rack),
        sync_mask=sum(1 << number for number, here in enumerate(counted) if here),
        staleness=fields.staleness,
        quorum=fields.quorum if by_arrivals else 0,
        read_mode=fields.read_mode,
    )
    return leaves, root
