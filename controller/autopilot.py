"""Runs automatic strategies: looks at a job every period, asks, and writes at most one rule for an answer."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar, cast

from controller.automatic import Automatic, Decision, Observation, Observer
from controller.connection import SwitchError
from controller.events import Events
from controller.job import Job, JobState
from controller.jobs import Jobs
from controller.telemetry import Telemetry
from serene.errors import SereneError
from serene.strategy import Strategy

LOG = logging.getLogger("serene.controller")

T = TypeVar("T")

PATIENCE_S = 5.0  # with a decision: it is the user's code


async def aside(work: Callable[[], T], patience_s: float) -> T:
    """Runs a user's code in a thread that nobody has to wait for. Raises what it raises, or asyncio.TimeoutError."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: Exception | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(cast(T, result))

    def run() -> None:
        try:
            outcome: tuple[T | None, Exception | None] = work(), None
        except BaseException as error:
            outcome = None, error if isinstance(error, Exception) else RuntimeError(repr(error))
        with contextlib.suppress(RuntimeError):  # the controller has stopped meanwhile
            loop.call_soon_threadsafe(settle, *outcome)

    # asyncio's own threads are waited for at the end; this one may be in a loop without end.
    threading.Thread(target=run, daemon=True).start()
    return await asyncio.wait_for(future, patience_s)


@dataclass
class Pilot:
    """The automatic strategy of one job."""

    name: str
    parameters: dict[str, object]
    automatic: Automatic
    decisions: int = 0
    changes: int = 0
    trouble: str | None = None  # why it decides no more
    task: asyncio.Task[None] | None = field(default=None, repr=False)

    def status(self) -> dict[str, object]:
        return {
            "name": self.name,
            "parameters": self.parameters,
            "decisions": self.decisions,
            "changes": self.changes,
            "trouble": self.trouble,
        }


class Autopilot:
    """At most one automatic strategy a job. ``change(job, strategy, evicted, reason)`` makes a decision real."""

    def __init__(
        self,
        jobs: Jobs,
        telemetry: Telemetry,
        events: Events,
        change: Callable[[int, Strategy, frozenset[int], str], Awaitable[bool]],
    ) -> None:
        self._jobs = jobs
        self._telemetry = telemetry
        self._events = events
        self._change = change
        self._pilots: dict[int, Pilot] = {}

    def of(self, job: int) -> Pilot | None:
        return self._pilots.get(job)

    def start(self, job: int, name: str, parameters: dict[str, object], automatic: Automatic) -> Pilot:
        """From now on, instead of another one."""
        self.stop(job)
        pilot = Pilot(name, parameters, automatic)
        self._pilots[job] = pilot
        pilot.task = asyncio.create_task(self._fly(job, pilot))
        return pilot

    def stop(self, job: int) -> Pilot | None:
        """The job keeps the strategy it has."""
        pilot = self._pilots.pop(job, None)
        if pilot is not None and pilot.task is not None:
            pilot.task.cancel()
        return pilot

    def close(self) -> None:
        for job in list(self._pilots):
            self.stop(job)

    async def _fly(self, job_id: int, pilot: Pilot) -> None:
        observer, session = Observer(time.monotonic()), 0
        while True:
            await asyncio.sleep(pilot.automatic.period_s)
            job = self._jobs.get(job_id)
            if job is None or job.state is JobState.FINISHED:
                return
            if job.state is not JobState.RUNNING or job.restoring:
                continue
            if job.session != session:
                observer, session = Observer(time.monotonic()), job.session
            try:
                await self._telemetry.refresh(pilot.automatic.period_s / 2)
                seen = self._observe(job, observer)
                decided = await aside(lambda: pilot.automatic.decide(seen), PATIENCE_S)  # noqa: B023 (ends here)
                pilot.decisions += 1
                await self._apply(job, pilot, decided)
            except SwitchError as error:
                LOG.warning("%s: %s", pilot.name, error)
            except asyncio.TimeoutError:
                self._fail(job_id, pilot, f"no decision within {PATIENCE_S:g} s")
                return
            except Exception as error:  # the user's code: whatever it is, the job goes on as it is
                self._fail(job_id, pilot, str(error) if isinstance(error, SereneError) else repr(error))
                return

    def _observe(self, job: Job, observer: Observer) -> Observation:
        now, wall = time.monotonic(), time.time()
        views = []
        evicted = job.evicted()
        for worker in sorted(job.members() + evicted):
            counters = self._telemetry.of(job.id, worker)
            observer.note(worker, now, counters, job.workers[worker].report)
            rounds = counters["contributions"] // job.slots_needed
            views.append(observer.view(worker, now, rounds=rounds, in_barrier=worker not in evicted))
        began = next(change.t for change in job.history if change.session == job.session)
        return Observation(wall - began, job.epoch, wall - job.history[-1].t, job.in_force, views)

    async def _apply(self, job: Job, pilot: Pilot, decided: object) -> None:
        if decided is None:
            return
        if isinstance(decided, Strategy):
            decided = Decision(decided, frozenset(job.evicted()))
        if not isinstance(decided, Decision):
            raise SereneError(f"decide() returned {decided!r}: expected a Strategy, a Decision or None")
        if await self._change(job.id, decided.strategy, decided.evicted, pilot.name):
            pilot.changes += 1

    def _fail(self, job: int, pilot: Pilot, trouble: str) -> None:
        pilot.trouble = trouble
        self._events.emit(
            "automatic_failed",
            f"job {job}: {pilot.name} decides no more: {trouble}; the strategy stays as it is",
            job=job,
        )
