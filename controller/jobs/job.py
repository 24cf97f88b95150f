"""The controller's state of one job."""

from __future__ import annotations

import math
import secrets
import time
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from enum import Enum

from serene.controller.jobs.plans import Policy
from serene.controller.jobs.slots import SlotRange
from serene.entries import Endpoint
from serene.errors import numbers
from serene.racks import NO_RACKS, Racks
from serene.report import Facts
from serene.strategy import BSP, Strategy

LONGEST_HISTORY = 1000  # epochs
MOST_RETIRED = 64  # earlier incarnations of a worker that are remembered
LARGEST_LOST_SESSIONS = 255  # WELCOME has a byte for it
RETURN_S = 10.0  # an evicted worker joins a new session after two or three HELLOs, one every 2 s
# All living workers are back by then: the controller calls them at once (`Admission.call`), and a worker that computes
# receives the call within a second.
BACK_S = 2.5


class JobState(str, Enum):
    WAITING = "waiting"  # for workers to join
    RUNNING = "running"
    FINISHED = "finished"  # every worker has left


class WorkerState(str, Enum):
    EXPECTED = "expected"  # to join
    JOINED = "joined"  # waits for others to join
    RUNNING = "running"
    EVICTED = "evicted"  # admitted, but no member: nobody waits for it
    LEFT = "left"


@dataclass
class Worker:
    """One worker of a job, and the process that holds its place."""

    id: int
    state: WorkerState = WorkerState.EXPECTED
    endpoint: Endpoint | None = None
    uncertain: bool = False  # it is not known whether the switch admits it: it has to be readmitted
    before: Endpoint | None = None  # of the process that had the place when the session was lost
    retired: deque[int] = field(default_factory=lambda: deque(maxlen=MOST_RETIRED))  # earlier incarnations
    contributions_sent: int | None = None  # packets, from its LEAVE
    report: Facts | None = None  # the latest
    reported_at: float = -math.inf  # on the monotonic clock
    readmitted_at: float = -math.inf  # on the monotonic clock
    left_at: float = -math.inf  # its last LEAVE, on the monotonic clock
    given: bool = False  # the place was given to a process, perhaps at another host (`serene.controller.jobs.named`)

    def stays_evicted(self, at: Endpoint) -> bool:
        """Whether the process at this endpoint was evicted in a lost session. Another process in its place is a
        member."""
        was_here = self.before is not None and at.incarnation == self.before.incarnation
        return self.state is WorkerState.EVICTED and was_here

    def come(self, at: Endpoint, state: WorkerState) -> None:
        """The place now belongs to the process at this endpoint, in this state, or evicted as it was."""
        self.state = self.state if self.stays_evicted(at) else state
        self.move(at)

    def move(self, to: Endpoint) -> None:
        """The place now belongs to another process, or to the same one at another address."""
        if self.endpoint is not None and self.endpoint.incarnation != to.incarnation:
            self.retired.append(self.endpoint.incarnation)
        self.endpoint = to
        self.uncertain = self.given = False


@dataclass(frozen=True)
class EpochBegun:
    """An epoch has begun, with this strategy and for this reason. t: its beginning in Unix seconds; clock: the same on
    the monotonic clock, to measure time since then."""

    t: float
    session: int
    epoch: int
    strategy: Strategy
    reason: str
    clock: float = field(compare=False)


@dataclass(frozen=True)
class JobEpoch:
    """One epoch of one job. A decision carries it, so that an outdated one is recognised. left: how many workers have
    left; when an evicted one leaves, no epoch begins."""

    job: int
    session: int
    epoch: int
    left: int

    @classmethod
    def of(cls, job: Job) -> JobEpoch:
        left = sum(worker.state is WorkerState.LEFT for worker in job.workers)
        return cls(job.id, job.session, job.epoch, left)


@dataclass(frozen=True)
class Elastic:
    """places: most workers at a time. minimum: eviction for silence leaves at least this number, so that the others
    wait until a process comes; workers that have sent LEAVE count. evict_after: seconds of silence after which a member
    is evicted; None: never."""

    places: int
    minimum: int = 1
    evict_after: float | None = None

    @property
    def patience_s(self) -> float:
        """Seconds for which a new session waits for missing members."""
        return math.inf if self.evict_after is None else max(self.evict_after, BACK_S)


