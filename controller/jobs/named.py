"""Jobs by name: processes ask for a place in a job of this name, which is made for the first of them. No I/O, no clock.

The processes of a new job are *gathered*: each asks repeatedly until all have asked. Then their settings are compared,
so that all of them learn of a difference, and the job is made. A process that comes while the job runs gets the place
of a worker that is silent or has left. In a job whose workers come and go it may get a place that was never taken. A
restarted controller gathers again the processes that still ask, and knows the jobs that have begun
(`serene.controller.jobs.notes`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from serene.controller.jobs.errors import BadRequest, Conflict
from serene.controller.jobs.job import Elastic, Job, JobState, Worker, WorkerState
from serene.controller.jobs.jobs import Jobs
from serene.fixedpoint import LARGEST
from serene.report import Fact

LONGEST_NAME = 64
MOST_VALUES = 4  # of a setting, in the message that processes differ
STILL_THERE_S = 5.0  # a process asks several times a second; after this silence it has died
ALL_DIFFER_S = 3.0  # after a difference, the time to wait for further processes
HEARING_S = 10.0  # for all processes to learn that their settings differ
VACANT_S = 5.0  # a worker reports every second; after this silence its place is free
CLAIMED_S = 10.0  # for a process to join, once it has a place
BACK_S = 10.0  # for a process to come back after its session was lost; until then it keeps its place
PATIENCE_S = 15.0  # for a place to become free


@dataclass(frozen=True)
class Asks:
    """A process's request for a place. process: its random number. workers: the number that it expects in the job.
    settings: must be equal for all processes. scale: the fixed-point units in 1.0 that it proposes. limit: in units.
    rack: its own; None with one switch. elastic: how workers come and go; None: they stay."""

    process: str
    workers: int
    settings: Mapping[str, Fact]
    scale: int
    limit: int
    rack: int | None = None
    elastic: Elastic | None = None

    @property
    def places(self) -> int:
        return self.workers if self.elastic is None else self.elastic.places


@dataclass(frozen=True)
class Place:
    """The process has this place. joins: while the job runs."""

    job: Job
    worker: int


@dataclass(frozen=True)
class Awaits:
    """The process has to ask again. why: a text."""

    why: str


@dataclass(frozen=True)
class Dead:
    """All workers of the job of that name are silent, and this process belongs to another job: the old one is in the
    way."""

    job: Job


@dataclass(frozen=True)
class Complete:
    """All processes have asked, so the job can be made. They are in the order of their places. racks: the number of
    workers in each rack; None with one switch."""

    processes: tuple[str, ...]
    asked: Asks
    scale: int
    racks: Mapping[int, int] | None


@dataclass
class _Arrival:
    asks: Asks
    at: float  # its last request
    notified: bool = False  # it has been notified that the settings differ


@dataclass
class _Gathering:
    """The processes that have asked for one name, in order of their first request."""

    arrivals: dict[str, _Arrival] = field(default_factory=dict)
    differ_since: float = math.inf
    refused_at: float = math.inf

    def live(self, now: float) -> dict[str, _Arrival]:
        return {who: arrival for who, arrival in self.arrivals.items() if now - arrival.at < STILL_THERE_S}


@dataclass
class _Claim:
    process: str
    at: float


class Named:
    """The names of one controller. silent_s: a worker's seconds of silence; for a worker that has not come back, the
    seconds since its session was lost. Times are on the monotonic clock, in seconds."""

    def __init__(self, jobs: Jobs, silent_s: Callable[[Job, Worker], float]) -> None:
        self._jobs = jobs
        self._silent_s = silent_s
        self._gatherings: dict[str, _Gathering] = {}
        self._claims: dict[tuple[int, int], _Claim] = {}  # by the job's tag and the worker
        self._waiting: dict[tuple[str, str], float] = {}  # since when a process waits for a place, by name and process

    def job(self, name: str) -> Job | None:
        """The job of this name that has not finished."""
        return next((job for job in self._jobs if job.name == name and job.state is not JobState.FINISHED), None)

    def come(self, name: str, asks: Asks, now: float) -> Place | Awaits | Dead | Complete:
        """A process's request, the first or a later one. Raises BadRequest for an impossible name or request, Conflict
        if the settings differ or all places are taken."""
        _check(name, asks, self._jobs.max_workers)
        self._forget(now)
        job = self.job(name)
        return self._gather(name, asks, now) if job is None else self._find_place(job, asks, now)

    def gathering(self, now: float) -> dict[str, tuple[int, str]]:
        """By the names of jobs that are not made yet: the number of processes, and the text of what they wait for."""
        there = {name: gathering.live(now) for name, gathering in self._gatherings.items()}
        return {name: (len(live), _awaited(name, live)) for name, live in there.items() if live}

    def made(self, job: Job, name: str, complete: Complete, now: float) -> None:
        """Commits that the job was made for these processes."""
        job.name, job.settings = name, dict(complete.asked.settings)
        for worker, process in enumerate(complete.processes):
            self._claims[job.tag, worker] = _Claim(process, now)
        self._gatherings.pop(name, None)

    def _forget(self, now: float) -> None:
        """Forgets processes that no longer ask, and places of deleted jobs."""
        tags = {job.tag for job in self._jobs}
        self._gatherings = {
            name: gathering
            for name, gathering in self._gatherings.items()
            if gathering.live(now) or 0 <= now - gathering.refused_at <= HEARING_S
        }
        self._claims = {who: claim for who, claim in self._claims.items() if who[0] in tags}
        self._waiting = {who: since for who, since in self._waiting.items() if now - since <= 2 * PATIENCE_S}

    # -- a new job -------------------------------------------------------------------------------------------

    def _gather(self, name: str, asks: Asks, now: float) -> Awaits | Complete:
        gathering = self._gatherings.setdefault(name, _Gathering())
        if now - gathering.refused_at > HEARING_S:
            gathering = self._gatherings[name] = _Gathering()
        gathering.arrivals = live = gathering.live(now)
        expected = max([asks.workers, *(arrival.asks.workers for arrival in live.values())])
        known = live.get(asks.process)
        if known is not None or len(live) < expected:  # else it is surplus, and need not be remembered
            live[asks.process] = _Arrival(asks, now, known is not None and known.notified)
        if text := differences(name, [arrival.asks for arrival in live.values()]):
            return self._refuse(name, gathering, asks, text, len(live) >= expected, now)
        gathering.differ_since = math.inf
        if len(live) < expected:
            return Awaits(_awaited(name, live))
        first = [arrival.asks for arrival in live.values()][:expected]
        if asks.process not in {one.process for one in first}:
            return Awaits(f"all {expected} processes of job {name!r} are here")
        first.sort(key=lambda one: one.rack or 0)  # stable: in each rack in the order of their requests
        racks = None if asks.rack is None else Counter(one.rack or 0 for one in first)
        return Complete(tuple(one.process for one in first), asks, min(one.scale for one in first), racks)

    def _refuse(self, name: str, gathering: _Gathering, asks: Asks, text: str, complete: bool, now: float) -> Awaits:
        gathering.differ_since = min(gathering.differ_since, now)
        if not complete and now - gathering.differ_since < ALL_DIFFER_S:
            return Awaits(text)  # so that processes that are about to ask learn it, too
        gathering.refused_at = min(gathering.refused_at, now)
        if asks.process in gathering.arrivals:
            gathering.arrivals[asks.process].notified = True
        if complete and all(arrival.notified for arrival in gathering.arrivals.values()):
            del self._gatherings[name]
        raise Conflict(text)

    # -- a job that there is ---------------------------------------------------------------------------------

    def _find_place(self, job: Job, asks: Asks, now: float) -> Place | Awaits | Dead:
        for worker in job.workers:
            claim = self._claims.get((job.tag, worker.id))
            if claim is not None and claim.process == asks.process:
                return Place(job, worker.id)
        if differing := _differ({"the others": job.settings, "this process": asks.settings}):
            begun = job.state is JobState.RUNNING or job.lost_sessions
            if begun and all(self._vacant(job, worker, now) for worker in job.workers):
                return Dead(job)
            raise Conflict(f"job {job.name!r} runs already: {differing}")
        who = job.name or "", asks.process
        since = self._waiting.setdefault(who, now)
        if job.state is JobState.WAITING:  # for its workers to come back
            self._waiting[who] = now
        for worker in self._by_preference(job, now - since):
            if self._vacant(job, worker, now) and asks.rack in (None, job.racks.place(worker.id)[0]):
                self._claims[job.tag, worker.id] = _Claim(asks.process, now)
                worker.given = True
                del self._waiting[who]
                return Place(job, worker.id)
        taken = f"all {len(job.workers)} places of job {job.name!r} are taken"
        if now - since > PATIENCE_S:
            del self._waiting[who]
            has = "workers" if job.elastic is None else "places"
            raise Conflict(f"{taken} by living workers: start fewer processes, or a job with more {has}")
        return Awaits(f"{taken}: waits until a place is free")

    def _vacant(self, job: Job, worker: Worker, now: float) -> bool:
        claim = self._claims.get((job.tag, worker.id))
        if claim is not None and now - claim.at < CLAIMED_S:
            return False
        if worker.endpoint is None:  # since the session was lost, its process may be about to come back
            gone_after_s = VACANT_S if _holds_up_nobody(job) else BACK_S
            gone = worker.id in job.silenced or self._silent_s(job, worker) >= gone_after_s
            return worker.before is None or gone
        if worker.state is WorkerState.LEFT:  # it may wait for the others' last contributions
            return now - worker.left_at >= VACANT_S
        return job.state is JobState.RUNNING and self._silent_s(job, worker) >= VACANT_S

    def _by_preference(self, job: Job, waited_s: float) -> list[Worker]:
        """The places that a process may get, in order of preference."""
        left = [worker for worker in job.workers if worker.state is WorkerState.LEFT]
        others = [worker for worker in job.workers if worker.state is not WorkerState.LEFT]
        if _holds_up_nobody(job):
            # First places that no process had.
            left.sort(key=lambda worker: (worker.endpoint is not None, worker.before is not None))
            # Of the silent workers, the first is most certainly dead, not slow.
            return [*left, *sorted(others, key=lambda worker: -self._silent_s(job, worker))]
        # First those of dead members, which make the others wait. It takes a while until a member counts as dead.
        return [*others, *(left if waited_s >= VACANT_S else ())]


def _holds_up_nobody(job: Job) -> bool:
    """Whether a dead member makes no worker wait for long."""
    return job.elastic is not None and job.elastic.evict_after is not None


def _awaited(name: str, live: Mapping[str, _Arrival]) -> str:
    """A text of what these processes wait for."""
    asked = [arrival.asks for arrival in live.values()]
    expected = max(one.workers for one in asked)
    return differences(name, asked) or f"{len(live)} of {expected} processes of job {name!r} are here"


def _check(name: str, asks: Asks, max_workers: int) -> None:
    if not (name and len(name) <= LONGEST_NAME and name.isprintable()):
        raise BadRequest(f"job {name!r}: expected a name of 1 to {LONGEST_NAME} printable characters")
    if not 1 <= asks.places <= max_workers:  # before the processes wait for ones that can never get a place
        raise BadRequest(f"job {name!r}: {asks.places} workers: expected 1 to {max_workers}")
    largest = LARGEST // asks.places
    if not 1 <= asks.scale <= largest:
        raise BadRequest(f"scale {asks.scale} for {asks.places} workers: expected 1 to {largest}")
    if not 1 <= asks.limit <= largest:
        raise BadRequest(f"limit {asks.limit} units for {asks.places} workers: expected 1 to {largest}")


def differences(name: str, asked: list[Asks]) -> str:
    """A text of the differences between the processes' settings; empty without any."""
    counts: dict[str, Counter[Fact]] = {}
    for one in asked:
        for setting, value in one.settings.items():
            counts.setdefault(setting, Counter())[value] += 1
    parts = []
    for setting, values in counts.items():
        if len(values) > 1 or sum(values.values()) < len(asked):
            each = [f"{value} in {_processes(count)}" for value, count in values.most_common(MOST_VALUES)]
            if others := sum(values.values()) - sum(count for _, count in values.most_common(MOST_VALUES)):
                each.append(f"others in {_processes(others)}")
            parts.append(f"{setting} is {' and '.join(each)}")
    return f"the processes of job {name!r} differ: {'; '.join(parts)}" if parts else ""


def _processes(count: int) -> str:
    return f"{count} process{'es'[: 2 * (count > 1)]}"


def _differ(sides: Mapping[str, Mapping[str, Fact]]) -> str:
    """A text of the differences between two sides' settings."""
    (one, ours), (other, theirs) = sides.items()
    names = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
    return "; ".join(f"{name} is {ours.get(name)} for {one} and {theirs.get(name)} for {other}" for name in names)
