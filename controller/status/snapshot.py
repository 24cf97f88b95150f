"""Jobs and switch as JSON: what the HTTP interface says about them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from controller.automatic.runner import Autopilot
from controller.jobs.job import Change, Job, Worker
from controller.jobs.jobs import Jobs
from controller.switch.switch import Switch
from controller.switch.telemetry import Telemetry
from serene.strategy import to_dict

SHORT_HISTORY = 20  # epochs of each job in what is sent several times a second


def status(switch: Switch, jobs: Jobs, telemetry: Telemetry, autopilot: Autopilot, overlooked: int) -> dict[str, Any]:
    """Everything. ``overlooked``: requests of workers for which there was no room."""
    return {
        "switch": {
            "address": switch.options.address,
            "device_id": switch.options.device_id,
            "ip": switch.options.own.ip,
            "udp_ports": [asdict(port) for port in switch.options.udp_ports],
            "election_id": switch.options.election_id,
            "connected": switch.connected,
            "trouble": switch.trouble,
            "program": switch.program.name,
            "lanes": switch.program.lanes,
            "slots": switch.program.slots,
            "drops": telemetry.drops,
            "totals": telemetry.totals(),
            "requests_overlooked": overlooked,
        },
        "jobs": [job_status(job, telemetry, autopilot, SHORT_HISTORY) for job in jobs],
    }


def job_status(job: Job, telemetry: Telemetry, autopilot: Autopilot, latest: int = 0) -> dict[str, Any]:
    """One job. ``slots`` is what it needs, ``first_slot`` where they are while it holds them; ``history`` has the
    latest ``latest`` of all ``epochs_begun`` (0: all that are remembered)."""
    pilot = autopilot.of(job.id)
    return {
        "job": job.id,
        "state": job.state.value,
        "session": job.session,
        "epoch": job.epoch,
        "strategy": to_dict(job.strategy),
        "pool": job.pool,
        "automatic": pilot.status() if pilot is not None else None,
        "lost_sessions": job.lost_sessions,
        "restoring": job.restoring,
        "workers_expected": job.workers_expected,
        "first_slot": job.slots.first if job.slots is not None else None,
        "slots": job.slots_needed,
        "vector_length": job.vector_length,
        "scale": job.scale,
        "limit": job.limit,
        "workers": [worker_status(job, worker, telemetry) for worker in job.workers],
        "epochs_begun": job.epochs_begun,
        "history": [change_status(change) for change in list(job.history)[-latest:]],
    }


def worker_status(job: Job, worker: Worker, telemetry: Telemetry) -> dict[str, Any]:
    """One worker; an iteration is a contribution to every slot of the job."""
    counts = telemetry.of(job.id, worker.id)
    at = worker.endpoint
    return {
        "worker": worker.id,
        "state": worker.state.value,
        "port": at.port if at else None,
        "ip": at.ip if at else None,
        "mac": at.mac if at else None,
        "udp_port": at.udp_port if at else None,
        "incarnation": at.incarnation if at else None,
        "iteration": counts["contributions"] // job.slots_needed if job.slots_needed else 0,
        **counts,
        "staleness": list(telemetry.staleness_of(job.id, worker.id)),
        "silent_s": round(telemetry.silent_s(job.id, worker), 3),
        "contributions_sent": worker.contributions_sent,
        "report": worker.report,
    }


def change_status(change: Change) -> dict[str, Any]:
    """One epoch's beginning; ``t`` in Unix seconds."""
    return {
        "t": change.t,
        "session": change.session,
        "epoch": change.epoch,
        "strategy": to_dict(change.strategy),
        "reason": change.reason,
    }
