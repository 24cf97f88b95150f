"""How many bits the values of a job's gradients may have on their way (docs/decisions/number-formats.md)."""

from __future__ import annotations

from dataclasses import replace

from controller.jobs.errors import BadRequest, Conflict
from controller.jobs.job import Job, JobState
from serene.client.blocks import Layout
from serene.errors import SereneError, choices
from serene.strategy import PolicyFields
from serene.wire import PRECISIONS, UNBOUNDED


def check(job: Job, lanes: int, bits: int) -> None:
    """Raises BadRequest for bits that no sum of its workers fits, Conflict for a job whose values have no scales of
    their own."""
    if bits not in PRECISIONS:
        raise BadRequest(f"{bits} bits: expected {choices(PRECISIONS)}")
    if not job.pool:
        raise Conflict(
            f"job {job.id} keeps 32 bits: all values of its workers' vectors have one scale, and "
            f"{_held_in_a_read(job, bits)}. Gradients with fewer bits: 'The process group' in docs/pytorch.md"
        )
    try:
        Layout(job.workers_expected, lanes, bits)
    except SereneError as error:
        raise BadRequest(f"job {job.id}: {error}") from None


def _held_in_a_read(job: Job, bits: int) -> str:
    """What so many bits would have to hold under the job's strategy."""
    workers, strategy = job.workers_expected, job.strategy
    fields = strategy.compile(range(workers))
    if fields.staleness == UNBOUNDED or fields.quorum < workers:
        return f"under {strategy} a read may hold any number of contributions"
    most = workers * (2 * fields.staleness + 1)
    levels = ((1 << bits - 1) - 1) // most
    return f"under {strategy} a read may hold {most} contributions, of which {bits} bits tell {levels} levels apart"


def change(job: Job, lanes: int, bits: int) -> PolicyFields | None:
    """What the policy says from now on; None where the values have so many bits already. Raises BadRequest, or Conflict
    where the job cannot change them."""
    if bits == job.precision and not job.pool:
        return None
    check(job, lanes, bits)
    if job.state is not JobState.RUNNING:
        raise Conflict(f"job {job.id} is {job.state.value}: the precision of a job that runs can be changed")
    if job.slots_needed < 2:
        raise Conflict(f"job {job.id} has one slot, which has no room for a new epoch: expected 2 or more")
    if len(job.members()) < job.workers_expected:
        raise Conflict(f"job {job.id} is ending: a worker has left")
    if bits == job.precision and job.epoch == job.epochs_spent:
        return None
    return replace(job.strategy.compile(job.members()), precision=bits)
