"""What workers ask, from when the switch hands it up until it is served.

Each port of the switch has its own queues and is served in turn, so that a host that sends without end delays the
others by one request. A request that is there already is not kept twice, and of reports only the latest counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable

from controller.admission.frames import Request
from serene.wire import Op

WAITING_PER_PORT = 64  # HELLOs and LEAVEs; a worker that gets no answer asks again
REPORTS_PER_PORT = 256  # as many as there are members of jobs


class Inbox:
    """Requests that wait to be served; their number is bounded."""

    def __init__(self) -> None:
        self._requests: dict[Hashable, dict[Hashable, Request]] = {}
        self._reports: dict[Hashable, dict[Hashable, Request]] = {}
        self._anything = asyncio.Event()
        self.overlooked = 0  # requests for which there was no room

    def put(self, request: Request) -> None:
        """Keep it, if there is room."""
        report = request.op is Op.REPORT
        queues, room = (self._reports, REPORTS_PER_PORT) if report else (self._requests, WAITING_PER_PORT)
        queue = queues.setdefault(request.sender.behind, {})
        key = (request.op, request.sender, request.job, request.worker)
        if key in queue or len(queue) < room:
            queue[key] = request  # the latest one, at the place of the first
            self._anything.set()
        else:
            self.overlooked += 1

    async def get(self) -> Request:
        """The next one, once there is one: HELLO and LEAVE before all reports."""
        while True:
            for queues in (self._requests, self._reports):
                if queues:
                    port = next(iter(queues))
                    queue = queues.pop(port)
                    request = queue.pop(next(iter(queue)))
                    if queue:
                        queues[port] = queue  # to the end of the queue
                    return request
            self._anything.clear()
            await self._anything.wait()


class Pace:
    """Limits answers: one to a worker, and at most ``per_port`` out of one port, in each interval."""

    def __init__(self, interval_s: float, per_port: int) -> None:
        self._interval_s = interval_s
        self._per_port = per_port
        self._told: dict[Hashable, dict[Hashable, float]] = {}

    def allows(self, port: Hashable, who: Hashable, now: float) -> bool:
        """Whether it is time to tell them again; if so, it is taken for done. ``now`` is on the monotonic clock."""
        told = self._told.setdefault(port, {})
        while told and now - told[oldest := next(iter(told))] >= self._interval_s:
            del told[oldest]
        if who in told or len(told) >= self._per_port:
            return False
        told[who] = now
        return True
