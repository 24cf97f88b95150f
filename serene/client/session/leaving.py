"""Leaving a job: a worker sends LEAVE until the controller answers with BYE, or until all workers have left."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Collection

from serene.client.session.requests import Refused, Requests
from serene.wire import HEADER, Op

LOG = logging.getLogger("serene")
LEAVE_EVERY_S = 0.2
WARN_AFTER_S = 3.0  # of LEAVEs without a BYE
# Over racks, a leaf answers although the root may be down. A leaving worker waits this long for its last read, and
# again this long for a BYE.
PATIENCE_S = 7.5


class Leaving:
    """One worker's departure.

    clock: in seconds. contributions_sent: packets in this session, for the controller. died: the workers of the job
    whose processes have died, for the controller: nobody waits for their LEAVE. hello: sends HELLO; called every
    ``hello_every_s`` seconds. check_session: called with every answer; may raise an error that ends the departure. why:
    returns the possible reason of a missing answer, for the warning. ``has_left``: whether a BYE has come.
    """

    def __init__(
        self,
        requests: Requests,
        clock: Callable[[], float],
        contributions_sent: int,
        hello: Callable[[], None],
        hello_every_s: float,
        check_session: Callable[[bytes], None],
        why: Callable[[], str],
        died: Collection[int] = (),
    ) -> None:
        self._requests = requests
        self._clock = clock
        self._body = json.dumps({"contributions_sent": contributions_sent, "died": sorted(died)}).encode()
        self._hello, self._hello_every_s = hello, hello_every_s
        self._check_session, self._why = check_session, why
        self.has_left = False
        # A switch answers HELLO while the controller answers WAIT: the root is unreachable for the leaf.
        self._confirmations = requests.confirmations  # at the last BYE, or at the beginning
        self._waits_since = math.inf
        self._warned = False

    def run(self, timeout_s: float, *, wait_for_others: bool) -> bool:
        """Returns whether the whole job is over, by the controller's BYE: at the first BYE, or, if the worker waits for
        the others, at the BYE that ends the job; or when the time is up. Raises as ``check_session``.
        """
        began = greeted = self._clock()
        until = began + timeout_s
        while (asked := self._clock()) < until:
            job, worker = self._requests.job, self._requests.worker
            if asked - began > WARN_AFTER_S and not (self._warned or self.has_left):
                self._warned = True
                LOG.warning("worker %d of job %d waits to leave: %s", worker, job, self._why())
            if self._root_is_gone(asked):
                LOG.warning("worker %d of job %d cannot leave: %s", worker, job, self._requests.missing)
                return False
            self._requests.send(Op.LEAVE, self._body)
            if asked - greeted > self._hello_every_s:
                # A switch that has lost its state does not know this worker any more. And the controller still answers
                # LEAVE after the others have begun a new session, in which they wait for this worker.
                greeted = asked
                self._hello()
            # One LEAVE each time, for any number of packets: each LEAVE is answered.
            while self._clock() < asked + LEAVE_EVERY_S:
                for payload in self._requests.answers(asked + LEAVE_EVERY_S - self._clock()):
                    try:
                        job_over = self._job_over(payload)
                    except Refused as refused:
                        if not (self.has_left or refused.has_left):
                            raise
                        LOG.warning("worker %d of job %d stops waiting: %s", worker, job, refused)
                        return False
                    if job_over or (job_over is not None and not wait_for_others):
                        return job_over
        return False

    def _root_is_gone(self, now: float) -> bool:
        return now - self._waits_since > PATIENCE_S and self._requests.confirmations > self._confirmations

    def _job_over(self, payload: bytes) -> bool | None:
        """Whether a BYE ends the job; None for another answer."""
        self._check_session(payload)
        if payload[1] == Op.WAIT:
            self._waits_since = min(self._waits_since, self._clock())
        if payload[1] != Op.BYE:
            return None
        self.has_left = True
        self._confirmations, self._waits_since = self._requests.confirmations, math.inf
        return bool(json.loads(payload[HEADER.itemsize :]).get("job_over"))
