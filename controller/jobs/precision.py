"""The number format of a job's gradients: scale, limit, and bits per value in packets
(docs/decisions/number-formats.md)."""

from __future__ import annotations

from dataclasses import replace

from serene.client.allreduce.blocks import Layout
from serene.controller.jobs.errors import BadRequest, Conflict
from serene.controller.jobs.job import Job, JobState
from serene.errors import SereneError, choices
from serene.fixedpoint import LARGEST
from serene.strategy import PolicyFields
from serene.wire import PRECISIONS, UNBOUNDED


def check_scale(workers: int, scale: int, limit: float) -> None:
    """Raises BadRequest unless the sum of one contribution from each worker fits a signed 32-bit number, and the limit
    is at least one unit."""
    largest_scale = LARGEST // workers
    if not 1 <= scale <= largest_scale:
        raise BadRequest(f"scale {scale} for {workers} workers: expected 1 to {largest_scale}")
    least, most = 1 / scale, LARGEST / (scale * workers)
    if not least <= limit <= most:
        largest_scale = int(LARGEST / (limit * workers)) if most < limit < LARGEST else 0
        rather = f", or a scale of 1 to {largest_scale}" if largest_scale else ""
        raise BadRequest(
            f"limit {limit:g} with scale {scale} cannot hold one round of {workers} workers: expected a limit of "
            f"{least:g} to {most:g}{rather}"
        )


def check(job: Job, lanes: int, bits: int) -> None:
    """Raises BadRequest for an unknown number of bits, or too few for a sum of all workers; Conflict for a job that is
    no pool. lanes: of the switch's slots."""
    if bits not in PRECISIONS:
        raise BadRequest(f"{bits} bits: expected {choices(PRECISIONS)}")
    if not job.pool:
        raise Conflict(
            f"job {job.id} needs 32 bits, because its vectors have one scale and {_held_in_a_read(job, bits)}. "
            "Fewer bits are for process groups ('The process group' in docs/pytorch.md)"
        )
    try:
        Layout(job.workers_expected, lanes, bits)
    except SereneError as error:
        raise BadRequest(f"job {job.id}: {error}") from None


def _held_in_a_read(job: Job, bits: int) -> str:
    """A text of what this number of bits would have to hold under the job's strategy."""
    workers, strategy = job.workers_expected, job.strategy
    fields = strategy.compile(range(workers))
    if fields.staleness == UNBOUNDED or fields.quorum < workers:
        return f"under {strategy} a read may sum any number of contributions"
    most = workers * (2 * fields.staleness + 1)
    levels = ((1 << bits - 1) - 1) // most
    return f"under {strategy} a read may sum {most} contributions, which leaves {levels} levels with {bits} bits"


def change(job: Job, lanes: int, bits: int) -> PolicyFields | None:
    """The policy with this number of bits; None if they are in force already. Raises as `check`, and Conflict if the
    job's precision cannot change now."""
    if bits == job.precision and not job.pool:
        return None
    check(job, lanes, bits)
    if job.state is not JobState.RUNNING:
        raise Conflict(f"job {job.id} is {job.state.value}: precision can change only while a job runs")
    if job.slots_needed < 2:
        raise Conflict(f"job {job.id} has one slot: a change of precision needs 2 or more")
    if len(job.members()) < job.workers_expected:
        raise Conflict(f"job {job.id} is ending: a worker has left")
    if bits == job.precision and job.epoch == job.epochs_spent:
        return None
    return replace(job.strategy.compile(job.members()), precision=bits)
