"""A strategy over several racks: what each leaf switch and the root are told of it (docs/hierarchy.md).

A leaf gets the job's policy and when to tell the root; the root gets which racks to wait for. Workers are told what
they would be told by one switch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from serene.strategy import BadStrategy, PolicyFields, Strategy

MAX_RACKS = 8  # LEAVES in p4src/include/sizes.p4
RACK_WORKERS = 32  # a leaf's barrier has a bit for each, in one word
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


@dataclass(frozen=True)
class Racks:
    """A job's workers by rack. In packets and masks a worker goes by its number in its rack, everywhere else by that in
    the job: the racks' workers one after the other. sizes: workers in each rack."""

    sizes: tuple[int, ...]

    @classmethod
    def even(cls, workers: int, racks: int) -> Racks:
        """As many in each as can be, the first ones having one more. Raises BadStrategy where they do not fit."""
        if not 1 <= racks <= MAX_RACKS:
            raise BadStrategy(f"{racks} racks: expected 1 to {MAX_RACKS}")
        if not racks <= workers <= racks * RACK_WORKERS:
            raise BadStrategy(f"{workers} workers in {racks} racks: expected {racks} to {racks * RACK_WORKERS}")
        return cls(tuple(workers // racks + (rack < workers % racks) for rack in range(racks)))

    @classmethod
    def of(cls, sizes: Sequence[int]) -> Racks:
        """Raises BadStrategy where there is no room for so many, or nobody at all."""
        if not 1 <= len(sizes) <= MAX_RACKS:
            raise BadStrategy(f"{len(sizes)} racks: expected 1 to {MAX_RACKS}")
        if not sizes or not any(sizes) or not all(0 <= size <= RACK_WORKERS for size in sizes):
            by_rack = ", ".join(map(str, sizes))
            raise BadStrategy(f"{by_rack} workers by rack: expected 0 to {RACK_WORKERS} in each, and not none at all")
        return cls(tuple(sizes))

    def place(self, worker: int) -> tuple[int, int]:
        """The rack, and the worker's number in it."""
        for rack, size in enumerate(self.sizes):
            if worker < size:
                return rack, worker
            worker -= size
        raise BadStrategy(f"no such worker: there are {sum(self.sizes)}")

    def first(self, rack: int) -> int:
        """Workers in the racks before it: the number in the job of its own worker 0."""
        return sum(self.sizes[:rack])

    def number(self, rack: int, place: int) -> int | None:
        """The number in the job of a rack's worker; None where there is no such rack or worker."""
        there = 0 <= rack < len(self.sizes) and 0 <= place < self.sizes[rack]
        return self.first(rack) + place if there else None

    def name(self, worker: int) -> str:
        """As people read it: ``1.0``, worker 0 of rack 1; with one rack the number alone."""
        return str(worker) if len(self.sizes) < 2 else "{}.{}".format(*self.place(worker))

    def worker(self, name: str) -> int:
        """The number in the job that is meant by ``1.0`` or by that number itself. Raises BadStrategy."""
        rack, dot, place = name.strip().partition(".")
        number = self.number(int(rack), int(place)) if dot and rack.isdecimal() and place.isdecimal() else None
        if number is None and not dot and rack.isdecimal():
            number = int(rack)
        if number is None or number >= sum(self.sizes):
            last = sum(self.sizes) - 1
            named = f", or {self.name(0)} to {self.name(last)}" if len(self.sizes) > 1 else ""
            raise BadStrategy(f"no worker {name}: expected 0 to {last}{named}")
        return number

    def mask(self, rack: int) -> int:
        """Of the workers in it, by their numbers in the job."""
        return ((1 << self.sizes[rack]) - 1) << self.first(rack)

    def part(self, fields: PolicyFields, rack: int) -> PolicyFields:
        """A policy with a rack's workers alone, by their numbers in it."""
        first = self.first(rack)
        member_mask, sync_mask = ((mask & self.mask(rack)) >> first for mask in (fields.member_mask, fields.sync_mask))
        told = min(fields.quorum, MAX_QUORUM)  # what an answer has room for
        return replace(fields, member_mask=member_mask, sync_mask=sync_mask, quorum=told)

    def compile(
        self, strategy: Strategy, members: Sequence[int], flush_every: int = FLUSH_EVERY
    ) -> tuple[list[LeafPolicy], PolicyFields]:
        """As ``compile_for_racks``, but leaves' policies go by numbers in the rack. members: by those in the job."""
        leaves, root = policies(
            strategy.compile(members), [self.mask(rack) for rack in range(len(self.sizes))], flush_every
        )
        return [replace(leaf, fields=self.part(leaf.fields, rack)) for rack, leaf in enumerate(leaves)], root


NO_RACKS = Racks(())


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
