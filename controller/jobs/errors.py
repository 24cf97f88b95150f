"""Errors of requests about jobs."""

from __future__ import annotations

from serene.errors import SereneError


class NoSuchJob(SereneError):
    """No job has this id."""


class Conflict(SereneError):
    """A request that is valid, but not in the state that the jobs are in."""


class BadRequest(SereneError):
    """A request that is invalid in every state."""
