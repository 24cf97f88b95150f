"""Virtual time, kept by SimPy: a clock, one that has ticks with the packets of each, and what runs by them.

A `Process` is blocking code that runs until it waits, so that a worker can be `serene.client.Client` as it is. A
`VirtualLoop` runs asyncio's code, so that the controller can be the real one, and can die between two writes.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable
from contextvars import Context
from typing import Any

import greenlet
import simpy

TICK_S = 0.001

Action = Callable[[], object]


class Clock:
    """Virtual time; ``now`` is in seconds, from 0. Actions of the same time come in the order in which they were
    given."""

    now = 0.0
    unit_s = 1.0  # SimPy's unit of time

    def __init__(self) -> None:
        self._environment = simpy.Environment()

    def at(self, delay_s: float, action: Action) -> None:
        """Calls the action after so many seconds."""
        self._schedule(delay_s, action)

    def _schedule(self, units: float, action: Action) -> None:
        def due(_: simpy.Event) -> None:
            action()

        simpy.Timeout(self._environment, units).callbacks.append(due)

    def step(self, until_s: float = math.inf) -> bool:
        """Does what is due next; False if nothing is, up to a time in seconds."""
        due = self._environment.peek()
        if due == math.inf or due * self.unit_s > until_s:
            return False
        self.now = due * self.unit_s
        self._environment.step()
        return True


class Due:
    """What is due in a tick. to_switch: (port, frame) pairs. to_port: frames by the switch's port that they came out
    of."""

    __slots__ = ("actions", "to_port", "to_switch")

    def __init__(self) -> None:
        self.to_switch: list[tuple[int, bytes]] = []
        self.to_port: dict[int, list[bytes]] = {}
        self.actions: list[Action] = []


class Timeline(Clock):
    """Time in ticks. ``play`` is called with what is due in each.

    What is due in one tick is done together: packets that reach the switch in the same tick go through it in one call,
    in the order they were sent. A host's frames of one tick arrive in one call, too.
    """

    unit_s = TICK_S

    def __init__(self, play: Callable[[Due], None]) -> None:
        super().__init__()
        self._play = play
        self._due: dict[float, Due] = {}

    def after(self, delay_s: float) -> Due:
        """Where to add what is to be due after so many seconds, in the next tick at the earliest."""
        ticks = int(max(delay_s, 0.0) / TICK_S) + 1
        tick = self._environment.now + ticks
        due = self._due.get(tick)
        if due is None:
            due = self._due[tick] = Due()
            self._schedule(ticks, lambda: self._play(self._due.pop(tick)))
        return due

    def at(self, delay_s: float, action: Action) -> None:
        self.after(delay_s).actions.append(action)


class Process:
    """A greenlet that runs ``body``, from `start` on. An exception that it does not catch is raised in the caller of
    the method that made it continue."""

    def __init__(self, time: Clock, body: Callable[[], None]) -> None:
        self._time = time
        self._greenlet = greenlet.greenlet(body)
        self._wait = 0  # number of the present wait; timers that were to end an older one are ignored
        self._for_mail = False
        self.still_until = 0.0  # paused until then, in virtual seconds, whatever comes

    def start(self) -> None:
        self._greenlet.switch()

    @property
    def alive(self) -> bool:
        """Whether it has been started and has not ended."""
        return bool(self._greenlet)

    # -- inside ----------------------------------------------------------------------------------------------

    def sleep(self, seconds: float) -> None:
        self._pause(seconds, for_mail=False)

    def wait_for_mail(self, seconds: float | None = None) -> None:
        """Waits until `mail` is called, or so many seconds."""
        self._pause(seconds, for_mail=True)

    def _pause(self, seconds: float | None, for_mail: bool) -> None:
        self._wait += 1
        self._for_mail = for_mail
        if seconds is not None:
            self._wake_after(seconds)
        parent = self._greenlet.parent
        assert parent is not None
        parent.switch()

    # -- outside: never from within another process -----------------------------------------------------------

    def mail(self) -> None:
        """Wakes the process if it is in `wait_for_mail`."""
        if self._for_mail:
            self._wake(self._wait)

    def interrupt(self, error: BaseException | None = None) -> None:
        """Raises an error in it, where it waits; without one it is killed."""
        if self.alive:
            self._wait += 1
            if error is None:
                self._greenlet.throw()
            else:
                self._greenlet.throw(error)

    def _wake_after(self, seconds: float) -> None:
        wait = self._wait
        self._time.at(seconds, lambda: self._wake(wait))

    def _wake(self, wait: int) -> None:
        if wait != self._wait or not self.alive:
            return
        if self._time.now < self.still_until:
            self._wake_after(self.still_until - self._time.now)
            return
        self._wait += 1
        self._greenlet.switch()


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs what is ready whenever the timeline does, and never waits itself. What becomes ready from outside, by a
    packet or an answer, runs in the next tick."""

    _ready: deque[asyncio.Handle]

    def __init__(self, time: Clock) -> None:
        super().__init__()
        self._clock = time
        self._turn_is_due = False

    def time(self) -> float:
        return self._clock.now

    def call_soon(self, callback: Callable[..., Any], *args: Any, context: Context | None = None) -> asyncio.Handle:  # type: ignore[override]
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        if not self._turn_is_due:
            self._turn_is_due = True
            self._clock.at(0.0, self.turn)
        return handle

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._clock.at(when - self._clock.now, lambda: self._come(handle))
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
