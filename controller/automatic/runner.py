"""Runs automatic strategies: passes each its job's observation in every period, and makes at most one swap."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar, cast

from serene.controller.automatic import (
    Automatic,
    BadAutomatic,
    Decision,
    Observation,
    Observer,
    Sight,
    Terms,
    checked,
    in_words,
    load,
    terms,
)
from serene.controller.automatic.base import DECISION_TIMEOUT_S
from serene.controller.automatic.loading import LONGEST_TROUBLE, SHIPPED
from serene.controller.clock import SYSTEM, Clock
from serene.controller.events import Events
from serene.controller.jobs.job import Job, JobEpoch, JobState
from serene.controller.jobs.jobs import Jobs
from serene.controller.status.model import AutomaticStatus, of, workers
from serene.controller.switch.connection import SwitchError
from serene.controller.switch.telemetry import Telemetry
from serene.errors import one_line
from serene.strategy import Strategy

LOG = logging.getLogger("serene.controller")

T = TypeVar("T")

MOST_CALLS = 16  # of users' code at once; a call that does not return cannot be ended


class UserCode:
    """Calls users' code in threads, MOST_CALLS at once at most, since they may never end."""

    def __init__(self) -> None:
        self._running = 0

    async def call(self, work: Callable[[], T]) -> T:
        """The result of ``work``. Raises its error, or BadAutomatic after DECISION_TIMEOUT_S or if too many calls have
        not returned."""
        if self._running >= MOST_CALLS:
            raise BadAutomatic(
                f"{self._running} calls of automatic strategies never returned; restart the controller to end them"
            )
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def settle(result: T | None, error: Exception | None) -> None:
            self._running -= 1
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
                # A future refuses StopIteration, which next() of an empty iterator raises.
                if isinstance(error, Exception) and not isinstance(error, StopIteration):
                    outcome = None, error
                else:
                    outcome = None, RuntimeError(in_words(error)).with_traceback(error.__traceback__)
            with contextlib.suppress(RuntimeError):  # the controller has stopped meanwhile
                loop.call_soon_threadsafe(settle, *outcome)

        self._running += 1
        # asyncio waits for its own threads when it ends; this one may never end.
        threading.Thread(target=run, daemon=True).start()
        try:  # not by wait_for: a TimeoutError may be the user's own
            await asyncio.wait([future], timeout=DECISION_TIMEOUT_S)
            if not future.done():
                raise BadAutomatic(f"no answer within {DECISION_TIMEOUT_S:g} s")
            return future.result()
        finally:
            future.cancel()


@dataclass
class RunningStrategy:
    """The automatic strategy of one job."""

    name: str
    parameters: dict[str, object]
    automatic: Automatic
    terms: Terms
    decisions: int = 0
    changes: int = 0
    reason: str = ""
    trouble: str | None = None  # the error that ended it
    blind_to: tuple[int, ...] = ()  # workers whose reports lack the needed fields
    task: asyncio.Task[None] | None = field(default=None, repr=False)

    @property
    def status(self) -> AutomaticStatus:
        return of(AutomaticStatus, self, needs=list(self.terms.needs), blind_to=list(self.blind_to))


