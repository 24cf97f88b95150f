"""The switches and their jobs: every operation on them passes through here."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial

from serene.controller.admission.admission import Admission
from serene.controller.admission.frames import Answerer
from serene.controller.automatic import Decision
from serene.controller.automatic.choices import shipped
from serene.controller.automatic.runner import AutomaticRunner
from serene.controller.clock import SYSTEM, Clock
from serene.controller.events import Events
from serene.controller.jobs.elastic import elastic
from serene.controller.jobs.errors import BadRequest, Conflict, InTheWay
from serene.controller.jobs.job import Elastic, EpochBegun, Job, JobEpoch, JobState, Worker
from serene.controller.jobs.jobs import Jobs
from serene.controller.jobs.named import Asks, Awaits, Complete, Dead, Named, Place
from serene.controller.jobs.plans import Swap
from serene.controller.settings import Settings
from serene.controller.status.explain import explain, headline
from serene.controller.status.metrics import Metrics
from serene.controller.status.model import (
    Choices,
    JobExplanation,
    JobStatus,
    Listening,
    Live,
    PlaceStatus,
    PrecisionStatus,
    Status,
    SwapStatus,
)
from serene.controller.status.recorder import Recorder
from serene.controller.status.slow import SlowWorkers
from serene.controller.status.snapshot import job_status, status
from serene.controller.switch.connection import SwitchError, Unanswered
from serene.controller.switch.fabric import Fabric, OnConnected, OnPacket, fabric
from serene.controller.switch.switch import SwapPhases
from serene.controller.switch.telemetry import Telemetry
from serene.controller.upkeep import Upkeep
from serene.errors import plural
from serene.fixedpoint import DEFAULT_LIMIT, FixedPoint
from serene.palette import COLOUR_OF, COMPUTING, GREY, SENDING, WAITING
from serene.racks import Racks
from serene.report import Facts
from serene.strategy import MAX_STALENESS, Strategy
from serene.wire import SWITCH_IP, SWITCH_MAC

LOG = logging.getLogger("serene.controller")

COUNTERS_TIMEOUT_S = 5.0  # for a switch to answer a status; a longer wait would make the controller seem dead
METRICS_COUNTERS_S = 0.5  # counters in the metrics are at most this old
LIVE_COUNTERS_S = 0.5  # likewise in the page


class Coordinator:
    """The controller without its HTTP interface. Operations raise SereneError.

    connect: makes the `Fabric`, by default the settings' switches over P4Runtime.
    """

    def __init__(
        self, settings: Settings, *, connect: Callable[[Settings, OnPacket, OnConnected], Fabric] = fabric,
        clock: Clock = SYSTEM,
    ) -> None:  # fmt: skip
        self._clock = clock
        self._listening = Listening(http=settings.http, socket=settings.socket)
        self._wait_s = settings.wait
        self._lock = asyncio.Lock()
        self.events = Events(clock)
        self.switch = connect(settings, self._on_packet, self._on_connected)
        program = self.switch.program
        self.jobs = Jobs(
            slots=program.slots,
            lanes=program.lanes,
            max_jobs=program.max_jobs,
            max_workers=program.max_workers * self.switch.rack_count,
        )
        self.telemetry = Telemetry(self.switch, self.jobs, clock)
        self._named = Named(self.jobs, self._silent_s)
        self.recorder = Recorder()
        self.slow = SlowWorkers()
        self.automatic = AutomaticRunner(self.jobs, self.telemetry, self.events, self._enact, clock)
        self._metrics = Metrics()
        self._upkeep = Upkeep(
            self.jobs, self.switch, self.telemetry, self.events, self._lock,
            grace_s=settings.grace_s, gone_after_s=settings.gone_after, delete=self._delete, evict=self._evict,
            call=lambda job: self._admission.call(job), clock=clock,
        )  # fmt: skip
        self._admission = Admission(
            self.jobs,
            self.switch,
            Answerer(SWITCH_IP, SWITCH_MAC),
            self.events,
            self._lock,
            self._upkeep.active,
            self._on_job_over,
            self._upkeep.end_restoration,
            self._upkeep.starts_over,
            self._upkeep.started_in_part,
            self._on_report,
            clock,
        )

    # Start, run, stop

    async def bring_up(self) -> None:
        """Connects to the switch and sets it up. If that fails, disconnects and raises SwitchError."""
        try:
            await self.switch.bring_up(self._wait_s)
        except BaseException:
            await self.switch.close()
            raise

    async def run(self) -> None:
        """Serves workers and does the jobs' upkeep until cancelled; then disconnects from the switch, which keeps
        running."""
        try:
            await asyncio.gather(self.switch.run(), self._admission.run(), self._upkeep.run())
        finally:
            self.automatic.close()
            await self.switch.close()

    def _on_packet(self, rack: int, port: int, frame: bytes) -> None:
        self._admission.on_packet(rack, port, frame)

    def _on_report(self, job_id: int, worker: int, report: Facts) -> None:
        now = self._clock.unix()
        self.recorder.note(job_id, worker, report, now)
        if (found := self.slow.note(self.jobs[job_id], worker, report, now)) is not None:
            self.events.emit("slow_worker", found, job=job_id)

    def _silent_s(self, job: Job, worker: Worker) -> float:
        if worker.endpoint is None:
            return job.lost_s
        return self.telemetry.silent_s(job.id, worker)

    async def _on_job_over(self, job_id: int) -> None:
        await self.telemetry.refresh()
        self.events.emit("job_finished", f"job {job_id} finished", job=job_id)

    async def _on_connected(self) -> None:
        await self._upkeep.compare()

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
        places: int | None = None,
        minimum: int | None = None,
        evict_after: float | None = None,
    ) -> JobStatus:
        """A new job; the arguments as of `Jobs.create`, except racks: workers at each leaf, 0 for a leaf without any,
        by default divided evenly. scale: by default `FixedPoint.of`. places, minimum, evict_after: as of `Elastic`.
        Deletes finished jobs that are in the way."""
        changing = self._elastic(workers, places, minimum, evict_after)
        if changing is not None and pool_slots is not None:
            raise BadRequest("places, minimum and evict_after do not apply to a pool (pool_slots): its workers stay")
        create = partial(
            self.jobs.create, workers, strategy, job=job, limit=limit, pool_slots=pool_slots,
            scale=FixedPoint.of(changing.places if changing else workers).scale if scale is None else scale,
            racks=self._racks(workers, racks), precision=precision, elastic=changing,
        )  # fmt: skip
        async with self._lock:
            return self.job_status((await self._create(create)).id)

    def _elastic(
        self, workers: int, places: int | None, minimum: int | None, evict_after: float | None
    ) -> Elastic | None:
        return elastic(workers, places, minimum, evict_after, self.jobs.max_workers, self.switch.rack_count)

    async def _create(self, create: Callable[[], Job]) -> Job:
        """Makes a job; deletes finished jobs that are in the way. The caller holds the lock."""
        while True:
            try:
                created = create()
                break
            except InTheWay as error:
                await self._delete(error.job, f"job {error.job.id}, which had finished, gives way to a new job")
        created.steady = self._clock.steady
        created.asked_at = self._clock.steady()
        self.telemetry.forget(created.id)
        self.recorder.forget(created.id)
        self.slow.forget(created.id)
        waits = f"job {created.id} created: waits for {plural(created.workers_expected, 'worker')}, {created.strategy}"
        if created.elastic is not None:
            waits += f", {created.elastic.places} places"
        self.events.emit("job_created", waits, job=created.id)
        self.automatic.stop(created.id)
        return created

    async def find_place(
        self, name: str, asks: Asks, strategy: Strategy, places: int | None = None, minimum: int | None = None,
        evict_after: float | None = None,
    ) -> PlaceStatus:  # fmt: skip
        """Gives a process a place in the job of this name. A new job is made under this strategy when all its processes
        have asked. places, minimum, evict_after: as of `create_job`. Raises as `Named.come` and `create_job`."""
        asks = replace(asks, elastic=self._elastic(asks.workers, places, minimum, evict_after))
        async with self._lock:
            while True:
                found = self._named.come(name, asks, self._clock.steady())
                if isinstance(found, Dead):
                    await self._delete(
                        found.job, f"job {found.job.id}, whose workers are silent, gives way to a new job"
                    )
                elif isinstance(found, Complete):
                    await self._make_named(name, found, strategy)
                else:
                    return _place(found)

    async def _make_named(self, name: str, complete: Complete, strategy: Strategy) -> None:
        workers, by_rack = len(complete.processes), None
        if complete.racks is not None:
            by_rack = [complete.racks.get(rack, 0) for rack in range(self.switch.rack_count)]
        create = partial(
            self.jobs.create, workers, strategy, scale=complete.scale, limit=complete.asked.limit / complete.scale,
            racks=self._racks(workers, by_rack), elastic=complete.asked.elastic,
        )  # fmt: skip
        self._named.made(await self._create(create), name, complete, self._clock.steady())

    def _racks(self, workers: int, sizes: Sequence[int] | None) -> Racks | None:
        """The rack of each worker; None: there is one switch. Raises BadRequest or BadStrategy."""
        racks = self.switch.rack_count
        if sizes is None:
            if racks == 1 or workers < 1:
                return None
            even = Racks.even(workers, min(workers, racks)).sizes
            return Racks.of([*even, *(0,) * (racks - len(even))])
        if len(sizes) != racks:
            if racks == 1:
                raise BadRequest("racks: not possible, the controller commands a single switch")
            raise BadRequest(
                f"racks {', '.join(map(str, sizes))}: expected {racks} numbers, one for each leaf (0: no workers there)"
            )
        if sum(sizes) != workers:
            raise BadRequest(f"racks have {sum(sizes)} workers in all, the job {workers}: expected the same number")
        return Racks.of(sizes)

    async def delete_job(self, job_id: int) -> None:
        """Deletes a job in any state, and sends its workers a REFUSED."""
        async with self._lock:
            await self._delete(self.jobs[job_id], f"job {job_id} was deleted")

    async def _delete(self, job: Job, why: str) -> None:
        """The caller holds the lock."""
        if job.slots is not None and job.state is not JobState.WAITING:
            await self._upkeep.remove(job)
            await self._admission.send_away(job, why)
        self.automatic.stop(job.id)
        self.jobs.delete(job.id)
        self.telemetry.forget(job.id)
        self.recorder.forget(job.id)
        self.slow.forget(job.id)
        self.events.emit("job_deleted", why, job=job.id)

    async def set_strategy(self, job_id: int, strategy: Strategy) -> SwapStatus:
        """Puts a user's choice in force; for a waiting job, at its start.

        A strategy that is in force already begins no epoch. An automatic strategy of the job ends.
        """
        async with self._lock:
            before = self.jobs[job_id].strategy
            done = partial(SwapStatus, strategy=strategy, before=before, write_ms=0.0)
            if self.jobs.has_already(job_id, strategy):
                ended = self._end_automatic(job_id)
                last = self.jobs[job_id].history[-1]
                return done(epoch=last.epoch, t=last.t, changed=False, automatic_ended=ended)
            plan = self.jobs.plan_swap(job_id, strategy)
            if plan is None:
                self.jobs.choose(job_id, strategy)
                ended = self._end_automatic(job_id)
                return done(epoch=0, t=self._clock.unix(), changed=strategy != before, automatic_ended=ended)
            begun, write_ms, phases = await self._swap(plan)
            ended = self._end_automatic(job_id)
            self._emit_strategy(job_id, before, begun, f"{write_ms:.0f} ms")
            took = {"write_ms": write_ms, **(asdict(phases) if phases else {})}
            return done(epoch=begun.epoch, t=begun.t, changed=True, automatic_ended=ended, **took)

    async def set_precision(self, job_id: int, bits: int) -> PrecisionStatus:
        """Sets the precision of a process group's gradients. A precision that is in force already begins no epoch."""
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
        """Starts an automatic strategy. name, parameters: as of `serene.controller.automatic.load`."""
        job = self.jobs[job_id]
        self.jobs.check_no_pool(job_id)
        prepared = await self.automatic.prepare(name, parameters)
        async with self._lock:
            if self.jobs[job_id] is not job:
                raise Conflict(f"job {job_id} was replaced by another job meanwhile: nothing was changed")
            if job.state is JobState.FINISHED:
                raise Conflict(f"job {job_id} has finished: its strategy cannot change")
            self.automatic.start(job_id, prepared)
            self.events.emit(
                "automatic", f"job {job_id}: automatic strategy {name} is on", job=job_id, automatic=prepared.status
            )
            return self.job_status(job_id)

    async def unset_automatic(self, job_id: int) -> JobStatus:
        """Ends a job's automatic strategy, if it has one; the strategy in force stays."""
        async with self._lock:
            self._end_automatic(job_id)
            return self.job_status(job_id)

    def _end_automatic(self, job_id: int) -> str | None:
        """Returns the name of the automatic strategy, if the job had one."""
        ended = self.automatic.stop(job_id)
        if ended is None:
            return None
        self.events.emit("automatic_ended", f"job {job_id}: automatic strategy {ended.name} is off", job=job_id)
        return ended.name

    async def set_evicted(self, job_id: int, worker: int, evicted: bool) -> JobStatus:
        """Evicts or readmits a worker. If it is already evicted, or already a member, nothing changes."""
        async with self._lock:
            job = self.jobs[job_id]
            self.jobs.taking_part(job_id, {worker})
            wanted = frozenset(job.evicted()) - {worker} | ({worker} if evicted else set())
            reason = f"worker {job.racks.name(worker)} {'evicted' if evicted else 'readmitted'}"
            await self._evict(job, wanted, reason)
            return self.job_status(job_id)

    async def _enact(self, seen: JobEpoch, decided: Strategy | Decision, name: str) -> bool:
        """Puts an automatic strategy's decision in force. Returns whether anything changed.

        seen: the epoch of the observation. If it is not in force any more, the decision is dropped; the program soon
        decides again.
        """
        async with self._lock:
            job = self.jobs.get(seen.job)
            if job is not None:
                await self._upkeep.end_restoration(job)
            if job is None or JobEpoch.of(job) != seen:
                return False
            if isinstance(decided, Strategy):
                decided = Decision(decided)
            evicted = frozenset(job.evicted()) if decided.evicted is None else decided.evicted
            reason = f"{name}: {decided.reason}" if decided.reason else name
            return await self._put_in_force(job, decided.strategy, evicted, reason)

    async def _evict(self, job: Job, evicted: frozenset[int], reason: str) -> None:
        """Evicts exactly these workers. The caller holds the lock."""
        await self._upkeep.end_restoration(job)  # then another strategy is in force
        await self._put_in_force(job, job.in_force, evicted, reason)

    async def _put_in_force(self, job: Job, strategy: Strategy, evicted: frozenset[int], reason: str) -> bool:
        """Puts a strategy in force under which exactly these workers are evicted, by at most one swap. Returns whether
        anything changed.

        The caller has held the lock since it read the job.
        """
        before, evicted_before = job.in_force, set(job.evicted())
        self.jobs.taking_part(job.id, evicted)
        if evicted != evicted_before and await self._upkeep.evicts_silent(job, evicted, reason):
            return True
        plan = self.jobs.plan_barrier(job.id, strategy, evicted, reason)
        if plan is None:
            return False
        begun, _, _ = await self._swap(plan)
        for worker in sorted(evicted ^ evicted_before):
            what = "evicted" if worker in evicted else "readmitted"
            name = job.racks.name(worker)
            why = "" if reason == f"worker {name} {what}" else f" ({reason})"  # a user's command has no other reason
            self.events.emit(
                f"worker_{what}",
                f"job {job.id}: worker {name} is {what}{why}, epoch {begun.epoch}",
                job=job.id,
                worker=worker,
            )
        if begun.strategy != before:
            self._emit_strategy(job.id, before, begun, reason)
        return True

    def _emit_strategy(self, job_id: int, before: Strategy, begun: EpochBegun, remark: str) -> None:
        self.events.emit(
            "strategy",
            f"job {job_id}: {before} -> {begun.strategy}, epoch {begun.epoch} ({remark})",
            job=job_id,
            epoch=begun.epoch,
            strategy=begun.strategy,
        )

    async def _swap(self, plan: Swap) -> tuple[EpochBegun, float, SwapPhases | None]:
        """Writes a swap to the switch and commits it. Returns the new epoch, the switch's time in ms, and over racks
        the times of the phases. The caller holds the lock."""
        begun = time.perf_counter()
        try:
            phases = await self.switch.swap(plan)
        except Unanswered as error:
            raise Unanswered(f"{error} (the event swap_settled reports whether the swap is in force)") from None
        write_ms = (time.perf_counter() - begun) * 1e3
        self._metrics.swap_took(write_ms / 1e3)
        return self.jobs.swapped(plan, self._clock.unix()), write_ms, phases

    async def status(self, older_than_s: float = 0.0) -> Status:
        """The whole status. older_than_s: counters older than that are read again. If the switch does not answer, the
        status has the previous ones."""
        await self._read_counters(older_than_s)
        return status(
            self._listening, self.switch, self.jobs, self.telemetry, self.automatic.status, self.slow,
            self._admission.overlooked, self._named.gathering(self._clock.steady()),
        )  # fmt: skip

    async def _read_counters(self, older_than_s: float = 0.0) -> None:
        if any(switch.connected for switch in self.switch.switches):
            try:
                await asyncio.wait_for(self.telemetry.refresh(older_than_s), COUNTERS_TIMEOUT_S)
            except SwitchError as error:
                LOG.warning("counters: %s", error)
            except asyncio.TimeoutError:
                LOG.warning("a switch did not answer a counter read within %g s", COUNTERS_TIMEOUT_S)

    async def one_job(self, job_id: int) -> JobStatus:
        """The status of one job, with all of its stored epochs and fresh counters. Raises NoSuchJob."""
        self.jobs[job_id]
        await self._read_counters()
        return self.job_status(job_id)

    async def metrics(self) -> bytes:
        """The metrics in Prometheus' text format."""
        return self._metrics.text(await self.status(METRICS_COUNTERS_S))

    async def explain(self, job_id: int, worker: int | None = None) -> JobExplanation:
        """An explanation of the state of each worker of a job, or of one worker."""
        self.jobs[job_id]
        now = await self.status()
        return JobExplanation(headline=headline(now, job_id), workers=explain(now, job_id, worker))

    async def live(self, since: float) -> Live:
        """The page's data: the status, its explanations, and events and timelines after ``since`` (Unix seconds)."""
        now = await self.status(LIVE_COUNTERS_S)
        t = self._clock.unix()
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
        """The page's choices: the limits of jobs, the automatic strategies, and the colours of strategies and
        states."""
        program = self.switch.program
        return Choices(
            max_staleness=MAX_STALENESS,
            max_workers=self.jobs.max_workers,
            max_jobs=program.max_jobs,
            automatic=shipped(),
            colours={**COLOUR_OF, "computing": COMPUTING, "exchanging": SENDING, "waiting": WAITING, "": GREY},
        )

    def job_status(self, job_id: int) -> JobStatus:
        """The status of one job, with the counters of the last read."""
        return job_status(self.jobs[job_id], self.telemetry, self.automatic.status, self.slow)


def _place(found: Place | Awaits) -> PlaceStatus:
    if isinstance(found, Awaits):
        return PlaceStatus(waits=found.why)
    rack, place = found.job.racks.place(found.worker)
    return PlaceStatus(job=found.job.id, worker=found.worker, rack=rack, place=place)
