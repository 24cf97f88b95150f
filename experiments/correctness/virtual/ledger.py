"""What was contributed to one job of a run, and what its workers hold at the end."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from experiments.correctness.virtual.checks import Balance, Sent, Violation, balance

LARGEST_VALUE = 1000  # of a contribution, in fixed-point units


@dataclass(frozen=True)
class Contribution:
    """One iteration of one incarnation of a worker, which are counted from 1, as its iterations are."""

    worker: int
    incarnation: int
    number: int

    def values(self, seed: int, slots: int, lanes: int) -> np.ndarray:
        """int32[slots, lanes]; made again whenever it is asked for."""
        numbers = np.random.Generator(np.random.PCG64((seed, self.worker, self.incarnation, self.number)))
        return numbers.integers(-LARGEST_VALUE, LARGEST_VALUE, (slots, lanes), np.int32)


@dataclass(eq=False)
class Ledger:
    """``certain``: contributions whose answers were read. ``interrupted``: a worker died meanwhile, or gave up, so
    each slot holds its contribution or does not. ``finals``: uint32[slots, lanes], what each worker read last."""

    job: int
    sum: np.ndarray  # of the certain ones: uint32[slots, lanes]
    done: list[int]  # iterations, by worker
    sessions: set[int] = field(default_factory=set)
    certain: list[Contribution] = field(default_factory=list)
    interrupted: list[Contribution] = field(default_factory=list)
    finals: dict[int, np.ndarray] = field(default_factory=dict)

    def check(self, seed: int) -> Balance:
        """At rest: every replica is the same, and what it lacks or holds twice. Raises Violation."""
        held = next(iter(self.finals.values()))
        for worker, other in self.finals.items():
            if not np.array_equal(other, held):
                raise Violation("exactly once", f"worker {worker} holds another sum than another worker")
        if np.array_equal(held, self.sum):
            return Balance()
        certain, interrupted = (
            [contribution.values(seed, *held.shape) for contribution in contributions]
            for contributions in (self.certain, self.interrupted)
        )
        return balance(Sent(certain, interrupted), held)
