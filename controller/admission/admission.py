"""Requests of workers that the data plane punts: HELLO, REPORT and LEAVE."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field, replace

from serene.controller.admission.frames import Answerer, NotARequest, Request, parse
from serene.controller.admission.inbox import Inbox, Pace
from serene.controller.admission.proof import Proof
from serene.controller.clock import SYSTEM, Clock
from serene.controller.events import Events
from serene.controller.jobs.errors import InTheWay
from serene.controller.jobs.job import Job, JobState, WorkerState
from serene.controller.jobs.jobs import Jobs
from serene.controller.jobs.plans import Readmission, Refusal, Start, Waiting
from serene.controller.switch.connection import SwitchError
from serene.controller.switch.fabric import Fabric
from serene.entries import Endpoint
from serene.errors import SereneError, plural
from serene.report import Facts
from serene.wire import Op

LOG = logging.getLogger("serene.controller")

# Workers ask ten times a second. A refused or waiting worker needs no answer each time.
ANSWER_INTERVAL_S = 0.5
ANSWERS_PER_PORT = 64
# Each readmission begins an epoch for all workers. A process takes longer than this to start.
READMISSION_INTERVAL_S = 0.5
COMPLAINT_INTERVAL_S = 1.0  # in the log
COMPLAINTS_PER_PORT = 4


@dataclass(eq=False)
class Admission:
    """Answers requests one after the other. lock: held during each change of a job.

    active: returns the numbers of a job's workers that sent something recently. on_job_over: awaited with a job's id
    when its last worker has left. end_restoration, starts_over, started_in_part: as of `Upkeep`. on_report: called with
    job, worker and report whenever a report is accepted.
    """

    jobs: Jobs
    switch: Fabric
    answerer: Answerer
    events: Events
    lock: asyncio.Lock
    active: Callable[[Job], Collection[int]]
    on_job_over: Callable[[int], Awaitable[None]]
    end_restoration: Callable[[Job], Awaitable[None]]
    starts_over: Callable[[Job, str, Callable[[], None]], Awaitable[bool]]
    started_in_part: Callable[[Start], Awaitable[None]]
    on_report: Callable[[int, int, Facts], None]
    clock: Clock = SYSTEM

    _inbox: Inbox = field(default_factory=Inbox)
    _proof: Proof = field(default_factory=Proof)
    _answers: Pace = field(default_factory=lambda: Pace(ANSWER_INTERVAL_S, ANSWERS_PER_PORT))
    _complaints: Pace = field(default_factory=lambda: Pace(COMPLAINT_INTERVAL_S, COMPLAINTS_PER_PORT))

    @property
    def overlooked(self) -> int:
        """The number of requests for which there was no room. Their workers ask again."""
        return self._inbox.overlooked

    def on_packet(self, rack: int, port: int, frame: bytes) -> None:
        """Queues a frame that arrived at a rack's port."""
        try:
            self._inbox.put(parse(port, frame, rack))
        except NotARequest as error:
            self._complain((rack, port), f"ignored from port {port}: {error}")

    async def run(self) -> None:
        """Serves requests for ever. An error is logged. The worker gets no answer and asks again."""
        while True:
            request = await self._inbox.get()
            who = f"{request.op.name} of worker {request.worker} of job {request.job}"
            try:
                await self._serve(request)
            except SereneError as error:
                self._complain(request.sender.behind, f"{who} from {request.sender}: {error}")
            except Exception:
                LOG.exception("%s", who)  # the requests of others are served all the same

    async def _serve(self, request: Request) -> None:
        if request.op is Op.REPORT:
            facts = request.facts()
            worker = self.jobs.report(request.job, request.worker, request.sender, facts, self.clock.steady())
            self.on_report(request.job, worker, facts)
            return
        async with self.lock:
            try:
                if request.op is Op.HELLO:
                    await self._hello(request)
                elif request.op is Op.LEAVE:
                    await self._leave(request)
            except (SwitchError, InTheWay) as error:
                # It asks again, but its user has to know the reason of the wait.
                await self._answer(request, self.answerer.wait, str(error))
                raise

    async def _hello(self, request: Request) -> None:
        if self._just_readmitted(request):
            return
        if request.says_rack not in (None, request.sender.rack):
            await self._answer(
                request,
                self.answerer.refused,
                f"worker {request.worker} names rack {request.says_rack}, but its HELLO came from rack "
                f"{request.sender.rack}: start it with rack {request.sender.rack}, or without a rack",
            )
            return
        job = self.jobs.get(request.job)
        if job is not None and self._proof.lacks(job, request.worker, request.sender, request.proof):
            await self._ask_for_proof(job, request.worker, request.sender, request.session)
            return
        if job is not None:
            job.asked_at = self.clock.steady()
            await self.end_restoration(job)
        plan = self.jobs.hello(
            request.job,
            request.worker,
            request.sender,
            request.vector_length,
            self.clock.unix(),
            request.session,
            goes_on=request.epoch > 0,
        )
        if isinstance(plan, Refusal):
            await self._answer(request, self.answerer.refused, plan.reason, has_left=plan.has_left)
        elif isinstance(plan, Waiting):
            who = "worker" if len(plan.missing) == 1 else "workers"
            missing = ", ".join(self.jobs[plan.job].racks.name(worker) for worker in plan.missing)
            text = f"waits for {who} {missing}" if missing else "restores sums after a switch lost its state"
            if missing and job is not None and job.absent:
                more = len(plan.missing) - job.absent
                text = f"waits for {plural(more, 'more worker')} ({len(job.workers)} places)"
            await self._answer(request, self.answerer.wait, f"job {plan.job} {text}")
        elif isinstance(plan, Start):
            await self._start(plan)
            if job is not None and plan.lost_sessions:
                await self.call(job)
            self.events.emit(
                "job_started",
                f"job {plan.job} started: {plural(len(plan.members), 'worker')}, {plan.vector_length} values in "
                f"{plural(plan.slots.count, 'slot')}, {plan.policy.strategy}",
                job=plan.job,
                session=plan.policy.session,
            )
        elif isinstance(plan, Readmission):
            await self._readmit(plan)

    async def _start(self, plan: Start) -> None:
        await self.switch.start(plan)
        try:
            await self.switch.admit(plan)
        except SwitchError:
            await self.started_in_part(plan)
            raise
        self.jobs.started(plan, self.clock.unix())

    async def _ask_for_proof(self, job: Job, place: int, at: Endpoint, session: int) -> None:
        number = self._proof.number(job, place, at)
        await self.switch.send(at, self.answerer.prove(at, job.id, place, session, number, job.racks))

    async def call(self, job: Job) -> None:
        """Asks workers of a lost session for a HELLO at once: those that have not come back. If none is awaited, it
        asks all: the next HELLO begins the session, and the switch answers it with a WELCOME. Otherwise each worker
        would send HELLO within two seconds, and a worker that computes would read the answer a second later."""
        everybody = not job.awaited()
        for worker in job.workers:
            at = worker.endpoint or (worker.before if job.state is JobState.WAITING else None)
            if at is not None and job.lost and (everybody or worker.endpoint is None):
                await self._ask_for_proof(job, job.racks.place(worker.id)[1], at, max(job.lost))

    def _just_readmitted(self, request: Request) -> bool:
        job = self.jobs.get(request.job)
        worker = None if job is None else job.worker_at(request.sender.rack, request.worker)
        if job is None or worker is None or job.state is not JobState.RUNNING:
            return False
        return self.clock.steady() - worker.readmitted_at < READMISSION_INTERVAL_S

    async def _readmit(self, plan: Readmission) -> None:
        job = self.jobs[plan.job]
        worker = job.workers[plan.worker]
        name = job.racks.name(plan.worker)
        again = worker.state in (WorkerState.RUNNING, WorkerState.EVICTED)

        def come_back() -> None:
            worker.move(plan.new)
            worker.state = WorkerState.RUNNING

        if await self.starts_over(job, f"worker {name} came back", come_back):
            return  # it asks again
        try:
            await self.switch.readmit(plan)
        except SwitchError:
            self.jobs.not_readmitted(plan)
            raise
        self.jobs.readmitted(plan, self.clock.unix())
        self.jobs[plan.job].workers[plan.worker].readmitted_at = self.clock.steady()
        epoch = plan.swap.policy.epoch
        kind, what = "worker_readmitted", f"worker {name} restarted at {plan.new}, epoch {epoch}"
        if job.elastic is not None and not again:
            kind, what = "worker_joined", f"worker {name} joined, epoch {epoch}: {job.taken}"
        self.events.emit(kind, f"job {plan.job}: {what}", job=plan.job, worker=plan.worker)

    async def _answer(self, request: Request, make: Callable[..., bytes], text: str, **more: bool) -> None:
        """Answers, unless the same worker was answered just before, or its port has had too many answers. make: builds
        the answer from sender, job, worker, session, text and ``more``."""
        sender = request.sender
        if not self._answers.allows(
            sender.behind, (make.__name__, sender, request.job, request.worker), self.clock.steady()
        ):
            return
        self._complain(sender.behind, f"answered {sender}: {text}")
        await self.switch.send(sender, make(sender, request.job, request.worker, request.session, text, **more))

    async def send_away(self, job: Job, reason: str) -> None:
        """Sends a job's workers a REFUSED: the job is over. A worker that misses it asks again, and is then refused."""
        for worker in job.workers:
            if worker.endpoint is not None and worker.state is not WorkerState.LEFT:
                place = job.racks.place(worker.id)[1]
                refusal = self.answerer.refused(worker.endpoint, job.id, place, job.session, reason)
                try:
                    await self.switch.send(worker.endpoint, refusal)
                except SwitchError as error:
                    text = f"worker {worker.id} of job {job.id} could not be notified: {error}"
                    self._complain(worker.endpoint.behind, text)

    async def _leave(self, request: Request) -> None:
        sent = None
        died: list[int] = []
        try:
            reported = request.facts().get("contributions_sent")
            sent = reported if type(reported) is int and reported >= 0 else None
            died = request.died()
        except NotARequest as error:
            self._complain(request.sender.behind, str(error))
        job = self.jobs[request.job]
        await self.end_restoration(job)
        plan = self.jobs.plan_leave(
            request.job, request.worker, request.sender, sent, self.active(job), request.session, died
        )
        news = plan.counts and job.workers[plan.worker].state is not WorkerState.LEFT
        alone = replace(plan, swap=None)
        goes_on = plan.swap is not None and not plan.job_over
        name = job.racks.name(plan.worker)
        job.workers[plan.worker].left_at = self.clock.steady()
        if goes_on and await self.starts_over(
            job, f"worker {name} left", lambda: self.jobs.left(alone, self.clock.unix())
        ):
            plan = alone
        else:
            if plan.swap is not None:
                await self.switch.swap(plan.swap)
            self.jobs.left(plan, self.clock.unix())
        if plan.answered:
            await self.switch.send(request.sender, self.answerer.bye(request, job_over=plan.job_over))
        if news:
            left = f"worker {name} left" + (f": {job.taken}" if job.elastic is not None else "")
            self.events.emit("worker_left", f"job {plan.job}: {left}", job=plan.job, worker=plan.worker)
            if plan.job_over:
                await self.on_job_over(plan.job)

    def _complain(self, behind: tuple[int, int], text: str) -> None:
        """Logs a complaint about a port's workers, but not too often. behind: rack and port."""
        if self._complaints.allows(behind, text, self.clock.steady()):
            LOG.info("%s", text)
