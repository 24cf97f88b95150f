"""Compiles a strategy over several racks to the policies of each leaf switch and of the root (docs/hierarchy.md).

A leaf gets the job's policy and the condition for sending an UP to the root. The root gets the racks to wait for.
Workers get the same policy as with a single switch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from serene.strategy import BadStrategy, PolicyFields, Strategy

MAX_RACKS = 8  # LEAVES in p4src/include/sizes.p4
RACK_WORKERS = 32  # workers of a rack: a leaf's barrier is a 32-bit word with a bit for each
MAX_QUORUM = 255  # largest k of a k-of-n strategy: the root's policy has 8 bits for it
FLUSH_EVERY = 1  # contributions


@dataclass(frozen=True)
class LeafPolicy:
    """An epoch's policy at one leaf.

    fields: the job's policy. enough: the number of a round's arrivals in the rack with which the leaf informs the root.
    by_arrivals: set for k-of-n, in which the root adds up arrivals; otherwise a leaf reports rounds that all counted
    workers of its rack have completed. flush_mask: if reads get the latest sum, the leaf sends the rack's sum to the
    root whenever total & flush_mask is 0.
    """

    fields: PolicyFields
    enough: int
    by_arrivals: bool
    flush_mask: int = FLUSH_EVERY - 1


@dataclass(frozen=True)
class Racks:
    """A job's workers by rack. Packets and leaves' masks have a worker's number in its rack. All other places have its
    number in the job, which counts the workers of all racks in order. sizes: workers in each rack."""

    sizes: tuple[int, ...]

    @classmethod
    def even(cls, workers: int, racks: int) -> Racks:
        """Racks of equal size; if the division leaves a remainder, the first racks have one worker more. Raises
        BadStrategy if the workers do not fit."""
        if not 1 <= racks <= MAX_RACKS:
            raise BadStrategy(f"{racks} racks: expected 1 to {MAX_RACKS}")
        if not racks <= workers <= racks * RACK_WORKERS:
            raise BadStrategy(f"{workers} workers in {racks} racks: expected {racks} to {racks * RACK_WORKERS}")
        return cls(tuple(workers // racks + (rack < workers % racks) for rack in range(racks)))

    @classmethod
    def of(cls, sizes: Sequence[int]) -> Racks:
        """Racks of these sizes. Raises BadStrategy for too many racks or workers, or for none."""
        if not 1 <= len(sizes) <= MAX_RACKS:
            raise BadStrategy(f"{len(sizes)} racks: expected 1 to {MAX_RACKS}")
        if not sizes or not any(sizes) or not all(0 <= size <= RACK_WORKERS for size in sizes):
            by_rack = ", ".join(map(str, sizes))
            raise BadStrategy(
                f"{by_rack} workers by rack: expected 0 to {RACK_WORKERS} in each, and at least one worker"
            )
        return cls(tuple(sizes))

    def place(self, worker: int) -> tuple[int, int]:
        """A worker's rack, and its number in it."""
        for rack, size in enumerate(self.sizes):
            if worker < size:
                return rack, worker
            worker -= size
        raise BadStrategy(f"no such worker: there are {sum(self.sizes)}")

    def first(self, rack: int) -> int:
        """The number in the job of a rack's worker 0."""
        return sum(self.sizes[:rack])

    def number(self, rack: int, place: int) -> int | None:
        """The number in the job of a rack's worker; None if there is no such rack or worker."""
        there = 0 <= rack < len(self.sizes) and 0 <= place < self.sizes[rack]
        return self.first(rack) + place if there else None

    def name(self, worker: int) -> str:
        """A worker's name: ``1.0`` is worker 0 of rack 1; with one rack, the number alone."""
        return str(worker) if len(self.sizes) < 2 else "{}.{}".format(*self.place(worker))

    def worker(self, name: str) -> int:
        """The number in the job of the worker named ``1.0``, or by that number itself. Raises BadStrategy."""
        numbers = [int(part) for part in name.strip().split(".") if part.isdecimal() and len(part) < 10]
        by_rack = len(numbers) == 2 and name.count(".") == 1
        number = self.number(*numbers) if by_rack else numbers[0] if numbers and "." not in name else None
        if number is None or number >= sum(self.sizes):
            last = sum(self.sizes) - 1
            named = f", or {self.name(0)} to {self.name(last)}" if len(self.sizes) > 1 else ""
            raise BadStrategy(f"no worker {name}: expected 0 to {last}{named}")
        return number

    def mask(self, rack: int) -> int:
        """The mask of a rack's workers, by their numbers in the job."""
        return ((1 << self.sizes[rack]) - 1) << self.first(rack)

    def part(self, fields: PolicyFields, rack: int) -> PolicyFields:
        """A policy restricted to a rack's workers, by their numbers in the rack."""
        first = self.first(rack)
        member_mask, sync_mask = ((mask & self.mask(rack)) >> first for mask in (fields.member_mask, fields.sync_mask))
        quorum = min(fields.quorum, MAX_QUORUM)  # the largest number that an answer's field can carry
        return replace(fields, member_mask=member_mask, sync_mask=sync_mask, quorum=quorum)

    def compile(
        self, strategy: Strategy, members: Sequence[int], flush_every: int = FLUSH_EVERY
    ) -> tuple[list[LeafPolicy], PolicyFields]:
        """As ``compile_for_racks``, but the leaves' policies have numbers in the rack. members: numbers in the job."""
        leaves, root = policies(
            strategy.compile(members), [self.mask(rack) for rack in range(len(self.sizes))], flush_every
        )
        return [replace(leaf, fields=self.part(leaf.fields, rack)) for rack, leaf in enumerate(leaves)], root


NO_RACKS = Racks(())


def compile_for_racks(
    strategy: Strategy, racks: Sequence[Sequence[int]], flush_every: int = FLUSH_EVERY
) -> tuple[list[LeafPolicy], PolicyFields]:
    """The policies of each leaf and of the root. The root's workers are racks. For k-of-n its quorum counts arrivals in
    all racks. Otherwise it is 0: every counted rack has to complete a round.

    racks: the members' numbers in the job, by rack; a rack may have none. flush_every: a power of two. Raises
    BadStrategy if the strategy is not valid for these workers.
    """
    fields = strategy.compile([worker for rack in racks for worker in rack])
    return policies(fields, [sum(1 << worker for worker in rack) for rack in racks], flush_every)


def policies(
    fields: PolicyFields, racks: Sequence[int], flush_every: int = FLUSH_EVERY
) -> tuple[list[LeafPolicy], PolicyFields]:
    """As ``compile_for_racks``, for a compiled strategy; racks: masks of the workers in each."""
    if not 1 <= len(racks) <= MAX_RACKS:
        raise BadStrategy(f"{len(racks)} racks: expected 1 to {MAX_RACKS}")
    if flush_every < 1 or flush_every & (flush_every - 1):
        raise BadStrategy(f"flush_every {flush_every}: expected a power of two")
    counted = [(fields.sync_mask & rack).bit_count() for rack in racks]
    by_arrivals = 0 < fields.quorum < sum(counted)
    if by_arrivals and fields.staleness:
        raise BadStrategy(
            f"quorum {fields.quorum} of {sum(counted)} with staleness {fields.staleness}: over racks, k-of-n needs "
            "staleness 0"
        )
    if by_arrivals and fields.quorum > MAX_QUORUM:
        raise BadStrategy(f"a quorum of {fields.quorum}: over racks expected at most {MAX_QUORUM}, or all workers")
    # At least `least + here` of a round's arrivals come from a rack, because the other racks have too few workers.
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
