"""Events of jobs, for the log, the live stream and the page."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from serene.controller.clock import SYSTEM, Clock
from serene.controller.status.model import Event

LOG = logging.getLogger("serene.controller")

BACKLOG = 256  # events that are stored, and that a listener may lag behind


class Events:
    """Passes every event to every listener that has subscribed. A listener more than BACKLOG events behind misses the
    oldest."""

    def __init__(self, clock: Clock = SYSTEM) -> None:
        self._clock = clock
        self._listeners: set[asyncio.Queue[Event]] = set()
        self._latest: deque[Event] = deque(maxlen=BACKLOG)

    @property
    def listeners(self) -> int:
        """The number of listeners."""
        return len(self._listeners)

    def emit(self, event: str, text: str, job: int, **facts: object) -> None:
        """Logs and publishes an `Event`. facts: further fields of it."""
        LOG.info("%s", text)
        emitted = Event.model_validate({"event": event, "t": self._clock.unix(), "text": text, "job": job, **facts})
        self._latest.append(emitted)
        for listener in self._listeners:
            if listener.full():
                listener.get_nowait()
            listener.put_nowait(emitted)

    def after(self, t: float) -> list[Event]:
        """Those of the latest BACKLOG events that happened after ``t``, in Unix seconds."""
        return [event for event in self._latest if event.t > t]

    @contextmanager
    def subscribe(self) -> Iterator[asyncio.Queue[Event]]:
        """A queue that gets every event from now on, until the context ends."""
        listener: asyncio.Queue[Event] = asyncio.Queue(BACKLOG)
        self._listeners.add(listener)
        try:
            yield listener
        finally:
            self._listeners.discard(listener)
