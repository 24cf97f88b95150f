"""Whether a process may join a job, and the text of a refusal."""

from __future__ import annotations

from serene.controller.jobs.elastic import is_free
from serene.controller.jobs.job import Job, JobState, Worker, WorkerState
from serene.controller.jobs.plans import Refusal
from serene.entries import Endpoint


def refusal(
    job: Job, worker: Worker, endpoint: Endpoint, vector_length: int, session: int, goes_on: bool
) -> Refusal | None:
    """The reason why the process at ``endpoint`` may not join as this worker of the job; None if it may. The other
    arguments as of `Jobs.hello`."""
    name = job.racks.name(worker.id)
    if not endpoint.incarnation:
        return Refusal(f"incarnation 0: expected a number from 1 to {2**32 - 1}")
    if job.state is JobState.FINISHED:
        anew = f"serenectl jobs create --job {job.id} --workers {len(job.workers)}"
        has_left = worker.state is WorkerState.LEFT and worker.endpoint == endpoint and session == job.session
        return Refusal(f"job {job.id} has finished; create a new one with '{anew}'", has_left)
    if not job.has_had(session):
        return Refusal(f"session {session} of job {job.id} is over; the id belongs to a new job: restart the worker")
    taken = Refusal(f"another process has taken the place of worker {name} of job {job.id}")
    if endpoint.incarnation in worker.retired:
        return taken
    given = worker.given or is_free(job, worker)
    if worker.endpoint is not None and worker.endpoint.host != endpoint.host and not given:
        return Refusal(f"worker {name} of job {job.id} is at {worker.endpoint}, not at {endpoint}")
    displaced = worker.endpoint is not None and worker.endpoint.incarnation != endpoint.incarnation
    if goes_on and displaced and session == job.session:
        return taken
    others = [other for other in job.workers if other is not worker and other.endpoint is not None]
    if (job.state is JobState.RUNNING or others or job.pool) and vector_length != job.vector_length:
        return Refusal(
            f"vector_length {vector_length}: expected {job.vector_length}, which the other workers of job {job.id} have"
        )
    return None
