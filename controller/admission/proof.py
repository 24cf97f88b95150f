"""Whether the sender of a HELLO is alive now.

A HELLO may have been delayed for long. Its sender may have died since. The place that it asks for may belong to another
process, or to a later job of the same id. So a process that asks for a place gets a number in a WAIT, and has to send
it with its next HELLO. The number depends on this controller, the job, and the present holder of the place; when any of
them changes, it is void. The controller stores nothing for a process that asks.
"""

from __future__ import annotations

import hashlib
import secrets

from serene.controller.jobs.job import Job
from serene.entries import Endpoint


class Proof:
    """The numbers that one controller gives."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(16)

    def number(self, job: Job, worker: int, who: Endpoint) -> int:
        """The number, 1 to 2^32 - 1, that this process has to send to get the worker's place. worker: its number in its
        rack."""
        there = job.worker_at(who.rack, worker)
        held = None if there is None else there.endpoint
        facts = (job.id, job.tag, job.session, job.lost_sessions, worker, held, who)
        digest = hashlib.blake2s(repr(facts).encode(), key=self._secret, digest_size=4).digest()
        return int.from_bytes(digest, "big") or 1

    def lacks(self, job: Job | None, worker: int, who: Endpoint, sent: int) -> bool:
        """Whether a process asks for a place that it does not hold, without the right number. sent: the number that it
        sent."""
        there = None if job is None else job.worker_at(who.rack, worker)
        if job is None or there is None or there.endpoint == who:
            return False
        return sent != self.number(job, worker, who)
