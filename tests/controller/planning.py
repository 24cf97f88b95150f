"""Helpers for tests of the controller's plans, on jobs without a switch."""

from __future__ import annotations

from typing import Any

from serene.controller.jobs.jobs import Jobs
from serene.controller.jobs.plans import Start
from serene.entries import Endpoint

NOW = 1_800_000_000.5


def new_jobs() -> Jobs:
    return Jobs(slots=100, lanes=320, max_jobs=8, max_workers=32)


def running(*args: Any, **options: Any) -> Jobs:
    """Jobs, of which one was made, as `Jobs.create` takes it, and runs."""
    jobs = new_jobs()
    jobs.create(*args, **options)
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
