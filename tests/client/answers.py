"""Answers to a worker's requests."""

from __future__ import annotations

from serene.wire import Op, control_payload, membership

SLOTS, VALUES = 4, 4 * 320  # of the job


def welcome(incarnation: int = 1, session: int = 7, epoch: int = 1, **sizes: int) -> bytes:
    fields = {"vector_length": VALUES, "slots": SLOTS, "scale": 2**20, "limit": 2**23, "lanes": 320, "workers": 3}
    return control_payload(
        Op.WELCOME, membership(**{**fields, **sizes}), session=session, epoch=epoch, incarnation=incarnation
    )
