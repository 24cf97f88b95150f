"""Helpers for tests of the controller's plans, on jobs without a switch."""

from __future__ import annotations

from serene.controller.jobs.jobs import Jobs
from serene.controller.jobs.plans import Leave, Refusal, Start
from serene.entries import Endpoint

NOW = 1_800_000_000.5


def new_jobs(slots: int = 100) -> Jobs:
    return Jobs(slots=slots, lanes=320, max_jobs=8, max_workers=32)


def at(port: int, udp_port: int = 4000, incarnation: int = 7) -> Endpoint:
    return Endpoint(port, f"02:00:00:00:00:{port:02x}", f"10.0.0.{port}", udp_port, incarnation)


def started(jobs: Jobs, job: int = 0, *, vector_length: int = 5) -> Start:
    """Has as many workers join as it needs, and returns the start, which is committed."""
    for worker in jobs[job].workers[: jobs[job].workers_expected]:
        plan = jobs.hello(job, worker.id, at(worker.id + 1), vector_length, NOW)
    assert isinstance(plan, Start)
    jobs.started(plan, NOW)
    return plan


def left(jobs: Jobs, worker: int, job: int = 0) -> Leave:
    plan = jobs.plan_leave(job, worker, at(worker + 1), None)
    jobs.left(plan, NOW)
    return plan


def reason(plan: object) -> str:
    assert isinstance(plan, Refusal), plan
    return plan.reason
