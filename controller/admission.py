"""Workers at the door: HELLO, REPORT and LEAVE, as the data plane hands them up."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from controller.connection import SwitchError
from controller.events import Events
from controller.frames import Answerer, NotARequest, Request, parse
from controller.job import Job, WorkerState
from controller.jobs import Jobs
from controller.plans import Endpoint, Readmission, Refusal, Start
from controller.switch import Switch
from serene.errors import SereneError
from serene.wire import Op

LOG = logging.getLogger("serene.controller")

# Workers ask ten times a second; who is refused need not hear so each time.
REFUSAL_INTERVAL_S = 0.5


class Admission:
    """Answers requests one after the other. Whatever changes a job holds ``lock``."""

    def __init__(
        self,
        jobs: Jobs,
        switch: Switch,
        answerer: Answerer,
        events: Events,
        lock: asyncio.Lock,
        on_job_over: Callable[[int], Awaitable[None]],
    ) -> None:
        self._jobs = jobs
        self._switch = switch
        self._answerer = answerer
        self._events = events
        self._lock = lock
        self._on_job_over = on_job_over
        self._refused_at: dict[Endpoint, float] = {}

    async def on_packet(self, port: int, frame: bytes) -> None:
        """Serve one frame. What goes wrong is logged, and the worker, who hears nothing, asks again."""
        try:
            request = parse(port, frame)
            async with self._lock:
                if request.op is Op.HELLO:
                    await self._hello(request)
                elif request.op is Op.REPORT:
                    self._jobs.report(request.job, request.worker, request.facts(), time.monotonic())
                elif request.op is Op.LEAVE:
                    await self._leave(request)
        except NotARequest as error:
            LOG.warning("ignored from port %d: %s", port, error)
        except SwitchError as error:
            LOG.warning("%s of worker %d of job %d: %s", request.op.name, request.worker, request.job, error)
        except SereneError as error:
            LOG.warning("ignored from port %d: %s", port, error)

    async def _hello(self, request: Request) -> None:
        plan = self._jobs.hello(request.job, request.worker, request.sender, request.vector_length, time.time())
        if isinstance(plan, Refusal):
            await self._refuse(request, plan.reason)
        elif isinstance(plan, Start):
            await self._switch.start(plan)
            self._jobs.started(plan, time.time())
            self._events.emit(
                "job_started",
                f"job {plan.job} started: {len(plan.members)} workers, {plan.vector_length} values in "
                f"{plan.slots.count} slots, {plan.policy.strategy}",
                job=plan.job,
                session=plan.policy.session,
            )
        elif isinstance(plan, Readmission):
            await self._switch.readmit(plan)
            self._jobs.readmitted(plan, time.time())
            self._events.emit(
                "worker_readmitted",
                f"job {plan.job}: worker {plan.worker} restarted at {plan.new}, epoch {plan.swap.policy.epoch}",
                job=plan.job,
                worker=plan.worker,
            )

    async def _refuse(self, request: Request, reason: str) -> None:
        now = time.monotonic()
        self._refused_at = {sender: at for sender, at in self._refused_at.items() if now - at < REFUSAL_INTERVAL_S}
        if request.sender in self._refused_at:
            return
        self._refused_at[request.sender] = now
        LOG.info("refused %s: %s", request.sender, reason)
        refusal = self._answerer.refused(request.sender, request.job, request.worker, reason)
        await self._switch.send(request.sender.port, refusal)

    async def send_away(self, job: Job, reason: str) -> None:
        """Tell a job's workers that it is no more. Who does not hear it asks by itself, and is refused then."""
        for worker in job.workers:
            if worker.endpoint is not None and worker.state is not WorkerState.LEFT:
                refusal = self._answerer.refused(worker.endpoint, job.id, worker.id, reason)
                await self._switch.send(worker.endpoint.port, refusal)

    async def _leave(self, request: Request) -> None:
        sent = None
        try:
            said = request.facts().get("contributions_sent")
            sent = said if type(said) is int and said >= 0 else None
        except NotARequest as error:
            LOG.warning("%s", error)
        plan = self._jobs.plan_leave(request.job, request.worker, sent)
        news = self._jobs[plan.job].workers[plan.worker].state is not WorkerState.LEFT
        if plan.swap is not None:
            await self._switch.swap(plan.swap)
        self._jobs.left(plan, time.time())
        await self._switch.send(request.sender.port, self._answerer.bye(request, job_over=plan.job_over))
        if news:
            self._events.emit(
                "worker_left", f"job {plan.job}: worker {plan.worker} left", job=plan.job, worker=plan.worker
            )
            if plan.job_over:
                await self._on_job_over(plan.job)
