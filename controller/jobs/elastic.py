"""Jobs whose workers come and go: how many begin, how many may take part, and who is evicted for silence.

A place that nobody has is no member, as one whose worker has left: nothing else in the protocol knows of it. Who comes
is readmitted, as a process is that was started again: it reads the sum of all contributions before it makes one.
"""

from __future__ import annotations

from collections.abc import Mapping

from serene.controller.jobs.errors import BadRequest
from serene.controller.jobs.job import Elastic, Job, JobState, Worker, WorkerState

SHORTEST_S, LONGEST_S = 0.5, 86400.0


def elastic(
    workers: int, places: int | None, minimum: int | None, evict_after: float | None, most: int, racks: int
) -> Elastic | None:
    """What a job of so many workers is asked to be; None: no more than that. most: places that the program has. racks:
    over how many switches. Raises BadRequest, which names the valid choices."""
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
    """The workers that have been there."""
    return [worker for worker in job.workers if worker.endpoint is not None]


def is_free(job: Job, worker: Worker) -> bool:
    """Whether a process from anywhere may take this place of an elastic job: its worker has left, or was evicted for
    silence."""
    return job.elastic is not None and (worker.state is WorkerState.LEFT or worker.id in job.silenced)


def evictions(job: Job, silent_s: Mapping[int, float]) -> tuple[frozenset[int], frozenset[int]]:
    """Who is to be evicted now, and which of them for silence. silent_s: for how many seconds each worker has been."""
    evicted, members = frozenset(job.evicted()), job.members()
    silenced = job.silenced & evicted
    if job.elastic is None or job.elastic.evict_after is None or job.state is not JobState.RUNNING:
        return evicted, silenced
    longest = job.elastic.evict_after
    # One that has not come back since its session was lost has not been heard, however short that is ago.
    there = silenced & job.places().keys()
    back = frozenset() if job.restoring else frozenset(each for each in there if silent_s[each] <= longest)
    dead = sorted((each for each in members if silent_s[each] > longest), key=lambda each: -silent_s[each])
    staying, left = len(members) + len(back), sum(worker.state is WorkerState.LEFT for worker in _come(job))
    spare = min(staying - 1, staying + left - job.elastic.minimum)
    gone = frozenset(dead[: max(spare, 0)])
    return evicted - back | gone, silenced - back | gone


def is_deserted(job: Job, silent_s: Mapping[int, float]) -> bool:
    """Whether those who are left as members are all silent, while others have left and wait for the job's end. Eviction
    does not help then: a member has to stay."""
    if job.elastic is None or job.elastic.evict_after is None:
        return False
    left = any(worker.state is WorkerState.LEFT for worker in _come(job))
    return left and all(silent_s[each] > job.elastic.evict_after for each in job.members())


def starts_without(job: Job, now: float) -> bool:
    """Whether a job that lost its session begins the next one without those who are missing: they have had time, and
    enough are there. now: in Unix seconds."""
    if job.elastic is None or not job.lost_sessions:
        return False
    here = sum(worker.state is WorkerState.JOINED for worker in job.workers)
    return now - job.lost_at >= job.elastic.patience_s and here >= job.elastic.minimum
