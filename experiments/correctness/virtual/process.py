"""Processes in virtual time: blocking code that runs until it waits, and continues when what it waits for has come.

A process is a greenlet. So a worker can be `serene.client.Client` as it is, with its loops and exceptions, and a
controller can die between two writes, in the middle of the function that makes them.
"""

from __future__ import annotations

from collections.abc import Callable

import greenlet

from serene.experiments.correctness.virtual.timeline import Timeline


class Process:
    """A process that runs ``body``, from `start` on. An exception that it does not catch is raised in the caller of the
    method that made it continue."""

    def __init__(self, time: Timeline, body: Callable[[], None]) -> None:
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
