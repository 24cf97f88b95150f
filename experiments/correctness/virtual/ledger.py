"""The account of one job in a run: what was contributed, and what its workers hold at the end."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from serene.experiments.correctness.virtual.checks import Balance, Sent, Violation, balance

LARGEST_VALUE = 1000  # of a contribution, in fixed-point units


@dataclass(frozen=True)
class Contribution:
    """What an incarnation of a worker contributes in one iteration. incarnation, number: the incarnations of a worker
    and the iterations of an incarnation, counted from 1."""

    worker: int
    incarnation: int
    number: int

    def values(self, seed: int, slots: int, lanes: int) -> np.ndarray:
        """The contribution, int32[slots, lanes]. It is not stored, but computed at each call."""
        numbers = np.random.Generator(np.random.PCG64((seed, self.worker, self.incarnation, self.number)))
        return numbers.integers(-LARGEST_VALUE, LARGEST_VALUE, (slots, lanes), np.int32)


@dataclass(eq=False)
class Ledger:
    """The account of one job. ``certain``: contributions whose answers were read. ``interrupted``: the worker died or
    gave up before that, so that each slot's sum may hold the contribution or not. ``finals``: the sum that each worker
    read last, uint32[slots, lanes]; None: a switch that lost the sums when the job was over had none for it."""

    job: int
    sum: np.ndarray  # of the certain contributions, uint32[slots, lanes]
    done: list[int]  # iterations that each worker has done
    sessions: set[int] = field(default_factory=set)
    certain: list[Contribution] = field(default_factory=list)
    interrupted: list[Contribution] = field(default_factory=list)
    finals: dict[int, np.ndarray | None] = field(default_factory=dict)
    lost: dict[int, int] = field(default_factory=dict)  # with sessions, per slot, as each worker was notified
    reads: set[bytes] = field(default_factory=set)  # sums that workers have read
    repeats: int = 0  # contributions that were made again because nobody could know

    def restored(self, worker: int, lost: int, repeated: bool) -> None:
        """A worker has caught up after a lost session, with these fields of `Restored`."""
        self.lost[worker] = self.lost.get(worker, 0) + lost
        self.repeats += repeated

    def check(self, seed: int, *, all_notified: bool) -> Balance:
        """When all workers have read last: how many contributions are missing or repeated, besides those that a switch
        lost with a session. all_notified: the workers know of all these; else there may be more. seed: the run's.
        Raises Violation if workers hold different sums."""
        finals = {worker: final for worker, final in self.finals.items() if final is not None}
        if not finals:
            return Balance()
        held = next(iter(finals.values()))
        for worker, other in finals.items():
            if not np.array_equal(other, held):
                raise Violation("exactly once", f"worker {worker} holds another sum than another worker")
        if np.array_equal(held, self.sum):
            return Balance()
        certain, interrupted = (
            [contribution.values(seed, *held.shape) for contribution in contributions]
            for contributions in (self.certain, self.interrupted)
        )
        found = balance(Sent(certain, interrupted), held)
        if not self.lost:
            return found
        known = len(held) * (max(self.lost.values()) + self.repeats) if all_notified else found.lost
        return replace(found, lost=max(found.lost - known, 0))
