"""What is wrong with a request about jobs."""

from __future__ import annotations

from serene.errors import SereneError


class NoSuchJob(SereneError):
    """A job id that is not in use."""


class Conflict(SereneError):
    """A request that is well formed, but not for the state the jobs are in."""


class BadRequest(SereneError):
    """A request that is wrong whatever the state."""
