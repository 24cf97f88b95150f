"""One switch, its jobs, and all that may be asked of them; and what goes on without being asked."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict

from controller.admission.admission import Admission
from controller.admission.frames import Answerer
from controller.automatic import Decision
from controller.automatic.choices import shipped
from controller.automatic.runner import AutomaticRunner
from controller.events import Events
from controller.jobs.errors import BadRequest, Conflict
from controller.jobs.job import EpochBegun, Job, JobEpoch, JobState, Report
from controller.jobs.jobs import Jobs
from controller.jobs.plans import Swap
from controller.settings import Settings
from controller.status.explain import explain, headline
from controller.status.metrics import Metrics
from controller.status.model import (
    Choices,
    JobExplanation,
    JobStatus,
    Listening,
    Live,
    PrecisionStatus,
    Status,
    SwapStatus,
    workers,
)
from controller.status.recorder import Recorder
from controller.status.snapshot import job_status, status
from controller.switch.connection import SwitchError
from controller.switch.entries import InstalledJob
from controller.switch.fabric import fabric
from controller.switch.switch import SwapPhases
from controller.switch.takeover import job_from
from controller.switch.telemetry import Telemetry
from serene.client.restoration import ROUNDS as RESTORING_ROUNDS
from serene.errors import SereneError
from serene.fixedpoint import DEFAULT_LIMIT, FixedPoint
from serene.palette import COLOUR_OF, COMPUTING, GREY, SENDING, WAITING
from serene.racks import Racks
from serene.strategy import MAX_STALENESS, Strategy
from serene.wire import SWITCH_IP, SWITCH_MAC

LOG = logging.getLogger("serene.controller")

TICK_S = 0.25  # how often finished jobs are looked at
METRICS_COUNTERS_S = 0.5  # counters in the metrics are at most this old
LIVE_COUNTERS_S = 0.5  # likewise in the page
POLL_S = 1.0  # how often counters are read by themselves


class Coordinator:
    """The controller without its interface. Operations raise SereneError."""

    def __init__(self, settings: Settings) -> None:
        self._listening = Listening(http=settings.http, socket=settings.socket)
        self._grace_s = settings.grace_s
        self._gone_after_s = settings.gone_after
        self._wait_s = settings.wait
        self._lock = asyncio.Lock()
        self.events = Events()
        self.switch = fabric(settings, self._on_packet, self._on_connected)
        program = self.switch.program
        self.jobs = Jobs(
            slots=program.slots,
            lanes=program.lanes,
            max_jobs=program.max_jobs,
            max_workers=program.max_workers * self.switch.rack_count,
        )
        self.telemetry = Telemetry(self.switch, self.jobs)
        self.recorder = Recorder()
        self.automatic = AutomaticRunner(self.jobs, self.telemetry, self.events, self._enact)
        self._metrics = Metrics()
        self._admission = Admission(
            self.jobs,
            self.switch,
            Answerer(SWITCH_IP, SWITCH_MAC),
            self.events,
            self._lock,
            self._active,
            self._on_job_over,
            self._starts_over,
            self._on_report,
        )

    # Start, run, stop

    async def bring_up(self) -> None:
        """Connect to the switch and set it up. Raises SwitchError when that fails."""
        await self.switch.bring_up(self._wait_s)

    async def run(self) -> None:
        """Serve workers and look after jobs until cancelled; then disconnect from the switch, which goes on."""
        try:
            await asyncio.gather(self.switch.run(), self._admission.run(), self._look_after())
        finally:
            self.automatic.close()
            await self.switch.close()

    async def _look_after(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            try:
                if self.switch.connected:
                    await self._clear_finished()
                    if any(job.state is JobState.RUNNING for job in self.jobs):
                        restoring = any(job.restoring for job in self.jobs)
                        await self.telemetry.refresh(TICK_S if restoring else POLL_S)
                    await self._end_restorations()
                    await self._end_abandoned()
                    await self._end_pools()
            except SwitchError as error:
                LOG.warning("%s", error)

    async def _clear_finished(self) -> None:
        async with self._lock:
            for job_id in self.jobs.due(time.monotonic(), self._grace_s):
                await self.telemetry.refresh()
                await self._remove(self.jobs[job_id])
                self.jobs.cleared(job_id)
                self.events.emit("job_cleared", f"job {job_id}: its slots are free", job=job_id)

    async def _end_restorations(self) -> None:
        """When every worker has done its part of the restoration, the wanted strategy takes the place of BSP."""
        async with self._lock:
            for job in self.jobs:
                await self._end_restoration(job)

    async def _end_restoration(self, job: Job) -> None:
        least = min((self.telemetry.of(job.id, worker).contributions for worker in job.members()), default=0)
        if job.restoring and least >= RESTORING_ROUNDS * job.slots_needed:
            plan = self.jobs.plan_restored(job.id)
            if plan is not None:
                await self.switch.swap(plan)
            self.jobs.restored(job.id, plan, time.time())
            self.events.emit(
                "job_restored",
                f"job {job.id}: the workers' sums are restored, {job.strategy}",
                job=job.id,
            )

    async def _starts_over(self, job: Job, reason: str, change: Callable[[], None]) -> bool:
        """Who takes part may not change in the middle of a restoration: an epoch that began then would show the workers
        different votes. So if ``job`` is in one, ``change`` is made and a new session begins with another vote. Whether
        it was so. The caller holds the lock."""
        if job.restoring:
            await self.telemetry.refresh()
            await self._end_restoration(job)
        if not job.restoring:
            return False
        await self._remove(job)
        change()
        lost_sessions = job.lost_sessions
        job.reset()
        job.lost_sessions = lost_sessions  # the switch has not lost another
        self.telemetry.forget(job.id)
        self.events.emit(
            "job_lost", f"job {job.id}: {reason} before the sums were restored, which begins again", job=job.id
        )
        return True

    async def _remove(self, job: Job) -> None:
        await self.switch.remove(job.id, job.places())

    async def _end_abandoned(self) -> None:
        """A job that all others have left ends when its evicted workers have been silent for long enough."""
        async with self._lock:
            for job in self.jobs:
                if job.state is JobState.RUNNING and not job.members() and not self._active(job):
                    plan = self.jobs.plan_abandoned(job.id)
                    await self.switch.swap(plan)
                    self.jobs.abandoned(plan, time.time())
                    silent = f"{workers(job.evicted(), job.racks.name)} silent for {self._gone_after_s:g} s"
                    self.events.emit("job_finished", f"job {job.id} finished: {silent}", job=job.id)

    async def _end_pools(self) -> None:
        """A pool needs all of its workers, each of which gives a sign every second: without one of them it is over, and
        the others are told."""
        async with self._lock:
            for job in list(self.jobs):
                if not job.pool or job.state is JobState.FINISHED:
                    continue
                if job.state is JobState.WAITING:
                    silent = time.monotonic() - job.asked_at >= self._gone_after_s
                    who = "nobody has joined"
                else:
                    active = self._active(job)
                    missing = [worker for worker in job.members() if worker not in active]
                    silent, who = bool(missing), f"{workers(missing)} silent" if missing else ""
                if silent:
                    await self._delete(job, f"job {job.id} is over: {who} for {self._gone_after_s:g} s")

    def _active(self, job: Job) -> set[int]:
        """The workers of a job that have been heard from recently."""
        return {
            worker.id
            for worker in job.workers
            if worker.endpoint is not None and self.telemetry.silent_s(job.id, worker) < self._gone_after_s
        }

    def _on_packet(self, rack: int, port: int, frame: bytes) -> None:
        self._admission.on_packet(rack, port, frame)

    def _on_report(self, job_id: int, worker: int, report: Report) -> None:
        self.recorder.note(job_id, worker, report, time.time())

    async def _on_job_over(self, job_id: int) -> None:
        await self.telemetry.refresh()
        self.events.emit("job_finished", f"job {job_id} finished", job=job_id)

    async def _on_connected(self) -> None:
        async with self._lock:  # what the switch holds must not change until it is compared with what is known
            found = await self.switch.set_up()
            for job in found.jobs.values():
                self.jobs.note_session(job.session)
            running = {job_id: job for job_id, job in found.jobs.items() if not job.record}
            for job_id in self.jobs.switch_has_only(running):
                if self.jobs[job_id].pool:
                    await self._delete(self.jobs[job_id], f"job {job_id} is over: the switch lost its state")
                    continue
                self.telemetry.forget(job_id)  # or what was counted before would seem to restore the sums
                self.events.emit(
                    "job_lost",
                    f"job {job_id}: the switch lost its state; waiting for the workers to join again",
                    job=job_id,
                )
            for job_id, job in running.items():
                await self._take_over(job_id, job)

    async def _take_over(self, job_id: int, found: InstalledJob) -> None:
        """A job that the switch holds: known already, to be taken over, or to be removed."""
        for worker, at in found.strays:
            await self.switch.shut_out(job_id, worker, at)
        known = self.jobs.get(job_id)
        if known is not None and (known.session, known.epoch, known.places()) == (
            found.session,
            found.epoch,
            found.members,
        ):
            return
        try:
            if not found.complete:
                raise SereneError("its entries are not complete")
            job = job_from(job_id, found, time.time())
            self.jobs.take_over(job)
            how = "all workers have left" if job.state is JobState.FINISHED else "as it runs"
            self.events.emit(
                "job_taken_over",
                f"job {job_id}: taken over, {how}, session {found.session}, epoch {found.epoch}",
                job=job_id,
            )
        except SereneError as error:
            LOG.warning("job %d, found in the switch, is removed: %s", job_id, error)
            await self.switch.remove(job_id, found.members)

    # Operations

    async def create_job(
        self,
        workers: int,
        strategy: Strategy,
        job: int | None = None,
        scale: int | None = None,
        limit: float = DEFAULT_LIMIT,
        pool_slots: int | None = None,
        racks: Sequence[int] | None = None,
        precision: int = 32,
    ) -> JobStatus:
        """racks: workers in each, as far as there are some; by default they are divided evenly. scale: by default as
        large as a round of all workers allows."""
        if pool_slots is not None and self.switch.rack_count > 1:
            raise BadRequest(
                "a process group over several switches: its workers hold every answer against the whole job's policy, "
                "and a leaf tells of its own rack. Expected a controller of one switch"
            )
        async with self._lock:
            created = self.jobs.create(
                workers, strategy, job=job, scale=FixedPoint.of(workers).scale if scale is None else scale, limit=limit,
                pool_slots=pool_slots, racks=self._racks(workers, racks), precision=precision,
            )  # fmt: skip
            created.asked_at = time.monotonic()
            self.telemetry.forget(created.id)
            self.recorder.forget(created.id)
            self.events.emit(
                "job_created",
                f"job {created.id} created: waits for {workers} workers, {strategy}",
                job=created.id,
            )
            self.automatic.stop(created.id)
            return self.job_status(created.id)

    def _racks(self, workers: int, sizes: Sequence[int] | None) -> Racks | None:
        """Who is where; None: at the one switch. Raises BadStrategy."""
        racks = self.switch.rack_count
        if sizes is None:
            if racks == 1 or workers < 1:
                return None
            sizes = Racks.even(workers, min(workers, racks)).sizes
        if len(sizes) > racks:
            raise BadRequest(f"{len(sizes)} racks: expected at most {racks}, the leaves that the controller commands"
                             if racks > 1 else "racks: the controller commands one switch")  # fmt: skip
        if sum(sizes) != workers:
            raise BadRequest(f"{sum(sizes)} workers by rack, {workers} in the job: expected the same number")
        return Racks.of([*sizes, *(0,) * (racks - len(sizes))])

    async def delete_job(self, job_id: int) -> None:
        async with self._lock:
            await self._delete(self.jobs[job_id], f"job {job_id} was deleted")

    async def _delete(self, job: Job, why: str) -> None:
        """The caller holds the lock."""
        if job.slots is not None and job.state is not JobState.WAITING:
            await self._remove(job)
            await self._admission.send_away(job, why)
        self.automatic.stop(job.id)
        self.jobs.delete(job.id)
        self.telemetry.forget(job.id)
        self.recorder.forget(job.id)
        self.events.emit("job_deleted", why, job=job.id)

    async def set_strategy(self, job_id: int, strategy: Strategy) -> SwapStatus:
        """A user's choice; in a job that waits, for its start.

        A strategy that is in force already begins no epoch. An automatic strategy that the job has ends: the user has
        decided.
        """
        async with self._lock:
            before = self.jobs[job_id].strategy
            if self.jobs.has_already(job_id, strategy):
                self._end_automatic(job_id)
                last = self.jobs[job_id].history[-1]
                return SwapStatus(
                    epoch=last.epoch, strategy=strategy, t=last.t, before=strategy, write_ms=0.0, changed=False
                )
            plan = self.jobs.plan_swap(job_id, strategy)
            if plan is None:
                self.jobs.choose(job_id, strategy)
                self._end_automatic(job_id)
                changed = strategy != before
                return SwapStatus(
                    epoch=0, strategy=strategy, t=time.time(), before=before, write_ms=0.0, changed=changed
                )
            begun, write_ms, phases = await self._swap(plan)
            self._end_automatic(job_id)
            self._tell_strategy(job_id, before, begun, f"{write_ms:.0f} ms")
            return SwapStatus(
                epoch=begun.epoch,
                strategy=strategy,
                t=begun.t,
                before=before,
                write_ms=write_ms,
                changed=True,
                **(asdict(phases) if phases else {}),
            )

    async def set_precision(self, job_id: int, bits: int) -> PrecisionStatus:
        """Of a process group's gradients from now on. Bits that they have already begin no epoch."""
        async with self._lock:
            job, plan = self.jobs[job_id], self.jobs.plan_precision(job_id, bits)
            before, write_ms = job.precision, 0.0
            if plan is not None:
                _, write_ms, _ = await self._swap(plan)
                text = f"job {job_id}: {before} -> {bits} bits, epoch {job.epoch} ({write_ms:.0f} ms)"
                self.events.emit("precision", text, job=job_id, epoch=job.epoch)
            changed = plan is not None
            return PrecisionStatus(epoch=job.epoch, precision=bits, before=before, write_ms=write_ms, changed=changed)

    async def set_automatic(self, job_id: int, name: str, parameters: dict[str, object]) -> JobStatus:
        """From now on an automatic strategy decides."""
        job = self.jobs[job_id]
        self.jobs.check_no_pool(job_id)
        prepared = await self.automatic.prepare(name, parameters)
        async with self._lock:
            if self.jobs[job_id] is not job:
                raise Conflict(f"job {job_id} was replaced by another job meanwhile: nothing was changed")
            if job.state is JobState.FINISHED:
                raise Conflict(f"job {job_id} has finished: its strategy cannot change")
            self.automatic.start(job_id, prepared)
            self.events.emit("automatic", f"job {job_id}: {name} decides", job=job_id, automatic=prepared.status())
            return self.job_status(job_id)

    async def unset_automatic(self, job_id: int) -> JobStatus:
        """The job keeps the strategy that it has."""
        async with self._lock:
            self._end_automatic(job_id)
            return self.job_status(job_id)

    def _end_automatic(self, job_id: int) -> None:
        ended = self.automatic.stop(job_id)
        if ended is not None:
            self.events.emit("automatic_ended", f"job {job_id}: {ended.name} no longer decides", job=job_id)

    async def set_evicted(self, job_id: int, worker: int, evicted: bool) -> JobStatus:
        """A worker is evicted, or readmitted. If it is so already, nothing changes."""
        async with self._lock:
            job = self.jobs[job_id]
            self.jobs.taking_part(job_id, {worker})
            out = frozenset(job.evicted()) - {worker} | ({worker} if evicted else set())
            name = job.racks.name(worker)
            await self._put_in_force(job, job.in_force, out, f"worker {name} {'evicted' if evicted else 'readmitted'}")
            return self.job_status(job_id)

    async def _enact(self, seen: JobEpoch, decided: Strategy | Decision, name: str) -> bool:
        """An automatic strategy has decided. Whether there was anything to change.

        A decision about an epoch that is no longer in force is dropped: it was made before the present one began, and
        the program is soon asked again.
        """
        async with self._lock:
            job = self.jobs.get(seen.job)
            if job is None or JobEpoch.of(job) != seen:
                return False
            if isinstance(decided, Strategy):
                decided = Decision(decided, frozenset(job.evicted()))
            return await self._put_in_force(job, decided.strategy, decided.evicted, name)

    async def _put_in_force(self, job: Job, strategy: Strategy, evicted: frozenset[int], reason: str) -> bool:
        """A strategy, and who is evicted: at most one swap. Whether there was anything to change.

        The caller has held the lock since it looked at the job.
        """
        before, out = job.in_force, set(job.evicted())
        self.jobs.taking_part(job.id, evicted)
        if evicted != out and await self._starts_over(job, reason, lambda: job.mark_evicted(evicted)):
            return True
        plan = self.jobs.plan_barrier(job.id, strategy, evicted, reason)
        if plan is None:
            return False
        begun, _, _ = await self._swap(plan)
        for worker in sorted(evicted ^ out):
            what = "worker_evicted" if worker in evicted else "worker_readmitted"
            self.events.emit(
                what,
                f"job {job.id}: worker {job.racks.name(worker)} is {'evicted' if worker in evicted else 'readmitted'} "
                f"({reason}), epoch {begun.epoch}",
                job=job.id,
                worker=worker,
            )
        if begun.strategy != before:
            self._tell_strategy(job.id, before, begun, reason)
        return True

    def _tell_strategy(self, job_id: int, before: Strategy, begun: EpochBegun, remark: str) -> None:
        self.events.emit(
            "strategy",
            f"job {job_id}: {before} -> {begun.strategy}, epoch {begun.epoch} ({remark})",
            job=job_id,
            epoch=begun.epoch,
            strategy=begun.strategy,
        )

    async def _swap(self, plan: Swap) -> tuple[EpochBegun, float, SwapPhases | None]:
        """Written and remembered; the new epoch, how long the switch took in ms, and over racks its parts. The caller
        holds the lock."""
        begun = time.perf_counter()
        phases = await self.switch.swap(plan)
        write_ms = (time.perf_counter() - begun) * 1e3
        self._metrics.swap_took(write_ms / 1e3)
        return self.jobs.swapped(plan, time.time()), write_ms, phases

    async def status(self, older_than_s: float = 0.0) -> Status:
        """Everything; where the switch cannot be asked, the counters that were read last."""
        if self.switch.connected:
            try:
                await self.telemetry.refresh(older_than_s)
            except SwitchError as error:
                LOG.warning("counters: %s", error)
        return status(
            self._listening, self.switch, self.jobs, self.telemetry, self.automatic, self._admission.overlooked
        )

    async def metrics(self) -> bytes:
        """For Prometheus."""
        return self._metrics.text(await self.status(METRICS_COUNTERS_S))

    async def explain(self, job_id: int, worker: int | None = None) -> JobExplanation:
        """Why each worker of a job, or one of them, is where it is."""
        self.jobs[job_id]
        now = await self.status()
        return JobExplanation(headline=headline(now, job_id), workers=explain(now, job_id, worker))

    async def live(self, since: float) -> Live:
        """What a page shows: everything now, why, and what happened after ``since`` (Unix seconds)."""
        now = await self.status(LIVE_COUNTERS_S)
        t = time.time()
        return Live(
            t=t,
            status=now,
            explanations=[
                JobExplanation(headline=headline(now, job.job), workers=explain(now, job.job)) for job in now.jobs
            ],
            timelines=[self.recorder.timeline(job.job, since, t) for job in now.jobs],
            events=self.events.after(since),
        )

    def choices(self) -> Choices:
        """What may be chosen: the limits of jobs, automatic strategies, and how all of it is coloured."""
        program = self.switch.program
        return Choices(
            max_staleness=MAX_STALENESS,
            max_workers=program.max_workers,
            max_jobs=program.max_jobs,
            automatic=shipped(),
            colours={**COLOUR_OF, "computing": COMPUTING, "exchanging": SENDING, "waiting": WAITING, "": GREY},
        )

    def job_status(self, job_id: int) -> JobStatus:
        """One job, with counters as they were read last."""
        return job_status(self.jobs[job_id], self.telemetry, self.automatic)
