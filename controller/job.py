"""One job as the controller remembers it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum

from controller.plans import Endpoint, Policy
from controller.slots import SlotRange
from serene.strategy import BSP, Strategy

LONGEST_HISTORY = 1000
LARGEST_INCARNATION = 255  # WELCOME has a byte for it


class JobState(Enum):
    WAITING = "waiting"  # for workers to join
    RUNNING = "running"
    FINISHED = "finished"  # every worker has left


class WorkerState(Enum):
    EXPECTED = "expected"
    JOINED = "joined"  # waits for the others
    RUNNING = "running"
    EVICTED = "evicted"  # takes part, but the barrier does not wait for it
    LEFT = "left"


@dataclass
class Worker:
    """One place in a job, and who holds it."""

    id: int
    state: WorkerState = WorkerState.EXPECTED
    endpoint: Endpoint | None = None
    contributions_sent: int | None = None  # packets, as the worker said when it left
    report: dict[str, object] | None = None  # its latest
    reported_at: float = 0.0  # on the monotonic clock


@dataclass(frozen=True)
class Change:
    """An epoch's beginning; ``t`` in Unix seconds."""

    t: float
    session: int
    epoch: int
    strategy: Strategy
    reason: str


@dataclass(frozen=True)
class Place:
    """One epoch of one job: what a decision was made about."""

    job: int
    session: int
    epoch: int

    @classmethod
    def of(cls, job: Job) -> Place:
        return cls(job.id, job.session, job.epoch)


@dataclass
class Job:
    """One training run. ``slots`` is None while it holds none; session and epoch are 0 before it runs."""

    id: int
    workers_expected: int
    strategy: Strategy  # the one that is wanted: in force unless the job waits or is restoring
    scale: int
    state: JobState = JobState.WAITING
    session: int = 0
    epoch: int = 0
    epochs_spent: int = 0
    incarnation: int = 0  # sessions that the switch has lost
    restoring: bool = False  # a later session begins with the workers putting the sums back, under BSP
    vector_length: int = 0
    slots: SlotRange | None = None
    slots_needed: int = 0
    began_at: float = 0.0  # the session; in Unix seconds
    finished_at: float | None = None
    workers: list[Worker] = field(default_factory=list)
    epochs_begun: int = 0  # of all its sessions
    history: deque[Change] = field(default_factory=lambda: deque(maxlen=LONGEST_HISTORY))  # the latest of them

    def __post_init__(self) -> None:
        self.workers = [Worker(worker) for worker in range(self.workers_expected)]

    @property
    def over(self) -> bool:
        """Finished, and no trace of it left in the switch."""
        return self.state is JobState.FINISHED and self.slots is None

    def members(self) -> list[int]:
        """The workers that the barrier knows: those a strategy is compiled for."""
        return [worker.id for worker in self.workers if worker.state is WorkerState.RUNNING]

    @property
    def in_force(self) -> Strategy:
        """What the workers are under now."""
        return BSP() if self.restoring else self.strategy

    def evicted(self) -> list[int]:
        return [worker.id for worker in self.workers if worker.state is WorkerState.EVICTED]

    def adopt(self, policy: Policy, reason: str, now: float) -> Change:
        """The switch has this policy now."""
        if policy.session != self.session:
            self.began_at = now
        self.session = policy.session
        self.epoch = policy.epoch
        if not self.restoring:
            self.strategy = policy.strategy
        change = Change(now, policy.session, policy.epoch, policy.strategy, reason)
        self.history.append(change)
        self.epochs_begun += 1
        return change

    def reset(self) -> None:
        """Back to waiting for those who took part; what happened so far stays in the history.

        Who has left or was evicted is not waited for; it may come back once the job runs again.
        """
        self.state = JobState.WAITING
        self.incarnation = min(self.incarnation + 1, LARGEST_INCARNATION)
        self.restoring = False
        self.session = self.epoch = self.epochs_spent = 0
        self.vector_length = self.slots_needed = 0
        self.slots = None
        gone = (WorkerState.LEFT, WorkerState.EVICTED)
        self.workers = [
            Worker(worker.id, WorkerState.LEFT if worker.state in gone else WorkerState.EXPECTED)
            for worker in self.workers
        ]
