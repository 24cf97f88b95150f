"""Helpers for tests of the controller's plans, on jobs without a switch."""

from __future__ import annotations

from typing import Any

from serene.controller.jobs.jobs import Jobs
from serene.controller.jobs.plans import Leave, Readmission, Refusal, Start
from serene.entries import Endpoint

NOW = 1_800_000_000.5


def new_jobs(slots: int = 100) -> Jobs:
    return Jobs(slots=slots, lanes=320, max_jobs=8, max_workers=32)


def with_job(*args: Any, **options: Any) -> Jobs:
    """Jobs, of which one was made, as `Jobs.create` takes it."""
    jobs = new_jobs()
    jobs.create(*args, **options)
    return jobs


def running(*args: Any, **options: Any) -> Jobs:
    """Likewise, and the job runs."""
    jobs = with_job(*args, **options)
    started(jobs)
    return jobs


def at(port: int, udp_port: int = 4000, incarnation: int = 7) -> Endpoint:
    return Endpoint(port, f"02:00:00:00:00:{port:02x}", f"10.0.0.{port}", udp_port, incarnation)


def started(jobs: Jobs, job: int = 0, *, vector_length: int | None = None) -> Start:
    """Has as many workers join as it needs, and returns the start, which is committed. vector_length: by default a
    pool's own, or 5."""
    vector_length = vector_length or jobs[job].vector_length or 5
    for worker in jobs[job].workers[: jobs[job].workers_expected]:
        plan = jobs.hello(job, worker.id, at(worker.id + 1), vector_length, NOW)
    assert isinstance(plan, Start)
    jobs.started(plan, NOW)
    return plan


def comes_back(jobs: Jobs, worker: int, job: int = 0, *, incarnation: int = 8) -> Readmission:
    """Has another process take a worker's place, which is committed."""
    plan = jobs.hello(job, worker, at(worker + 1, incarnation=incarnation), 5, NOW)
    assert isinstance(plan, Readmission)
    jobs.readmitted(plan, NOW)
    return plan


def evict(jobs: Jobs, *workers: int, job: int = 0) -> None:
    """Has these workers, and no others, evicted."""
    plan = jobs.plan_barrier(job, jobs[job].in_force, workers, "requested")
    assert plan is not None
    jobs.swapped(plan, NOW)


def left(jobs: Jobs, worker: int, job: int = 0) -> Leave:
    plan = jobs.plan_leave(job, worker, at(worker + 1), None)
    jobs.left(plan, NOW)
    return plan


def reason(plan: object) -> str:
    assert isinstance(plan, Refusal), plan
    return plan.reason
