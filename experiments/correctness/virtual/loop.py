"""An asyncio event loop whose time is virtual: so the controller can be the real one, which is asyncio throughout."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context
from typing import Any

from serene.experiments.correctness.virtual.timeline import Timeline


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs what is ready whenever the timeline does, and never waits itself. What becomes ready from outside, by a
    packet or an answer, runs in the next tick."""

    _ready: deque[asyncio.Handle]

    def __init__(self, time: Timeline) -> None:
        super().__init__()
        self._timeline = time
        self._turn_is_due = False

    def time(self) -> float:
        return self._timeline.now

    def call_soon(self, callback: Callable[..., Any], *args: Any, context: Context | None = None) -> asyncio.Handle:  # type: ignore[override]
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        if not self._turn_is_due:
            self._turn_is_due = True
            self._timeline.at(0.0, self.turn)
        return handle

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._timeline.at(when - self._timeline.now, lambda: self._come(handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None: ...

    def _come(self, timer: asyncio.TimerHandle) -> None:
        if not timer.cancelled() and not self.is_closed():
            self._ready.append(timer)
            self.turn()

    def turn(self) -> None:
        """Runs what is ready until nothing is."""
        self._turn_is_due = True  # what becomes ready meanwhile runs in this turn
        asyncio._set_running_loop(self)
        try:
            while self._ready:
                handle = self._ready.popleft()
                if not handle.cancelled():
                    handle._run()
        finally:
            asyncio._set_running_loop(None)
            self._turn_is_due = False
