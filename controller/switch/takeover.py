"""Jobs that a switch runs already, from its entries, for a controller that does not know them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from serene.controller.jobs import notes
from serene.controller.jobs.job import Job, JobState, WorkerState
from serene.controller.jobs.plans import Policy
from serene.controller.switch.plan_entries import InstalledJob
from serene.errors import SereneError
from serene.fixedpoint import POOL_SCALE
from serene.racks import Racks
from serene.strategy import ASP, BSP, SSP, Mixed, PolicyFields, Quorum, Strategy
from serene.wire import UNBOUNDED


def job_from(job_id: int, found: InstalledJob, now: float, steady: Callable[[], float] = time.monotonic) -> Job:
    """The job that complete entries describe. now: in Unix seconds.

    A worker that is admitted but no member was evicted or has left. The entries do not distinguish these: it counts as
    evicted, so that nobody waits for it, and a leaving one sends LEAVE again. Without members, the job is over, and its
    entries remain for the last reads.
    """
    assert found.slots is not None and found.fields is not None
    mask = found.fields.member_mask
    members = [worker for worker in range(mask.bit_length()) if mask >> worker & 1]
    strategy = recognise(replace(found.fields, precision=32), members)
    # A worker that had left before a later session began is not among its workers, but the others keep their numbers.
    places = max(found.workers, 1 + max([*members, *found.members]))
    racks = found.racks or Racks((places,))
    places = sum(racks.sizes)
    job = Job(job_id, places, strategy, found.scale, found.limit / found.scale, JobState.RUNNING, racks=racks)
    job.steady = steady
    job.pool = found.scale == POOL_SCALE
    job.slots = found.slots
    job.slots_needed = found.slots.count
    job.vector_length = found.vector_length
    job.lost_sessions = found.lost_sessions
    job.lost_before = found.session if found.lost_sessions else 0
    job.restoring = found.lost_sessions > 0 and found.epoch == 1
    job.epochs_spent = found.epoch
    if not members:
        job.state = JobState.FINISHED
    for worker in job.workers:
        worker.endpoint = found.members.get(worker.id)
        if worker.id in members:
            worker.state = WorkerState.RUNNING
        else:
            worker.state = WorkerState.EVICTED if worker.endpoint is not None and members else WorkerState.LEFT
    notes.take(job, found.note)
    job.begin_epoch(Policy(found.session, found.epoch, strategy, found.fields), "taken over", now)
    return job


def lost_job_from(job_id: int, found: InstalledJob, now: float, steady: Callable[[], float] = time.monotonic) -> Job:
    """A job of which one of several switches has lost its part. It waits for its participants, to begin another
    session."""
    job = job_from(job_id, found, now, steady)
    job.reset(job.evicted())
    job.absent = found.absent
    return job


def recognise(fields: PolicyFields, members: list[int]) -> Strategy:
    """The strategy that compiles to ``fields`` for these members. Raises SereneError if there is none."""
    if fields.staleness == UNBOUNDED:
        return ASP()
    candidates: list[Strategy] = [BSP(), SSP(fields.staleness)]
    asynchronous = tuple(worker for worker in members if not fields.sync_mask >> worker & 1)
    if asynchronous:
        candidates.append(Mixed(asynchronous, fields.staleness))
    if fields.quorum:
        candidates.append(Quorum(fields.quorum))
    for strategy in candidates:
        if _compiles_to(strategy, members, fields):
            return strategy
    raise SereneError(f"the switch's policy {fields} is no strategy for {len(members)} workers")


def _compiles_to(strategy: Strategy, members: list[int], fields: PolicyFields) -> bool:
    try:
        return strategy.compile(members) == fields
    except SereneError:
        return False
