"""The status of the switch and its jobs at one moment."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from serene.controller.jobs.job import Job, JobState, Worker
from serene.controller.jobs.jobs import Jobs
from serene.controller.status.model import (
    AutomaticStatus,
    EpochStatus,
    GatheringStatus,
    JobStatus,
    Listening,
    NamedSwitchStatus,
    Status,
    SwitchStatus,
    WorkerStatus,
    of,
)
from serene.controller.status.slow import SlowWorkers
from serene.controller.switch.counters import Counters
from serene.controller.switch.fabric import Fabric
from serene.controller.switch.telemetry import Telemetry
from serene.report import whole

AutomaticOf = Callable[[int], AutomaticStatus | None]  # of a job
SHORT_HISTORY = 20  # epochs of each job in a status, which is sent several times a second


def status(
    listening: Listening,
    switch: Fabric,
    jobs: Jobs,
    telemetry: Telemetry,
    automatic: AutomaticOf,
    slow: SlowWorkers,
    overlooked: int,
    gathering: Mapping[str, tuple[int, str]],
) -> Status:
    """The whole status. overlooked: the number of workers' requests for which there was no room. gathering: as of
    `Named.gathering`."""
    return Status(
        listening=listening,
        switch=of(
            SwitchStatus, switch, switch.options, switch.program, ip=switch.options.own.ip, program=switch.program.name,
            drops=telemetry.drops, totals=telemetry.totals(), requests_overlooked=overlooked,
        ),
        switches=_named(switch),
        jobs=[job_status(job, telemetry, automatic, slow, SHORT_HISTORY) for job in jobs],
        gathering=[
            GatheringStatus(name=name, processes=processes, waits=waits)
            for name, (processes, waits) in gathering.items()
        ],
    )  # fmt: skip


def _named(fabric: Fabric) -> list[NamedSwitchStatus]:
    several = len(fabric.switches) > 1
    return [
        of(
            NamedSwitchStatus, switch.options, switch, level=("leaf" if number else "root") if several else "switch",
            rack=number - 1 if number else None, program=switch.program.name,
        )
        for number, switch in enumerate(fabric.switches)
    ]  # fmt: skip


def job_status(job: Job, telemetry: Telemetry, automatic: AutomaticOf, slow: SlowWorkers, latest: int = 0) -> JobStatus:
    """The status of one job. latest: number of epochs of its history; 0: all that are stored."""
    elastic = {name: getattr(job.elastic, name, None) for name in ("places", "minimum", "evict_after")}
    return of(
        JobStatus, job, job=job.id, automatic=automatic(job.id),
        slow=slow.of(job) if job.state is JobState.RUNNING else None, racks=list(job.racks.sizes),
        first_slot=job.slots.first if job.slots is not None else None, slots=job.slots_needed,
        workers=[_worker_status(job, worker, telemetry) for worker in job.workers],
        history=[of(EpochStatus, begun) for begun in list(job.history)[-latest:]], **elastic,
    )  # fmt: skip


def _worker_status(job: Job, worker: Worker, telemetry: Telemetry) -> WorkerStatus:
    counters = telemetry.of(job.id, worker.id)
    rack, place = job.racks.place(worker.id)
    return of(
        WorkerStatus, counters, worker, worker.endpoint, worker=worker.id, rack=rack, place=place,
        iteration=_iteration(job, worker, counters), staleness=list(telemetry.staleness_of(job.id, worker.id)),
        silent_s=round(telemetry.silent_s(job.id, worker), 3),
    )  # fmt: skip


def _iteration(job: Job, worker: Worker, counters: Counters) -> int:
    """The number of times that a worker has contributed to every slot. In a pool, whose slots are used in turn, the
    number of collectives that it has reported."""
    if job.pool:
        return whole(worker.report, "iteration") or 0
    return counters.contributions // job.slots_needed if job.slots_needed else 0
