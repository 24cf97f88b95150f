"""Workers' punted requests that wait to be served.

Each port of the switch has its own queues, and ports are served in turn. So a host that floods the controller delays
the others by one request only. A request is queued once; of reports only the latest is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable

from serene.controller.admission.frames import Request
from serene.wire import Op

WAITING_PER_PORT = 64  # HELLOs and LEAVEs; a worker that gets no answer asks again
REPORTS_PER_PORT = 256  # as many as there can be members of jobs


class Inbox:
    """The requests that wait to be served, a bounded number."""

    def __init__(self) -> None:
        self._requests: dict[Hashable, dict[Hashable, Request]] = {}
        self._reports: dict[Hashable, dict[Hashable, Request]] = {}
        self._anything = asyncio.Event()
        self.overlooked = 0  # requests for which there was no room

    def put(self, request: Request) -> None:
        """Keeps a request, if there is room."""
        report = request.op is Op.REPORT
        queues, room = (self._reports, REPORTS_PER_PORT) if report else (self._requests, WAITING_PER_PORT)
        queue = queues.setdefault(request.sender.behind, {})
        key = (request.op, request.sender, request.job, request.worker)
        if key in queue or len(queue) < room:
            queue[key] = request  # the latest one, in the first one's turn
            self._anything.set()
        else:
            self.overlooked += 1

    async def get(self) -> Request:
        """Waits for the next request: every HELLO and LEAVE precedes all reports."""
        while True:
            for queues in (self._requests, self._reports):
                if queues:
                    port = next(iter(queues))
                    queue = queues.pop(port)
                    request = queue.pop(next(iter(queue)))
                    if queue:
                        queues[port] = queue  # its next turn comes after all other ports'
                    return request
            self._anything.clear()
            await self._anything.wait()


class Pace:
    """Limits answers, or messages: in each interval one to each addressee, and at most ``per_port`` for one port."""

    def __init__(self, interval_s: float, per_port: int) -> None:
        self._interval_s = interval_s
        self._per_port = per_port
        self._answered: dict[Hashable, dict[Hashable, float]] = {}

    def allows(self, port: Hashable, who: Hashable, now: float) -> bool:
        """Whether ``who`` at ``port`` may get another message. If so, that message is counted. now: on the monotonic
        clock."""
        answered = self._answered.setdefault(port, {})
        while answered and now - answered[oldest := next(iter(answered))] >= self._interval_s:
            del answered[oldest]
        if who in answered or len(answered) >= self._per_port:
            return False
        answered[who] = now
        return True
