"""Answers to a worker's requests, and when they come."""

from __future__ import annotations

import json
from collections.abc import Callable

from serene.wire import Op, control_payload, membership
from tests.support.in_process import InProcess

SLOTS, VALUES = 4, 4 * 320  # of the job


def welcome(incarnation: int = 1, session: int = 7, epoch: int = 1, **sizes: int) -> bytes:
    fields = {"vector_length": VALUES, "slots": SLOTS, "scale": 2**20, "limit": 2**23, "lanes": 320, "workers": 3}
    return control_payload(
        Op.WELCOME, membership(**{**fields, **sizes}), session=session, epoch=epoch, incarnation=incarnation
    )


def bye(job_over: bool) -> bytes:
    return control_payload(Op.BYE, json.dumps({"job_over": job_over}).encode(), session=7, incarnation=1)


def after(seconds: float, wire: InProcess, then: Callable[[], None]) -> None:
    """Calls it once, when so much time has passed."""
    end = wire.now + seconds

    def look() -> None:
        if wire.now > end:
            wire.meanwhile = lambda: None
            then()

    wire.meanwhile = look
