"""Events, for the log and for the listeners of the live stream."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from controller.status.model import Event

LOG = logging.getLogger("serene.controller")

BACKLOG = 256


class Events:
    """A hub: every listener gets every event from when it subscribed. A slow listener misses the oldest."""

    def __init__(self) -> None:
        self._listeners: set[asyncio.Queue[Event]] = set()
        self._latest: deque[Event] = deque(maxlen=BACKLOG)

    @property
    def listeners(self) -> int:
        return len(self._listeners)

    def emit(self, event: str, text: str, job: int, **facts: object) -> None:
        """Publish an Event; ``facts`` are further fields of it."""
        LOG.info("%s", text)
        told = Event.model_validate({"event": event, "t": time.time(), "text": text, "job": job, **facts})
        self._latest.append(told)
        for listener in self._listeners:
            if listener.full():
                listener.get_nowait()
            listener.put_nowait(told)

    def after(self, t: float) -> list[Event]:
        """Those of the latest BACKLOG events that happened after ``t``, in Unix seconds."""
        return [event for event in self._latest if event.t > t]

    @contextmanager
    def subscribe(self) -> Iterator[asyncio.Queue[Event]]:
        listener: asyncio.Queue[Event] = asyncio.Queue(BACKLOG)
        self._listeners.add(listener)
        try:
            yield listener
        finally:
            self._listeners.discard(listener)
