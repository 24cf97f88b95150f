"""One job as the controller remembers it."""

from __future__ import annotations

import math
import secrets
import time
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from enum import Enum

from controller.jobs.plans import Endpoint, Policy
from controller.jobs.slots import SlotRange
from serene.racks import NO_RACKS, Racks
from serene.strategy import BSP, Strategy

LONGEST_HISTORY = 1000
MOST_RETIRED = 64  # incarnations of a worker that are remembered
LARGEST_LOST_SESSIONS = 255  # WELCOME has a byte for it


# What a worker says of itself, in REPORT and LEAVE: whatever it likes, but no more than numbers and short texts.
Fact = bool | int | float | str | None
Report = dict[str, Fact]


class JobState(str, Enum):
    WAITING = "waiting"  # for workers to join
    RUNNING = "running"
    FINISHED = "finished"  # every worker has left


class WorkerState(str, Enum):
    EXPECTED = "expected"
    JOINED = "joined"  # waits for the others
    RUNNING = "running"
    EVICTED = "evicted"  # admitted, but no member: nobody waits for it
    LEFT = "left"


@dataclass
class Worker:
    """One worker of a job, and the process that holds its place."""

    id: int
    state: WorkerState = WorkerState.EXPECTED
    endpoint: Endpoint | None = None
    uncertain: bool = False  # it is unknown whether the switch admits it: it has to be readmitted
    retired: deque[int] = field(default_factory=lambda: deque(maxlen=MOST_RETIRED))  # incarnations before this one
    contributions_sent: int | None = None  # packets, as the worker said when it left
    report: Report | None = None  # its latest
    reported_at: float = -math.inf  # on the monotonic clock
    readmitted_at: float = -math.inf  # on the monotonic clock

    def move(self, to: Endpoint) -> None:
        """The place now belongs to another process, or to the same one at another address."""
        if self.endpoint is not None and self.endpoint.incarnation != to.incarnation:
            self.retired.append(self.endpoint.incarnation)
        self.endpoint = to
        self.uncertain = False


@dataclass(frozen=True)
class EpochBegun:
    """An epoch began, at ``t`` in Unix seconds; clock: then, on the monotonic clock, by which what has passed since is
    measured."""

    t: float
    session: int
    epoch: int
    strategy: Strategy
    reason: str
    clock: float = field(default_factory=time.monotonic, compare=False)


@dataclass(frozen=True)
class JobEpoch:
    """One epoch of one job: what a decision was made about."""

    job: int
    session: int
    epoch: int

    @classmethod
    def of(cls, job: Job) -> JobEpoch:
        return cls(job.id, job.session, job.epoch)