@dataclass(eq=False)
class AutomaticRunner:
    """Runs at most one automatic strategy for each job. enact: awaited with the observed epoch, the decision and the
    automatic strategy's name. It puts the decision in force, and returns whether anything changed."""

    jobs: Jobs
    telemetry: Telemetry
    events: Events
    enact: Callable[[JobEpoch, Strategy | Decision, str], Awaitable[bool]]
    clock: Clock = SYSTEM

    _user_code: UserCode = field(default_factory=UserCode)
    _running: dict[int, RunningStrategy] = field(default_factory=dict)

    def status(self, job: int) -> AutomaticStatus | None:
        """A job's automatic strategy, if it has one and has not finished."""
        held = self.jobs.get(job)
        finished = held is None or held.state is JobState.FINISHED
        return self._running[job].status if job in self._running and not finished else None

    async def prepare(self, name: str, parameters: dict[str, object]) -> RunningStrategy:
        """An automatic strategy, loaded and ready to `start`. Raises BadAutomatic for any error of the user's code."""

        def made() -> tuple[Automatic, Terms]:
            automatic = load(name, parameters)
            return automatic, terms(name, automatic)

        try:
            return RunningStrategy(name, parameters, *await self._call(name, made))
        except BadAutomatic:
            raise
        except Exception as error:
            raise BadAutomatic(one_line(f"{name}: {type(error).__name__}: {error}", LONGEST_TROUBLE)) from None

    async def _call(self, name: str, work: Callable[[], T]) -> T:
        """The result of ``work``, a call of the automatic strategy of that name. Those of users run in threads, which
        cost more than a decision of ours. Raises as `UserCode.call`."""
        return work() if name in SHIPPED else await self._user_code.call(work)

    def start(self, job: int, running: RunningStrategy) -> None:
        """Starts an automatic strategy for the job, replacing the previous one."""
        self.stop(job)
        self._running[job] = running
        running.task = asyncio.create_task(self._decide_for_ever(job, running))

    def stop(self, job: int) -> RunningStrategy | None:
        """Ends a job's automatic strategy and returns it, if there is one; the strategy in force stays."""
        running = self._running.pop(job, None)
        if running is not None and running.task is not None:
            running.task.cancel()
        return running

    def close(self) -> None:
        """Ends all automatic strategies."""
        for job in list(self._running):
            self.stop(job)

    async def _decide_for_ever(self, job_id: int, running: RunningStrategy) -> None:
        observer, sight, session = Observer(), Sight(running.terms.needs), 0
        # The condition counts: before Python 3.12, wait_for loses a cancellation that comes together with the result.
        while self._running.get(job_id) is running:
            await asyncio.sleep(running.terms.period_s)
            job = self.jobs.get(job_id)
            if job is None or job.state is JobState.FINISHED:
                return
            if job.state is not JobState.RUNNING or job.restoring:
                continue
            if job.session != session:
                observer, sight, session = Observer(), Sight(running.terms.needs), job.session
            try:
                await self.telemetry.refresh(running.terms.period_s / 2, whole=False)
                epoch = JobEpoch.of(job)
                seen = self._observe(job, observer)
                self._say_whether_blind(job, running, sight.blind_to(seen, self.clock.steady()))
                decided = await self._call(running.name, partial(_decided, running.automatic, seen))
                if self._running.get(job_id) is not running:
                    return
                running.decisions += 1
                running.reason = decided.reason if isinstance(decided, Decision) else running.reason
                if decided is not None and await self.enact(epoch, decided, running.name):
                    running.changes += 1
            except SwitchError as error:
                LOG.warning("%s: %s", running.name, error)
            except Exception as error:  # the user's code may raise anything; the job keeps its strategy
                self._fail(job_id, running, in_words(error, running.name))
                return

    def _observe(self, job: Job, observer: Observer) -> Observation:
        now = self.clock.steady()
        views = []
        evicted = job.evicted()
        for worker in sorted(job.members() + evicted):
            observer.note(worker, job.workers[worker].report)
            rounds = self.telemetry.of(job.id, worker).contributions // job.slots_needed
            silent_s = self.telemetry.silent_s(job.id, job.workers[worker])
            views.append(observer.view(worker, rounds=rounds, is_member=worker not in evicted, silent_s=silent_s))
        return Observation(now - job.began_clock, job.epoch, now - job.history[-1].clock, job.in_force, views)

    def _say_whether_blind(self, job: Job, running: RunningStrategy, blind_to: tuple[int, ...]) -> None:
        if blind_to == running.blind_to:
            return
        running.blind_to = blind_to
        if blind_to:
            needs = " and ".join(running.terms.needs)
            what, event = (
                f"is blind to {workers(blind_to, job.racks.name)} (no reports of {needs})",
                "automatic_blind",
            )
        else:
            what, event = "receives every worker's reports again", "automatic_sees"
        self.events.emit(event, f"job {job.id}: {running.name} {what}", job=job.id, workers=list(blind_to))

    def _fail(self, job: int, running: RunningStrategy, trouble: str) -> None:
        running.trouble, running.reason = trouble, ""
        self.events.emit(
            "automatic_failed",
            f"job {job}: automatic strategy {running.name} was stopped: {trouble}; the job keeps its strategy",
            job=job,
        )


def _decided(automatic: Automatic, seen: Observation) -> Strategy | Decision | None:
    return checked(automatic.decide(seen))
