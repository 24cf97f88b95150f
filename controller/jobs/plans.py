"""Planned changes of a job, which the controller will write to the switch.

Plans are values. `Jobs` makes them, `serene.controller.switch.plan_entries` turns them into table entries, and `Jobs`
commits them after the write.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from serene.controller.jobs.slots import SlotRange
from serene.entries import Endpoint
from serene.racks import NO_RACKS, Racks
from serene.strategy import PolicyFields, Strategy


@dataclass(frozen=True)
class Policy:
    """One epoch of a job: the strategy in force and the fields it compiled to."""

    session: int
    epoch: int
    strategy: Strategy
    fields: PolicyFields


@dataclass(frozen=True)
class Start:
    """All workers have joined: a session begins, after ``lost_sessions`` lost ones.

    scale: fixed-point units in 1.0; limit: the largest |value| of a contribution, in units. racks: of all workers of
    the job; members: the present ones, by number in the job. places: most workers at a time. note: read back by a
    controller that takes the job over (`serene.controller.jobs.notes`).
    """

    job: int
    slots: SlotRange
    vector_length: int
    scale: int
    limit: int
    members: Mapping[int, Endpoint]
    lost_sessions: int
    policy: Policy
    racks: Racks = NO_RACKS
    places: int = 0
    note: bytes = b""


@dataclass(frozen=True)
class Swap:
    """A new epoch: one entry is replaced. evicted: exactly these workers are evicted in it; None: as before."""

    job: int
    policy: Policy
    reason: str
    evicted: frozenset[int] | None = None


@dataclass(frozen=True)
class Leave:
    """A worker leaves. swap: to a policy without it; None if the policy stays. counts: False for a LEAVE of another
    session, which changes nothing."""

    job: int
    worker: int
    contributions_sent: int | None
    swap: Swap | None
    job_over: bool
    counts: bool = True

    @property
    def answered(self) -> bool:
        """Whether a BYE answers it. A worker of an earlier session has to learn of the present one by its HELLO: the
        present session waits for it, and a BYE would end it."""
        return self.counts or self.job_over


@dataclass(frozen=True)
class Readmission:
    """A worker comes back: its entries move from ``old`` to ``new``, or are inserted (``old`` None), and an epoch
    begins. members: all workers' endpoints in it, by number in the job."""

    job: int
    worker: int
    old: Endpoint | None
    new: Endpoint
    members: Mapping[int, Endpoint]
    swap: Swap


@dataclass(frozen=True)
class Refusal:
    """Why a worker may not join. has_left: the job is over, and this process's LEAVE was accepted."""

    reason: str
    has_left: bool = False


@dataclass(frozen=True)
class Waiting:
    """A worker waits for the workers with these numbers. Without numbers, it waits until the sums of a lost session are
    restored."""

    job: int
    missing: tuple[int, ...] = ()
