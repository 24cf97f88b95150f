"""Where a program may be interrupted: by Ctrl-C, by SIGTERM, and by the SIGHUP of a terminal that goes away.

A signal's handler that raises does so between any two instructions: where one half of something is done, and in the
midst of clearing up. So a program that has something to clear up runs in ``ended``. An interrupt comes once there, as
Interrupted; from then on nothing disturbs the clearing up. What has to be done as a whole is ``held``, and in it the
interrupt comes only where it is ``allowed``, while the program waits for something.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STATUS = 128 + signal.SIGINT
AGAIN_S = 0.05  # until an interrupt that came where Python drops exceptions is sent again


class Interrupted(KeyboardInterrupt):
    """By this signal."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


class _Interrupts:
    """A program's; of its main thread, which is the one that Python interrupts."""

    def __init__(self) -> None:
        self.held = False
        self.has_come = False
        self._waiting: int | None = None  # a signal that came while they were held
        self._terminals = [stream for stream in (1, 2) if os.isatty(stream)]

    def take(self) -> None:
        """Signals that are ignored, as after nohup or in what a shell runs in the background, stay so."""
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._come)
        sys.unraisablehook = self._dropped

    def _come(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP and self._terminals:
            with open(os.devnull, "w") as nobody:  # what is said to a terminal that is gone fails
                for stream in self._terminals:
                    os.dup2(nobody.fileno(), stream)
        if self.held or (self.has_come and number != signal.SIGINT):
            if not self.has_come:
                self._waiting = number
            return
        self.held = self.has_come = True
        raise Interrupted(number)

    def come_if_due(self) -> None:
        if not self.held and self._waiting is not None:
            number, self._waiting = self._waiting, None
            self._come(number, None)

    def wake(self, descriptor: int) -> None:
        """By a byte, as soon as one waits."""
        signal.set_wakeup_fd(descriptor, warn_on_full_buffer=False)
        if self._waiting is not None:
            os.write(descriptor, b"\0")

    def _dropped(self, unraisable: Any) -> None:
        """A destructor was interrupted, or a callback: nobody has heard of it."""
        error = unraisable.exc_value
        if not isinstance(error, Interrupted):
            sys.__unraisablehook__(unraisable)
            return
        self.held = self.has_come = False
        threading.Timer(AGAIN_S, os.kill, (os.getpid(), error.number)).start()


_now = _Interrupts()


class _Within:
    """A block in which interrupts wait, or do not."""

    def __init__(self, *, held: bool) -> None:
        self._held = held

    def __enter__(self) -> None:
        self._ours = threading.current_thread() is threading.main_thread()
        if self._ours:
            self._before, _now.held = _now.held, self._held
            _now.come_if_due()

    def __exit__(self, *_: object) -> None:
        if self._ours:
            _now.held = self._before or _now.has_come
            _now.come_if_due()


def held() -> _Within:
    """``with held():`` an interrupt waits for the end of the block."""
    return _Within(held=True)


def allowed() -> _Within:
    """``with allowed():`` an interrupt may come in a block that is held; and, after one has come, another Ctrl-C."""
    return _Within(held=False)


def ended(main: Callable[[], int | None]) -> int:
    """Runs what may be interrupted; its exit status, or that of a process which a signal has ended."""
    global _now
    outside, hook = _now, sys.unraisablehook
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    _now = _Interrupts()
    try:
        _now.take()
        try:
            return main() or 0
        finally:
            _now.held = True  # there is nothing left that one that comes now could end
    except Interrupted as interrupted:
        return 128 + interrupted.number
    except KeyboardInterrupt:
        return STATUS
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        _now, sys.unraisablehook = outside, hook


def coming() -> int:
    """A descriptor that becomes readable when an interrupt comes, for who waits for other things, too: while they are
    held, and once in a program.

    Python's own handlers run when the main thread next does something: of one that came just before it began to wait,
    or to another thread, it would hear only when the wait is over.
    """
    heard, tell = os.pipe()
    os.set_blocking(tell, False)
    _now.wake(tell)
    return heard


def end_quietly() -> None:
    """While a program is imported, which takes seconds on a busy machine, Ctrl-C ends it with its status and no
    traceback: nothing has begun that would have to be ended."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: os._exit(STATUS))
