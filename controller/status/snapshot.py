"""The status of the switch and its jobs at one moment."""

from __future__ import annotations

from serene.controller.automatic.runner import AutomaticRunner
from serene.controller.jobs.job import EpochBegun, Job, JobState, Worker
from serene.controller.jobs.jobs import Jobs
from serene.controller.status.model import (
    EpochStatus,
    JobStatus,
    Listening,
    NamedSwitchStatus,
    Status,
    SwitchStatus,
    WorkerStatus,
)
from serene.controller.status.slow import SlowWorkers
from serene.controller.switch.counters import Counters
from serene.controller.switch.fabric import Fabric
from serene.controller.switch.telemetry import Telemetry

SHORT_HISTORY = 20  # epochs of each job in a status, which is sent several times a second


def status(
    listening: Listening,
    switch: Fabric,
    jobs: Jobs,
    telemetry: Telemetry,
    automatic: AutomaticRunner,
    slow: SlowWorkers,
    overlooked: int,
) -> Status:
    """The status of everything. overlooked: how many requests of workers there was no room for."""
    return Status(
        listening=listening,
        switch=SwitchStatus(
            address=switch.options.address,
            device_id=switch.options.device_id,
            ip=switch.options.own.ip,
            udp_ports=list(switch.options.udp_ports),
            shm_ports=list(switch.options.shm_ports),
            election_id=switch.election_id,
            connected=switch.connected,
            trouble=switch.trouble,
            program=switch.program.name,
            lanes=switch.program.lanes,
            slots=switch.program.slots,
            bytes_per_slot=switch.program.bytes_per_slot,
            drops=telemetry.drops,
            totals=telemetry.totals(),
            requests_overlooked=overlooked,
        ),
        switches=_named(switch),
        jobs=[job_status(job, telemetry, automatic, slow, SHORT_HISTORY) for job in jobs],
    )


def _named(fabric: Fabric) -> list[NamedSwitchStatus]:
    several = len(fabric.switches) > 1
    return [
        NamedSwitchStatus(
            name=switch.options.name,
            level=("leaf" if number else "root") if several else "switch",
            rack=number - 1 if number else None,
            address=switch.options.address,
            connected=switch.connected,
            trouble=switch.trouble,
            program=switch.program.name,
            drops=switch.drops,
        )
        for number, switch in enumerate(fabric.switches)
    ]


def job_status(
    job: Job, telemetry: Telemetry, automatic: AutomaticRunner, slow: SlowWorkers, latest: int = 0
) -> JobStatus:
    """The status of one job. latest: how many epochs of its history; 0: all that are remembered."""
    running = automatic.of(job.id)
    return JobStatus(
        job=job.id,
        name=job.name,
        state=job.state,
        session=job.session,
        epoch=job.epoch,
        strategy=job.strategy,
        pool=job.pool,
        precision=job.precision,
        automatic=running.status() if running is not None else None,
        slow=slow.of(job) if job.state is JobState.RUNNING else None,
        lost_sessions=job.lost_sessions,
        restoring=job.restoring,
        workers_expected=job.workers_expected,
        places=job.elastic.places if job.elastic is not None else None,
        minimum=job.elastic.minimum if job.elastic is not None else None,
        evict_after=job.elastic.evict_after if job.elastic is not None else None,
        racks=list(job.racks.sizes),
        first_slot=job.slots.first if job.slots is not None else None,
        slots=job.slots_needed,
        vector_length=job.vector_length,
        scale=job.scale,
        limit=job.limit,
        workers=[_worker_status(job, worker, telemetry) for worker in job.workers],
        epochs_begun=job.epochs_begun,
        history=[_epoch_status(begun) for begun in list(job.history)[-latest:]],
    )


def _worker_status(job: Job, worker: Worker, telemetry: Telemetry) -> WorkerStatus:
    counters = telemetry.of(job.id, worker.id)
    at = worker.endpoint
    rack, place = job.racks.place(worker.id)
    return WorkerStatus(
        **dict(counters),
        worker=worker.id,
        rack=rack,
        place=place,
        state=worker.state,
        port=at.port if at else None,
        ip=at.ip if at else None,
        mac=at.mac if at else None,
        udp_port=at.udp_port if at else None,
        incarnation=at.incarnation if at else None,
        iteration=_iteration(job, worker, counters),
        staleness=list(telemetry.staleness_of(job.id, worker.id)),
        silent_s=round(telemetry.silent_s(job.id, worker), 3),
        contributions_sent=worker.contributions_sent,
        report=worker.report,
    )


def _epoch_status(begun: EpochBegun) -> EpochStatus:
    return EpochStatus(
        t=begun.t, session=begun.session, epoch=begun.epoch, strategy=begun.strategy, reason=begun.reason
    )


def _iteration(job: Job, worker: Worker, counters: Counters) -> int:
    """How often a worker has contributed to every slot; in a pool, whose slots are used in turn, how many collectives
    it has reported."""
    if job.pool:
        reported = (worker.report or {}).get("iteration")
        return reported if type(reported) is int else 0
    return counters.contributions // job.slots_needed if job.slots_needed else 0
