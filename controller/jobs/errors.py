"""Errors of requests about jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from serene.errors import SereneError

if TYPE_CHECKING:
    from serene.controller.jobs.job import Job


class NoSuchJob(SereneError):
    """No job has this id."""


class Conflict(SereneError):
    """A request that is valid, but not in the jobs' present state."""


class InTheWay(Conflict):
    """The request is possible when the switch has no entries of the finished ``job`` any more."""

    def __init__(self, job: Job) -> None:
        super().__init__(f"job {job.id} has finished, but keeps its slots a few seconds for last reads")
        self.job = job


class BadRequest(SereneError):
    """A request that is invalid in every state."""
