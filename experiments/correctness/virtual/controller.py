"""The controller of a run: `controller.jobs.jobs` makes the decisions, and entries are written to the switch in
process.

It is a process in virtual time. Packets go through the switch between two of its writes, and it can die there. Its
successor knows only what it reads from the switch's entries, and has another clock.
"""

from __future__ import annotations

import ipaddress
from collections import deque
from collections.abc import Callable

from controller.admission.frames import Answerer, Request, parse
from controller.admission.proof import Proof
from controller.jobs.job import Job, JobState, WorkerState
from controller.jobs.jobs import Jobs
from controller.jobs.plans import Endpoint, Policy, Readmission, Refusal, Start, Waiting
from controller.jobs.slots import SlotRange
from controller.switch.entries import InstalledJob, mac_text
from controller.switch.takeover import job_from
from experiments.correctness.virtual.checks import Violation
from experiments.correctness.virtual.process import Process
from experiments.correctness.virtual.switch import has
from experiments.correctness.virtual.worker import World
from serene.errors import SereneError
from serene.sim import entries
from serene.sim.entries import Entry, Host
from serene.strategy import PolicyFields, Strategy, shrunk
from serene.wire import SWITCH_IP, SWITCH_MAC, Op, ReadMode

CLOCK_S = 1_700_000_000.0  # the controller's clock when a run begins, in Unix seconds
MAX_JOBS, MAX_WORKERS = 8, 32
ANSWER_INTERVAL_S = 0.5

Command = Callable[["VirtualController"], None]


class Died(Exception):
    """The controller dies between two writes of a plan."""


def _host(at: Endpoint) -> Host:
    return Host(at.port, at.mac, at.ip, at.udp_port, at.incarnation)


