"""The switch's counters at the last read: packets by worker, and drops by reason."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from serene.controller.clock import SYSTEM, Clock
from serene.controller.jobs.job import JobState, Worker
from serene.controller.jobs.jobs import Jobs
from serene.controller.switch.counters import STALENESS_CLASSES, WORKER_COUNTERS, Counters
from serene.controller.switch.silence import SPOKEN, Silence, spoken

NOTHING = Counters()
UNKNOWN = (0,) * STALENESS_CLASSES


class CounterSource(Protocol):
    """The part of a `Fabric` that is used here."""

    @property
    def drop_reasons(self) -> Sequence[str]: ...

    async def read_worker_counters(
        self, members: Mapping[int, Sequence[int]], names: Sequence[str]
    ) -> dict[tuple[int, int], Counters]: ...
    async def read_staleness(self, members: Mapping[int, Sequence[int]]) -> dict[tuple[int, int], list[int]]: ...
    async def read_drops(self) -> dict[str, int]: ...


class Telemetry:
    """The latest counters. Those of a job that has ended stay as they were."""

    def __init__(self, switch: CounterSource, jobs: Jobs, clock: Clock = SYSTEM) -> None:
        self._now = clock.steady
        self._switch = switch
        self._jobs = jobs
        self._workers: dict[tuple[int, int], Counters] = {}
        self._silence = Silence()
        self._counted_at: dict[tuple[int, int], float] = {}  # time of the last read of its counters
        self._staleness: dict[tuple[int, int], Sequence[int]] = {}
        self._read_at = self._whole_at = -math.inf  # when the last read, and the last whole read, began
        self._reading = asyncio.Lock()
        self.drops: dict[str, int] = dict.fromkeys(switch.drop_reasons, 0)

    async def refresh(self, older_than_s: float = 0.0, *, whole: bool = True) -> None:
        """Reads the counters, unless they were read in the last ``older_than_s`` seconds. whole: all of them; else of
        each worker those that decisions need, `SPOKEN`. Raises SwitchError."""
        wanted = self._now() - older_than_s
        async with self._reading:  # otherwise an older answer could replace a newer one
            if (self._whole_at if whole else self._read_at) >= wanted:
                return
            began = self._now()
            asked = {job.id: job for job in self._jobs if job.state is not JobState.WAITING and job.slots is not None}
            sessions = {job.id: job.session for job in asked.values()}
            held = {job.id: [worker.id for worker in job.workers] for job in asked.values()}
            names = WORKER_COUNTERS if whole else SPOKEN
            counts = await self._switch.read_worker_counters(held, names)
            staleness = await self._switch.read_staleness(held) if whole else {}
            self.drops = await self._switch.read_drops() if whole else self.drops
            # Drop counters of a job that has ended or begun another session meanwhile.
            same = {id for id, job in asked.items() if self._jobs.get(id) is job and job.session == sessions[id]}
            self._staleness.update({who: read for who, read in staleness.items() if who[0] in same})
            now = self._now()
            for who, read in counts.items():
                if who[0] in same:
                    fresh = {name: getattr(read, name) for name in names}
                    self._workers[who] = read if whole else self.of(*who).model_copy(update=fresh)
                    self._silence.note(who, spoken(fresh), now)
                    self._counted_at[who] = now
            self._read_at = began
            self._whole_at = began if whole else self._whole_at

    def of(self, job: int, worker: int) -> Counters:
        """A worker's counters; all zero before they were read."""
        return self._workers.get((job, worker), NOTHING)

    def silent_s(self, job: int, worker: Worker) -> float:
        """Seconds from a worker's last PUSH or report to the last read of its switch. 0 before anything is known."""
        now, who = self._now(), (job, worker.id)
        return min(self._silence.seconds(who, self._counted_at.get(who, now)), now - worker.reported_at)

    def presume_silent(self, job: int, workers: Iterable[int]) -> None:
        """Counts these workers as silent until their next sign of life: their job is being taken over."""
        for worker in workers:
            self._silence.presume((job, worker))

    def staleness_of(self, job: int, worker: int) -> Sequence[int]:
        """The numbers of a worker's contributions with a staleness of 0, 1, ... 14, and 15 or more rounds."""
        return self._staleness.get((job, worker), UNKNOWN)

    def totals(self) -> Counters:
        """The sum over all workers of all jobs."""
        listed = [self.of(job.id, worker.id) for job in self._jobs for worker in job.workers]
        return Counters(**{name: sum(getattr(counts, name) for counts in listed) for name in WORKER_COUNTERS})

    def forget(self, job: int) -> None:
        """Forgets a job's counters: its id will be used again, or another session begins."""
        self._silence.forget(lambda who: isinstance(who, tuple) and who[0] == job)
        for who in [who for who in self._workers if who[0] == job]:
            del self._workers[who], self._counted_at[who]
        for who in [who for who in self._staleness if who[0] == job]:
            del self._staleness[who]
