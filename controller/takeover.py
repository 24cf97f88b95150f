"""Jobs that a switch runs already: what its entries say about them, when no controller remembers."""

from __future__ import annotations

from controller.entries import InstalledJob
from controller.job import Job, JobState, WorkerState
from controller.plans import Policy
from serene.errors import SereneError
from serene.strategy import ASP, BSP, SSP, Mixed, PolicyFields, Quorum, Strategy
from serene.wire import UNBOUNDED


def job_from(job_id: int, found: InstalledJob, now: float) -> Job:
    """The running job behind complete entries, which do not tell who has left and why epochs began."""
    assert found.slots is not None and found.fields is not None
    strategy, members = recognise(found.fields, sorted(found.members))
    job = Job(job_id, found.workers, strategy, found.scale)
    job.state = JobState.RUNNING
    job.slots = found.slots
    job.slots_needed = found.slots.count
    job.vector_length = found.vector_length
    job.incarnation = found.incarnation
    job.restoring = found.incarnation > 0 and found.epoch == 1
    job.epochs_spent = found.epoch
    for worker in job.workers:
        worker.endpoint = found.members.get(worker.id)
        worker.state = WorkerState.RUNNING if worker.id in members else WorkerState.LEFT
    job.adopt(Policy(found.session, found.epoch, strategy, found.fields), "taken over", now)
    return job


def recognise(fields: PolicyFields, workers: list[int]) -> tuple[Strategy, list[int]]:
    """The strategy and the members that compile to ``fields``.

    A worker that is not counted may have left or may be one of a mixed strategy's asynchronous workers; it is
    taken for the latter, because that holds nobody up, and one that is leaving says so again.
    """
    counted = [worker for worker in workers if fields.sync_mask >> worker & 1]
    if not counted or fields.staleness == UNBOUNDED:
        return ASP(), workers
    free = tuple(worker for worker in workers if worker not in counted)
    candidates: list[tuple[Strategy, list[int]]] = [(BSP(), workers), (SSP(fields.staleness), workers)]
    if free:
        candidates.append((Mixed(free, fields.staleness), workers))
    candidates += [(Quorum(fields.quorum), workers), (Quorum(fields.quorum), counted)]
    for strategy, members in candidates:
        if _compiles_to(strategy, members, fields):
            return strategy, members
    raise SereneError(f"no strategy of {len(workers)} workers compiles to {fields}")


def _compiles_to(strategy: Strategy, members: list[int], fields: PolicyFields) -> bool:
    try:
        return strategy.compile(members) == fields
    except SereneError:
        return False