@dataclass
class Job:
    """One training run. ``slots`` is None while it has no slots; session and epoch are 0 before it runs."""

    id: int
    workers_expected: int
    strategy: Strategy  # the wanted one: in force unless the job waits or is restoring
    scale: int  # fixed-point units in 1.0
    limit: float  # the largest |value| of a contribution
    state: JobState = JobState.WAITING
    name: str | None = None  # by which its processes find it
    settings: Facts = field(default_factory=dict)  # of a named job: settings in which its processes have to agree
    racks: Racks = NO_RACKS  # the workers of each rack; with one switch, all are in rack 0
    pool: bool = False  # its slots are used in turn (serene/client/allreduce), under BSP, by the workers that began it
    precision: int = 32  # bits of the values of a pool's gradients
    elastic: Elastic | None = None  # its workers come and go
    silenced: frozenset[int] = frozenset()  # of an elastic job, the workers that were evicted for silence
    lost_at: float = 0.0  # when its session was lost, on the monotonic clock
    asked_at: float = -math.inf  # when it was made, or a worker last asked to join, on the monotonic clock
    session: int = 0
    epoch: int = 0
    epochs_spent: int = 0  # of this session, including those of failed writes: the next epoch is one more
    in_doubt: bool = False  # a swap has failed, but may be in force
    lost_sessions: int = 0  # how many of its sessions the switch has lost
    lost: set[int] = field(default_factory=set)  # those that are known
    lost_before: int = 0  # sessions before this one may have been lost sessions of this job
    restoring: bool = False  # the workers are restoring the sums of a lost session, under BSP
    died: set[int] = field(default_factory=set)  # a pool's workers whose processes have died, as others report
    absent: int = 0  # the number of expected workers that will not come; it is not known which
    returning: frozenset[int] = frozenset()  # workers that need not come, but are waited for until ``returns_until``
    returns_until: float = 0.0  # on the monotonic clock
    vector_length: int = 0
    slots: SlotRange | None = None
    slots_needed: int = 0
    began_at: float = 0.0  # when the session began, in Unix seconds
    began_clock: float = 0.0  # and on the monotonic clock
    finished_at: float | None = None  # when it was first seen to have finished, on the monotonic clock
    answers: int | None = None  # of a finished job: its workers' answers when they were last counted
    tag: int = field(default_factory=lambda: secrets.randbits(64))  # tells jobs of the same id apart
    steady: Callable[[], float] = time.monotonic  # the monotonic clock
    workers: list[Worker] = field(default_factory=list)
    epochs_begun: int = 0  # in all its sessions
    history: deque[EpochBegun] = field(default_factory=lambda: deque(maxlen=LONGEST_HISTORY))  # the latest of these

    def __post_init__(self) -> None:
        places = self.elastic.places if self.elastic is not None else self.workers_expected
        self.workers = [Worker(worker) for worker in range(places)]
        self.absent = places - self.workers_expected
        if not self.racks.sizes:
            self.racks = Racks((places,))

    def worker_at(self, rack: int, place: int) -> Worker | None:
        """The worker with number ``place`` in that rack, or None."""
        number = self.racks.number(rack, place)
        return None if number is None else self.workers[number]

    def no_worker_at(self, rack: int, place: int) -> str:
        """For a refusal: why `worker_at` is None, and the valid numbers."""
        sizes = self.racks.sizes
        if len(sizes) < 2 and rack == 0:
            return f"job {self.id} has no worker {place}: expected {numbers(range(len(self.workers)))}"
        if rack >= len(sizes) or not sizes[rack]:
            return f"job {self.id} has no workers in rack {rack}: it has {', '.join(map(str, sizes))} by rack"
        return (
            f"job {self.id} has no worker {place} in rack {rack}: "
            f"expected {numbers(range(sizes[rack]))}, the worker's number in its rack"
        )

    def places(self) -> dict[int, Endpoint]:
        """The workers' endpoints, by worker; workers without one are left out."""
        return {worker.id: worker.endpoint for worker in self.workers if worker.endpoint is not None}

    @property
    def limit_units(self) -> int:
        """The limit in fixed-point units."""
        return round(self.limit * self.scale)

    def has_had(self, session: int) -> bool:
        """Whether a worker whose last session was this one may belong to this job. session: 0 without one."""
        return session in self.lost or session in (0, self.session) or session < self.lost_before

    @property
    def over(self) -> bool:
        """Finished, and all its entries removed from the switch."""
        return self.state is JobState.FINISHED and self.slots is None

    def needed(self) -> tuple[bool, bool, float]:
        """Sorts finished jobs: the first one's entries in the switch are needed least."""
        return not self.over, not self.pool, self.finished_at or math.inf

    def members(self) -> list[int]:
        """The members' numbers. A strategy is compiled for them."""
        return [worker.id for worker in self.workers if worker.state is WorkerState.RUNNING]

    @property
    def taken(self) -> str:
        """``4 of 8 places``: the number of workers that take part, and of places."""
        return f"{len(self.members())} of {len(self.workers)} places"

    @property
    def in_force(self) -> Strategy:
        """The strategy that is in force now: BSP while the sums are being restored."""
        return BSP() if self.restoring else self.strategy

    def evicted(self) -> list[int]:
        """The numbers of the evicted workers."""
        return [worker.id for worker in self.workers if worker.state is WorkerState.EVICTED]

    def note_reads(self, answers: int, now: float) -> None:
        """Stores the number of the workers' answers when the job has finished. A last read of a long vector takes long;
        meanwhile the job's entries must stay. now: on the monotonic clock."""
        if self.finished_at is not None and answers != self.answers:
            self.finished_at = now
        self.answers = answers

    def begin_epoch(self, policy: Policy, reason: str, now: float) -> EpochBegun:
        """Stores that the switch has this policy now. now: in Unix seconds."""
        begun = EpochBegun(now, policy.session, policy.epoch, policy.strategy, reason, self.steady())
        if policy.session != self.session:
            self.began_at, self.began_clock = begun.t, begun.clock
        self.session = policy.session
        self.epoch = policy.epoch
        self.in_doubt = False
        self.precision = policy.fields.precision
        if not self.restoring:
            self.strategy = policy.strategy
        self.history.append(begun)
        self.epochs_begun += 1
        return begun

    def restorers(self) -> list[int]:
        """The numbers of the workers that take part in a restoration, including evicted ones."""
        states = (WorkerState.RUNNING, WorkerState.EVICTED)
        return [worker.id for worker in self.workers if worker.state in states and worker.endpoint is not None]

    @property
    def lost_s(self) -> float:
        """Seconds since its session was lost."""
        return self.steady() - self.lost_at

    def awaited(self) -> tuple[int, ...]:
        """The numbers of the workers that the job waits for before it starts."""
        missing = tuple(worker.id for worker in self.workers if worker.state is WorkerState.EXPECTED)
        if len(missing) > self.absent:
            return missing
        return tuple(sorted(self.returning - self.places().keys())) if self.steady() < self.returns_until else ()

    def mark_evicted(self, evicted: Collection[int]) -> None:
        """Stores that exactly these of the participating workers are evicted. A worker that has not joined this session
        becomes a member when it joins."""
        for worker in self.workers:
            if worker.state in (WorkerState.RUNNING, WorkerState.EVICTED):
                readmitted = WorkerState.RUNNING if worker.endpoint is not None else WorkerState.LEFT
                worker.state = WorkerState.EVICTED if worker.id in evicted else readmitted

    def reset(self, active: Collection[int] = ()) -> None:
        """Makes the job wait again for the workers of its lost session; its history stays.

        A worker that has left or was evicted need not come back. An evicted one stays evicted. active: workers that
        sent something recently. The job waits for them until RETURN_S from now, and no longer than for members: they
        help to restore the sums. It does not wait for workers that were evicted for silence.
        """
        self.state = JobState.WAITING
        self.lost_sessions = min(self.lost_sessions + 1, LARGEST_LOST_SESSIONS)
        self.restoring = False
        self.lost.add(self.session)
        self.session = self.epoch = self.epochs_spent = 0
        self.in_doubt = False
        self.vector_length = self.slots_needed = 0
        self.slots = None
        free = (WorkerState.LEFT, WorkerState.EVICTED)
        come = self.returning.union(active) - self.silenced
        self.returning = frozenset(worker.id for worker in self.workers if worker.state in free and worker.id in come)
        patience_s = RETURN_S if self.elastic is None else min(RETURN_S, self.elastic.patience_s)
        self.lost_at = self.steady()
        self.returns_until = self.lost_at + patience_s
        self.workers = [
            Worker(
                worker.id,
                worker.state if worker.state in free else WorkerState.EXPECTED,
                retired=worker.retired,
                before=worker.endpoint or worker.before,
            )
            for worker in self.workers
        ]

    def remember(self, known: Job) -> None:
        """Copies from ``known``, the earlier state of the same session, the facts that the switch's entries lack."""
        self.history.extendleft(reversed(known.history))
        self.epochs_begun += known.epochs_begun
        self.epochs_spent = max(self.epochs_spent, known.epochs_spent)
        self.began_at, self.began_clock = known.began_at, known.began_clock
        self.lost, self.lost_before = known.lost, known.lost_before
        self.name, self.settings = known.name, known.settings
        if known.elastic is not None:
            self.elastic, self.silenced = known.elastic, known.silenced
            self.workers_expected = known.workers_expected
        for worker, before in zip(self.workers, known.workers, strict=False):
            worker.retired = before.retired
            if worker.endpoint != before.endpoint:
                continue
            worker.contributions_sent = before.contributions_sent
            worker.report, worker.reported_at = before.report, before.reported_at
            if worker.state is WorkerState.EVICTED and before.state is WorkerState.LEFT:
                worker.state = WorkerState.LEFT