@dataclass
class Job:
    """One training run. ``slots`` is None while it holds none; session and epoch are 0 before it runs."""

    id: int
    workers_expected: int
    strategy: Strategy  # the one that is wanted: in force unless the job waits or is restoring
    scale: int  # fixed-point units in 1.0
    limit: float  # the largest |value| that one worker contributes
    state: JobState = JobState.WAITING
    racks: Racks = NO_RACKS  # who is where; without any, all are at one switch, which is one rack
    pool: bool = False  # its slots are used in turn (serene/client/pool.py): under BSP, by the workers that began it
    precision: int = 32  # bits that the values of a pool's gradients have on their way
    asked_at: float = -math.inf  # when it was made, or a worker asked to join; on the monotonic clock
    session: int = 0
    epoch: int = 0
    epochs_spent: int = 0
    in_doubt: bool = False  # a swap has failed, and may have come into force all the same
    lost_sessions: int = 0  # that the switch has lost
    lost: set[int] = field(default_factory=set)  # which ones, as far as they are known
    lost_before: int = 0  # earlier ones may have been this job's, too
    restoring: bool = False  # a later session begins with the workers putting the sums back, under BSP
    absent: int = 0  # of the workers that are expected, so many will not come, and nobody knows which
    vector_length: int = 0
    slots: SlotRange | None = None
    slots_needed: int = 0
    began_at: float = 0.0  # the session; in Unix seconds
    began_clock: float = 0.0  # and on the monotonic clock
    finished_at: float | None = None  # when it was found to be, on the monotonic clock
    tag: int = field(default_factory=lambda: secrets.randbits(64))  # tells jobs of the same id apart
    workers: list[Worker] = field(default_factory=list)
    epochs_begun: int = 0  # of all its sessions
    history: deque[EpochBegun] = field(default_factory=lambda: deque(maxlen=LONGEST_HISTORY))  # the latest of them

    def __post_init__(self) -> None:
        self.workers = [Worker(worker) for worker in range(self.workers_expected)]
        if not self.racks.sizes:
            self.racks = Racks((self.workers_expected,))

    def worker_at(self, rack: int, place: int) -> Worker | None:
        """The worker with that number in that rack."""
        number = self.racks.number(rack, place)
        return None if number is None else self.workers[number]

    def there_is_no(self, rack: int, place: int) -> str:
        """Why `worker_at` is None, and what would be right."""
        sizes = self.racks.sizes
        if len(sizes) < 2 and rack == 0:
            return f"job {self.id} has no worker {place}: expected 0 to {len(self.workers) - 1}"
        if rack >= len(sizes) or not sizes[rack]:
            return f"job {self.id} has no workers in rack {rack}: it has {', '.join(map(str, sizes))} by rack"
        return f"job {self.id} has no worker {place} in rack {rack}: expected 0 to {sizes[rack] - 1}"

    def places(self) -> dict[int, Endpoint]:
        """Where each worker is that is anywhere."""
        return {worker.id: worker.endpoint for worker in self.workers if worker.endpoint is not None}

    @property
    def limit_units(self) -> int:
        return round(self.limit * self.scale)

    def has_had(self, session: int) -> bool:
        """Whether a worker of that session is a worker of this job."""
        return session in self.lost or session in (0, self.session) or session < self.lost_before

    @property
    def over(self) -> bool:
        """Finished, and all its entries removed from the switch."""
        return self.state is JobState.FINISHED and self.slots is None

    def members(self) -> list[int]:
        """The members: the workers that a strategy is compiled for."""
        return [worker.id for worker in self.workers if worker.state is WorkerState.RUNNING]

    @property
    def in_force(self) -> Strategy:
        """The strategy that is in force now: BSP while the sums are being restored."""
        return BSP() if self.restoring else self.strategy

    def evicted(self) -> list[int]:
        return [worker.id for worker in self.workers if worker.state is WorkerState.EVICTED]

    def begin_epoch(self, policy: Policy, reason: str, now: float) -> EpochBegun:
        """The switch has this policy now."""
        begun = EpochBegun(now, policy.session, policy.epoch, policy.strategy, reason)
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

    def mark_evicted(self, evicted: Collection[int]) -> None:
        """Of those who take part, these are evicted and the others are not."""
        for worker in self.workers:
            if worker.state in (WorkerState.RUNNING, WorkerState.EVICTED):
                worker.state = WorkerState.EVICTED if worker.id in evicted else WorkerState.RUNNING

    def reset(self) -> None:
        """Back to waiting for those who took part; what happened so far stays in the history.

        Who has left or was evicted is not waited for; it may come back once the job runs again.
        """
        self.state = JobState.WAITING
        self.lost_sessions = min(self.lost_sessions + 1, LARGEST_LOST_SESSIONS)
        self.restoring = False
        self.lost.add(self.session)
        self.session = self.epoch = self.epochs_spent = 0
        self.in_doubt = False
        self.vector_length = self.slots_needed = 0
        self.slots = None
        gone = (WorkerState.LEFT, WorkerState.EVICTED)
        self.workers = [
            Worker(
                worker.id,
                WorkerState.LEFT if worker.state in gone else WorkerState.EXPECTED,
                retired=worker.retired,
            )
            for worker in self.workers
        ]

    def remember(self, known: Job) -> None:
        """Keeps what the switch's entries do not say about a session that was known already."""
        self.history.extendleft(reversed(known.history))
        self.epochs_begun += known.epochs_begun
        self.epochs_spent = max(self.epochs_spent, known.epochs_spent)
        self.began_at, self.began_clock = known.began_at, known.began_clock
        self.lost, self.lost_before = known.lost, known.lost_before
        for worker, before in zip(self.workers, known.workers, strict=False):
            worker.retired = before.retired
            if worker.endpoint != before.endpoint:
                continue
            worker.contributions_sent = before.contributions_sent
            worker.report, worker.reported_at = before.report, before.reported_at
            if worker.state is WorkerState.EVICTED and before.state is WorkerState.LEFT:
                worker.state = WorkerState.LEFT
