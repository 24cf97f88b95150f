"""Periodic work for jobs: ends those that are over, and compares the switch's entries with the known jobs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field

from serene.client.session.restoration import rounds
from serene.controller.clock import SYSTEM, Clock
from serene.controller.commands import local
from serene.controller.events import Events
from serene.controller.jobs.elastic import evictions, is_deserted, starts_without
from serene.controller.jobs.errors import Conflict
from serene.controller.jobs.job import RETURN_S, Job, JobState, WorkerState
from serene.controller.jobs.jobs import Jobs
from serene.controller.jobs.plans import Start
from serene.controller.settings import ShmPort, UdpPort
from serene.controller.status.explain import SILENT_S
from serene.controller.status.model import workers
from serene.controller.switch.connection import SwitchError
from serene.controller.switch.fabric import Fabric
from serene.controller.switch.plan_entries import InstalledJob
from serene.controller.switch.takeover import job_from, lost_job_from
from serene.controller.switch.telemetry import Telemetry
from serene.errors import SereneError

LOG = logging.getLogger("serene.controller")

TICK_S = 0.25  # time between two checks of the jobs
POLL_S = 1.0  # time between two reads of the counters
RESTARTS = "before the sums were restored; the restoration restarts"
GONE_S = 2.5  # a rank sends every second; after this silence its process is checked


@dataclass(eq=False)
class Upkeep:
    """Does the upkeep of all jobs. lock: held during each change of a job. grace_s: seconds for which a finished job's
    entries stay. gone_after_s: after this silence a worker counts as gone. delete: awaited with a job and the reason,
    while the lock is held; evict: likewise, with the workers to evict from then on. call: likewise, to ask the workers
    of a lost session for a HELLO."""

    jobs: Jobs
    switch: Fabric
    telemetry: Telemetry
    events: Events
    lock: asyncio.Lock
    grace_s: float
    gone_after_s: float
    delete: Callable[[Job, str], Awaitable[None]]
    evict: Callable[[Job, frozenset[int], str], Awaitable[None]]
    call: Callable[[Job], Awaitable[None]]
    clock: Clock = SYSTEM

    # Jobs whose removal failed: the switch may hold all, some or none of their entries.
    _in_doubt: set[int] = field(default_factory=set)
    _troubles: dict[str, str] = field(default_factory=dict)  # logged errors, by the work that they prevent

    async def run(self) -> None:
        """Does the upkeep for ever. An error with one job is logged, and the others are served nevertheless."""
        while True:
            await asyncio.sleep(TICK_S)
            if not any(switch.connected for switch in self.switch.switches):
                continue
            if self._in_doubt and self.switch.connected:
                await self._try("what the switch holds", self.compare())
            if any(job.state is JobState.RUNNING for job in self.jobs):
                restoring = any(job.restoring for job in self.jobs)
                await self._try("counters", self.telemetry.refresh(TICK_S if restoring else POLL_S))
            for job in list(self.jobs):
                await self._try(f"job {job.id}", self._look_after(job))

    async def _try(self, what: str, work: Awaitable[None]) -> None:
        """Awaits it; an error is logged once, not at each tick."""
        try:
            await work
        except Exception as error:
            if self._troubles.get(what) != str(error):
                LOG.warning("%s: %s", what, error, exc_info=not isinstance(error, SereneError))
            self._troubles[what] = str(error)
        else:
            self._troubles.pop(what, None)

    async def _look_after(self, job: Job) -> None:
        async with self.lock:
            if self.jobs.get(job.id) is not job:
                return
            if job.state is JobState.FINISHED and job.slots is not None and not job.pool and self.switch.connected:
                await self.telemetry.refresh(POLL_S)
                answers = sum(self.telemetry.of(job.id, worker.id).answers for worker in job.workers)
                job.note_reads(answers, self.clock.steady())
            if job.id in self.jobs.due(self.clock.steady(), self.grace_s):
                await self._clear(job)
            if job.state is JobState.RUNNING and self.switch.connected:  # otherwise each tick would use up an epoch
                await self._end_restoration(job)
                await self._end_abandoned(job)
                await self._evict_silent(job)
            if job.state is JobState.WAITING and starts_without(job):
                job.absent = sum(worker.state is WorkerState.EXPECTED for worker in job.workers)
            just_lost = job.lost_sessions and job.lost_s < RETURN_S
            if job.state is JobState.WAITING and just_lost and self.switch.connected:
                await self.call(job)
            if job.state is not JobState.FINISHED:
                if job.pool:
                    await self._end_pool(job)
                elif job.name is not None:
                    await self._end_deserted(job)

    async def _clear(self, job: Job) -> None:
        await self.telemetry.refresh()
        await self.remove(job)
        self.jobs.cleared(job.id)
        self.events.emit("job_cleared", f"job {job.id}: its slots are free", job=job.id)

    async def _end_restoration(self, job: Job) -> None:
        """Puts the wanted strategy in force when every worker has done its part of the restoration, which uses BSP."""
        least = min((self.telemetry.of(job.id, worker).contributions for worker in job.restorers()), default=0)
        if job.restoring and least >= rounds(len(job.racks.sizes)) * job.slots_needed:
            plan = self.jobs.plan_restored(job.id)
            if plan is not None:
                await self.switch.swap(plan)
            self.jobs.restored(job.id, plan, self.clock.unix())
            self.events.emit(
                "job_restored", f"job {job.id}: the workers' sums are restored, {job.strategy}", job=job.id
            )

    async def _end_abandoned(self, job: Job) -> None:
        """Ends a job if its evicted workers have been silent for long enough, and its members have all left, or are
        silent while others wait for the end. The waiting ones then read the others' contributions."""
        over = not job.members() or _awaited(job) or is_deserted(job, self._silent_s(job))
        if over and not self.active(job):
            silent_ones = [*job.members(), *job.evicted()]
            plan = self.jobs.plan_abandoned(job.id)
            await self.switch.swap(plan)
            self.jobs.abandoned(plan, self.clock.unix())
            silent = f"{workers(sorted(silent_ones), job.racks.name)} silent for {self.gone_after_s:g} s"
            self.events.emit("job_finished", f"job {job.id} finished: {silent}", job=job.id)

    async def _evict_silent(self, job: Job) -> None:
        """Evicts silent members of an elastic job, and readmits those that send again."""
        if job.elastic is None or job.elastic.evict_after is None or job.state is not JobState.RUNNING:
            return
        await self.telemetry.refresh(min(POLL_S, job.elastic.evict_after / 4), whole=False)
        before = set(job.evicted())
        evicted, silenced = evictions(job, self._silent_s(job))
        if evicted != before:
            gone = sorted(evicted - before)
            await self.evict(job, evicted, f"{workers(gone, job.racks.name)} silent" if gone else "heard again")
        job.silenced = silenced & frozenset(job.evicted())

    def _silent_s(self, job: Job) -> dict[int, float]:
        """Each worker's seconds of silence; 0 for a process that has just come."""
        now = self.clock.steady()
        return {
            worker.id: min(self.telemetry.silent_s(job.id, worker), now - worker.readmitted_at)
            for worker in job.workers
        }

    async def _end_pool(self, job: Job) -> None:
        """Ends a pool with a silent worker, and sends the others a REFUSED: it needs all of its workers, each of which
        reports about every second."""
        if job.state is JobState.WAITING:
            silent = self.clock.steady() - job.asked_at >= self.gone_after_s
            who = "nobody has joined"
        else:
            active = self.active(job)
            missing = [worker for worker in job.members() if worker not in active]
            silent, who = bool(missing), f"{workers(missing)} silent" if missing else ""
            if not silent and await self._processes_are_gone(job):
                await self.delete(job, f"job {job.id} is over: the processes of {workers(job.members())} are gone")
        if silent:
            await self.delete(job, f"job {job.id} is over: {who} for {self.gone_after_s:g} s")

    async def _processes_are_gone(self, job: Job) -> bool:
        """Whether all members are silent and dead, by the reports of workers that have left or by the kernel: no
        process has the members' ports of a local switch."""
        members = [job.workers[member] for member in job.members()]
        if any(self.telemetry.silent_s(job.id, member) < GONE_S for member in members):
            return False
        if job.died.issuperset(job.members()):
            return True
        options = self.switch.switches[0].options
        ports: list[UdpPort | ShmPort] = [*options.udp_ports, *options.shm_ports]
        taken = {member.endpoint.port for member in members if member.endpoint is not None}
        return bool(ports) and await asyncio.to_thread(local.is_deserted, options.address, ports, taken)

    async def _end_deserted(self, job: Job) -> None:
        """Ends a named job whose workers are all silent: each reports about every second. Until then restarted
        processes continue it."""
        if job.state is JobState.RUNNING:
            deserted = self.switch.connected and not _awaited(job) and not self.active(job)
        else:  # a job whose switch has lost its state waits for its workers without limit
            deserted = not job.lost_sessions and self.clock.steady() - job.asked_at >= self.gone_after_s
        if deserted:
            await self.delete(job, f"job {job.id} is over: its workers are silent for {self.gone_after_s:g} s")

    def active(self, job: Job) -> set[int]:
        """The workers of a job that have sent something recently."""
        return {
            worker.id
            for worker in job.workers
            if worker.endpoint is not None and self.telemetry.silent_s(job.id, worker) < self.gone_after_s
        }

    # For callers that hold the lock

    async def remove(self, job: Job) -> None:
        """Removes the switch's entries of a job. Raises SwitchError."""
        try:
            await self.switch.remove(job.id)
        except SwitchError:
            self._in_doubt.add(job.id)
            raise

    async def end_restoration(self, job: Job) -> None:
        """Ends a restoration in which every worker has done its part. Call it before an epoch is planned: the end
        itself begins one, and another epoch during the restoration would show the workers different votes."""
        if job.restoring and job.state is JobState.RUNNING:
            await self.telemetry.refresh()
            await self._end_restoration(job)

    async def evicts_silent(self, job: Job, evicted: Collection[int], reason: str) -> bool:
        """Call it after `end_restoration`, before exactly these workers are evicted. If ``job`` is being restored,
        evicts them, begins the restoration again without them, and returns True; otherwise the caller makes the change.
        Raises Conflict unless they are silent: the restoration ends soon, and would never end if each request began it
        again."""
        if not job.restoring:
            return False
        added, removed = set(evicted) - set(job.evicted()), set(job.evicted()) - set(evicted)
        heard = {worker for worker in added if self.telemetry.silent_s(job.id, job.workers[worker]) < SILENT_S}
        if heard or removed:
            raise Conflict(
                f"job {job.id}: workers are restoring sums after a switch lost its state. Until then nobody is "
                f"readmitted, and only workers silent for {SILENT_S:g} s are evicted"
            )
        await self._start_over(job, f"{reason} {RESTARTS}", lambda: job.mark_evicted(evicted))
        return True

    async def starts_over(self, job: Job, reason: str, change: Callable[[], None]) -> bool:
        """Call it after `end_restoration`, before a worker leaves or another process takes its place. If ``job`` is
        being restored, makes the ``change``, begins a new session with another vote, and returns True; otherwise the
        caller makes the change."""
        if not job.restoring:
            return False
        await self._start_over(job, f"{reason} {RESTARTS}", change)
        return True

    async def started_in_part(self, plan: Start) -> None:
        """Call it if the switch may have admitted some workers of a new session, but not all. They may have
        contributed, so the session has begun, and is lost: another one restores the sums. Raises SwitchError."""
        job = self.jobs[plan.job]
        if job.pool:  # cannot be restored
            return await self.remove(job)
        self.jobs.started(plan, self.clock.unix())
        await self._start_over(job, "not all workers were admitted; waiting for them", lambda: None)
        job.lost_sessions = max(job.lost_sessions, 1)

    async def _start_over(self, job: Job, news: str, change: Callable[[], None]) -> None:
        await self.remove(job)
        change()
        heard = {each for each in job.restorers() if self.telemetry.silent_s(job.id, job.workers[each]) < SILENT_S}
        lost_sessions = job.lost_sessions
        job.reset(heard)
        job.lost_sessions = lost_sessions  # the switch has not lost another
        self.telemetry.forget(job.id)
        self.events.emit("job_lost", f"job {job.id}: {news}", job=job.id)

    # The switch's entries, and the known jobs

    async def compare(self) -> None:
        """Takes over jobs that the switch runs, begins another session of jobs that it has lost, and ends jobs that
        another controller has ended."""
        async with self.lock:  # the switch's entries must not change until they are compared
            found = await self.switch.set_up()
            in_doubt, self._in_doubt = self._in_doubt, set()
            for held in found.jobs.values():
                self.jobs.note_session(held.session)
            runs = {job_id for job_id, held in found.jobs.items() if await self._take_over(job_id, held)}
            for job in list(self.jobs):
                held = found.jobs.get(job.id, InstalledJob())
                if job.id not in runs and job.state is JobState.RUNNING:
                    if held.record and held.session >= job.session and job.id not in in_doubt:
                        await self.delete(job, f"job {job.id} is over: another controller has ended it")
                    elif job.pool:
                        await self.delete(job, f"job {job.id} is over: the switch lost its state")
            for job_id in self.jobs.switch_has_only(runs, self.active):
                self.telemetry.forget(job_id)  # otherwise earlier contributions would count as those of a restoration
                self.events.emit(
                    "job_lost",
                    f"job {job_id}: the switch lost its state; waiting for the workers to join again",
                    job=job_id,
                )
            for job_id, held in found.jobs.items():
                if held.lost and held.slots is not None and self.jobs.get(job_id) is None:
                    self._take_over_lost(job_id, held)

    async def _take_over(self, job_id: int, found: InstalledJob) -> bool:
        """Takes over a job that the switch holds, unless it is already known. Returns whether the switch runs it:
        entries of an incomplete job are removed."""
        if found.record or found.lost:
            return False
        for worker, at in found.strays:
            await self.switch.shut_out(job_id, worker, at)
        known = self.jobs.get(job_id)
        in_doubt = known is not None and known.in_doubt and known.session == found.session
        try:
            if not found.complete:
                raise SereneError("its entries are incomplete")
            state = found.session, found.epoch, found.members
            if known is not None and (known.session, known.epoch, known.places()) == state:
                known.in_doubt = False
                if in_doubt:
                    self._tell_settled(known, "the failed swap is not in force")
                return True
            job = job_from(job_id, found, self.clock.unix(), self.clock.steady)
            self.jobs.take_over(job)
            if known is None:
                self.telemetry.presume_silent(job_id, job.silenced)
            how = "all workers have left" if job.state is JobState.FINISHED else "running"
            self.events.emit(
                "job_taken_over",
                f"job {job_id}: taken over, {how}, session {found.session}, epoch {found.epoch}",
                job=job_id,
            )
            if in_doubt:
                self._tell_settled(job, "the failed swap is in force")
            return True
        except SereneError as error:
            LOG.warning("job %d, found in the switch, is removed: %s", job_id, error)
            await self.switch.remove(job_id)
            return False

    def _tell_settled(self, job: Job, what: str) -> None:
        text = f"job {job.id}: {what}: {job.in_force}, epoch {job.epoch}"
        self.events.emit("swap_settled", text, job=job.id, epoch=job.epoch, strategy=job.in_force)

    def _take_over_lost(self, job_id: int, found: InstalledJob) -> None:
        """Takes over a job of which one of several switches has lost its part, for a new session. A pool cannot be
        restored, so it is not taken over."""
        try:
            job = lost_job_from(job_id, found, self.clock.unix(), self.clock.steady)
            if job.pool:
                LOG.warning("job %d of a process group is over: a switch lost its state of the job", job_id)
                return
            self.jobs.take_over(job)
            self.events.emit(
                "job_lost",
                f"job {job_id}: taken over, but a switch lost its state of session {found.session}; waiting for the "
                "workers to join again",
                job=job_id,
            )
        except SereneError as error:
            LOG.warning("job %d is not taken over, and a switch lost its state of the job: %s", job_id, error)


def _awaited(job: Job) -> bool:
    """Whether processes that have left a named job may wait for its end. While a job is being restored, no complete sum
    can be read."""
    left = any(worker.state is WorkerState.LEFT and worker.endpoint is not None for worker in job.workers)
    return job.name is not None and left and not job.restoring
