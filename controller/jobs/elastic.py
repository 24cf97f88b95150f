"""Jobs whose workers come and go: their first workers, their places, and eviction for silence.

A place without a process is no member, like that of a worker that has left. So the protocol needs no rule for it. A
process that comes is readmitted like a restarted one: it reads the sum before it contributes.
"""

from __future__ import annotations

from collections.abc import Mapping

from serene.controller.jobs.errors import BadRequest
from serene.controller.jobs.job import Elastic, Job, JobState, Worker, WorkerState

SHORTEST_S, LONGEST_S = 0.5, 86400.0


def elastic(
    workers: int, places: int | None, minimum: int | None, evict_after: float | None, most: int, racks: int
) -> Elastic | None:
    """The `Elastic` of a job with this number of workers; None without these settings. most: places that the program
    has. racks: the number of switches. Raises BadRequest, which names the valid choices."""
    if places is None and minimum is None and evict_after is None:
        return None
    places = workers if places is None else places
    minimum = 1 if minimum is None else minimum
    if racks > 1:
        raise BadRequest("places, minimum and evict_after need a single switch: leave them out over racks")
    if not workers <= places <= most:
        raise BadRequest(f"places {places}: expected {workers} (the number of workers) to {most}")
    if not 1 <= minimum <= workers:
        raise BadRequest(f"minimum {minimum}: expected 1 to {workers} (the number of workers)")
    if evict_after is not None and not SHORTEST_S <= evict_after <= LONGEST_S:
        raise BadRequest(f"evict_after {evict_after:g}: expected {SHORTEST_S:g} to {LONGEST_S:g} seconds")
    return Elastic(places, minimum, evict_after)


def _come(job: Job) -> list[Worker]:
    """The workers whose place a process has had."""
    return [worker for worker in job.workers if worker.endpoint is not None]


def is_free(job: Job, worker: Worker) -> bool:
    """Whether any process may take this place of an elastic job: its worker has left, or was evicted for silence."""
    return job.elastic is not None and (worker.state is WorkerState.LEFT or worker.id in job.silenced)


def evictions(job: Job, silent_s: Mapping[int, float]) -> tuple[frozenset[int], frozenset[int]]:
    """The workers to evict now, and those of them that are evicted for silence. silent_s: each worker's seconds of
    silence."""
    evicted, members = frozenset(job.evicted()), job.members()
    silenced = job.silenced & evicted
    if job.elastic is None or job.elastic.evict_after is None or job.state is not JobState.RUNNING:
        return evicted, silenced
    longest = job.elastic.evict_after
    # A worker that has not come back since its session was lost counts as silent at once.
    there = silenced & job.places().keys()
    back = frozenset() if job.restoring else frozenset(each for each in there if silent_s[each] <= longest)
    dead = sorted((each for each in members if silent_s[each] > longest), key=lambda each: -silent_s[each])
    staying, left = len(members) + len(back), sum(worker.state is WorkerState.LEFT for worker in _come(job))
    spare = min(staying - 1, staying + left - job.elastic.minimum)
    gone = frozenset(dead[: max(spare, 0)])
    return evicted - back | gone, silenced - back | gone


def is_deserted(job: Job, silent_s: Mapping[int, float]) -> bool:
    """Whether all remaining members are silent while others have left and wait for the job's end. Eviction does not
    help then: a member has to stay."""
    if job.elastic is None or job.elastic.evict_after is None:
        return False
    left = any(worker.state is WorkerState.LEFT for worker in _come(job))
    return left and all(silent_s[each] > job.elastic.evict_after for each in job.members())


def starts_without(job: Job) -> bool:
    """Whether a job that lost its session begins the next one without the missing workers: their time is over, and
    enough others have joined."""
    if job.elastic is None or not job.lost_sessions:
        return False
    here = sum(worker.state is WorkerState.JOINED for worker in job.workers)
    return job.lost_s >= job.elastic.patience_s and here >= job.elastic.minimum