class VirtualController:
    """A run's controllers, one after the other. ``clock_s``: the present one's clock at virtual time 0. While there is
    none, commands wait for the next one, and packets are lost.

    ``dies_for_s``: if set, it dies in the next plan that takes several writes, and is away for so long.
    """

    def __init__(self, run: World) -> None:
        self._run = run
        self._switch = run.switch
        self._answerer = Answerer(SWITCH_IP, SWITCH_MAC)
        self._commands: deque[Command] = deque()
        self._packets: deque[tuple[int, bytes]] = deque()
        self._answered: dict[object, float] = {}
        self._proof = Proof()
        self._replaced: set[Endpoint | None] = set()  # those that have lost their worker's place to another process
        self.clock_s = CLOCK_S
        self.dies_for_s: float | None = None
        self.jobs = self._no_jobs()
        self._process: Process | None = None

    def _no_jobs(self) -> Jobs:
        return Jobs(slots=self._switch.slots, lanes=self._switch.lanes, max_jobs=MAX_JOBS, max_workers=MAX_WORKERS)

    # -- its process -----------------------------------------------------------------------------------------

    def start(self) -> None:
        self._process = Process(self._run.time, self._serve)
        self._process.start()

    def die(self, away_s: float) -> None:
        """Ends it; its successor, which knows nothing, starts after so many seconds."""
        if self._process is not None:
            self._process.interrupt()
            self._dead(away_s)

    def _dead(self, away_s: float) -> None:
        self._process = None
        self._packets.clear()
        self._run.happened["controller restarts"] += 1
        self._run.time.at(away_s, self.start)

    def close(self) -> None:
        if self._process is not None:
            self._process.interrupt()
            self._process = None

    @property
    def now(self) -> float:
        """The time by its own clock, in Unix seconds."""
        return self.clock_s + self._run.time.now

    def command(self, command: Command) -> None:
        self._commands.append(command)
        self._run.time.at(0.0, self._look)  # not at once: the caller may be a process, which cannot wake another one

    def packet_in(self, port: int, frame: bytes) -> None:
        if self._process is not None:
            self._packets.append((port, frame))
            self._look()

    def _look(self) -> None:
        if self._process is not None:
            self._process.mail()

    def _serve(self) -> None:
        assert self._process is not None
        self.jobs = self._no_jobs()
        self._proof = Proof()
        self._replaced = set()
        self._answered = {}
        try:
            self._take_over()
            while True:
                if self._commands:
                    self._commands.popleft()(self)
                elif self._packets:
                    self._packet(*self._packets.popleft())
                else:
                    self._process.wait_for_mail()
        except Died:
            away_s, self.dies_for_s = self.dies_for_s, None
            self._dead(away_s or 0.0)

    def _take_over(self) -> None:
        found = _installed(self._switch.table.values())
        for job in found.values():
            self.jobs.note_session(job.session)
        for job_id, job in found.items():
            for worker, at in job.strays:
                self._delete(entries.member(_host(at), job_id, worker))
            if job.record:
                continue
            if job.complete:
                self.jobs.take_over(job_from(job_id, job, self.now))
            else:
                self._remove(job_id, job.members)
        self._run.taken_over()

    # -- writes ----------------------------------------------------------------------------------------------

    def _between(self) -> None:
        """Called between two writes of a plan: packets go through the switch meanwhile, and the controller may die."""
        if self.dies_for_s is not None:
            raise Died
        assert self._process is not None
        self._process.sleep(0.0)

    def _delete(self, entry: Entry) -> None:
        if has(self._switch, entry):
            self._switch.delete(entry)

    def _set_policy(self, job: int, policy: Policy) -> None:
        self._run.watch.written(policy.session, policy.epoch, policy.fields)
        self._switch.put(entries.policy(job, policy.session, policy.epoch, policy.fields))

    def _start(self, plan: Start) -> None:
        hosts = {worker: _host(at) for worker, at in plan.members.items()}
        self._switch.set_group(hosts, plan.job)
        for worker, host in hosts.items():
            self._switch.put(entries.address(host, plan.job, worker))
        place = entries.job(
            plan.job,
            slots=plan.slots.count,
            vector_length=plan.vector_length,
            workers=len(plan.members),
            first_slot=plan.slots.first,
            scale=plan.scale,
            limit=plan.limit / plan.scale,
            lost_sessions=plan.lost_sessions,
        )
        self._switch.put(place)
        self._set_policy(plan.job, plan.policy)
        for worker, host in hosts.items():
            self._switch.put(entries.member(host, plan.job, worker))
        self.jobs.started(plan, self.now)
        self._run.began(plan.job, plan.policy.session)

    def _readmit(self, plan: Readmission) -> None:
        """Puts a new process in a worker's place. The old one is deleted before the new one is admitted."""
        if plan.old is not None:
            self._delete(entries.member(_host(plan.old), plan.job, plan.worker))
            self._between()
        if plan.new in self._replaced:
            raise Violation("nobody is stopped", f"two processes take worker {plan.worker}'s place from each other")
        self._replaced.add(plan.old)
        self._switch.set_group({worker: _host(at) for worker, at in plan.members.items()}, plan.job)
        self._switch.put(entries.address(_host(plan.new), plan.job, plan.worker))
        self._between()
        self._set_policy(plan.job, plan.swap.policy)
        self._switch.put(entries.member(_host(plan.new), plan.job, plan.worker))
        self.jobs.readmitted(plan, self.now)

    def _remove(self, job: int, places: dict[int, Endpoint]) -> None:
        """Removes a job's entries, except the policy: it keeps the number of the job's last session."""
        for worker, at in places.items():
            self._delete(entries.member(_host(at), job, worker))
        self._delete(Entry("job", [job], ""))
        for worker in places:
            self._delete(Entry("address", [job, worker], ""))
        self._switch.set_group({}, job)

    # -- what workers ask ------------------------------------------------------------------------------------

    def _packet(self, port: int, frame: bytes) -> None:
        try:
            request = parse(port, frame)
            if request.op is Op.HELLO:
                self._hello(request)
            elif request.op is Op.LEAVE:
                self._leave(request)
        except SereneError:
            self._run.happened["requests ignored"] += 1

    def _hello(self, request: Request) -> None:
        job = self.jobs.get(request.job)
        if job is not None and self._proof.lacks(job, request.worker, request.sender, request.proof):
            number = self._proof.number(job, request.worker, request.sender)
            self._run.to_port(request.sender.port, self._answerer.prove(request, number, job.racks))
            return
        plan = self.jobs.hello(
            request.job, request.worker, request.sender, request.vector_length, self.now, request.session,
            goes_on=request.epoch > 0,
        )  # fmt: skip
        if isinstance(plan, Refusal):
            self._answer(request, self._answerer.refused, plan.reason)
        elif isinstance(plan, Waiting):
            self._answer(request, self._answerer.wait, f"job {plan.job} waits for {plan.missing}")
        elif isinstance(plan, Start):
            self._start(plan)
        elif isinstance(plan, Readmission):
            self._readmit(plan)

    def _answer(self, request: Request, make: Callable[..., bytes], text: str) -> None:
        key = make.__name__, request.sender, request.job, request.worker
        if self._run.time.now >= self._answered.get(key, 0.0):
            self._answered[key] = self._run.time.now + ANSWER_INTERVAL_S
            frame = make(request.sender, request.job, request.worker, request.session, text)
            self._run.to_port(request.sender.port, frame)

    def _leave(self, request: Request) -> None:
        active = self._run.active()
        sent = request.facts().get("contributions_sent")
        sent = sent if isinstance(sent, int) else None
        plan = self.jobs.plan_leave(request.job, request.worker, request.sender, sent, active, request.session)
        if plan.swap is not None:
            self._set_policy(plan.job, plan.swap.policy)
        self.jobs.left(plan, self.now)
        if plan.answered:
            self._run.to_port(request.sender.port, self._answerer.bye(request, job_over=plan.job_over))

    # -- what users command ----------------------------------------------------------------------------------

    def create(self, job: int, workers: int, strategy: Strategy) -> None:
        self.jobs.create(workers, strategy, job=job)

    def running(self, job_id: int) -> Job | None:
        """The job, if it runs and has members."""
        job = self.jobs.get(job_id)
        return job if job is not None and job.state is JobState.RUNNING and job.members() else None

    def swap(self, job_id: int, strategy: Strategy) -> bool:
        """Swaps the strategy, restricted to the members that are left; whether the job runs and the strategy
        changed."""
        job = self.running(job_id)
        if job is None:
            return False
        plan = self.jobs.plan_swap(job_id, shrunk(strategy, job.members()))
        if plan is None:
            return False
        self._set_policy(job_id, plan.policy)
        self.jobs.swapped(plan, self.now)
        return True

    def evict(self, job_id: int, worker: int, evicted: bool) -> bool:
        """Evicts a worker, or readmits it; whether anything changed."""
        job = self.running(job_id)
        if job is None:
            return False
        out = set(job.evicted()) - {worker} | ({worker} if evicted else set())
        try:
            plan = self.jobs.plan_barrier(job_id, job.in_force, out, "")
        except SereneError:
            return False  # the worker has left, or nobody would be counted any more
        if plan is None:
            return False
        self._set_policy(job_id, plan.policy)
        self.jobs.swapped(plan, self.now)
        return True

    def delete(self, job_id: int) -> None:
        job = self.jobs[job_id]
        self._remove(job_id, job.places())
        for worker in job.workers:
            if worker.endpoint is not None and worker.state is not WorkerState.LEFT:
                reason = f"job {job_id} was deleted"
                refusal = self._answerer.refused(worker.endpoint, job_id, worker.id, job.session, reason)
                self._run.to_port(worker.endpoint.port, refusal)
        self.jobs.delete(job_id)


def _installed(table: object) -> dict[int, InstalledJob]:
    """The jobs that a switch's entries describe, by id."""
    found: dict[int, InstalledJob] = {}
    for entry in list(table):  # type: ignore[call-overload]
        if entry.table == "member":
            port, mac, ip, udp_port, job_id, worker, incarnation = entry.match
            at = Endpoint(port, mac_text(mac), str(ipaddress.IPv4Address(ip)), udp_port, incarnation)
            job = found.setdefault(job_id, InstalledJob())
            if worker in job.members:
                job.strays.append((worker, at))
            else:
                job.members[worker] = at
        elif entry.table == "job":
            job = found.setdefault(entry.match[0], InstalledJob())
            first, count, job.vector_length, job.scale, job.limit, job.workers, job.lost_sessions, _ = entry.params
            job.slots = SlotRange(first, count)
        elif entry.table == "policy":
            job = found.setdefault(entry.match[0], InstalledJob())
            job.session, job.epoch, member_mask, sync_mask, staleness, quorum, read_mode, _ = entry.params
            job.fields = PolicyFields(member_mask, sync_mask, staleness, quorum, ReadMode(read_mode))
    return found
