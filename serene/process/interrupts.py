"""Restricts the places where Ctrl-C, SIGTERM, and a closed terminal's SIGHUP interrupt a program.

A signal handler may raise between any two instructions: in the middle of an operation, or during clean-up. So a program
that has to clean up runs in ``ended``. There the first signal raises Interrupted, and no later signal disturbs the
clean-up. A block that must not be interrupted runs in ``held``. Inside it, interrupts are only raised in ``allowed``
blocks, where the program waits.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STATUS = 128 + signal.SIGINT
AGAIN_S = 0.05  # before a signal is sent again whose exception Python has dropped


class Interrupted(KeyboardInterrupt):
    """A signal has interrupted the program. number: the signal's."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


class _Interrupts:
    """The interrupts of a program's main thread. Python runs signal handlers only there."""

    def __init__(self) -> None:
        self.held = False
        self.was_raised = False
        self._raised: int | None = None  # the signal whose interrupt was raised last
        self._waiting: int | None = None  # a signal that arrived in a `held` block
        self._terminals = [stream for stream in (1, 2) if os.isatty(stream)]

    def install(self) -> None:
        """Installs the handlers. Ignored signals stay ignored, such as after nohup or in a shell's background job."""
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._on_signal)
        sys.unraisablehook = self._send_again

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP and self._terminals:
            with open(os.devnull, "w") as nobody:  # writing to a closed terminal would fail
                for stream in self._terminals:
                    os.dup2(nobody.fileno(), stream)
        if self.held or (self.was_raised and number != signal.SIGINT):
            if not self.was_raised:
                self._waiting = number
            return
        self.held = self.was_raised = True
        self._raised = number
        raise Interrupted(number)

    def raise_again(self) -> None:
        """Raises the last interrupt again, which foreign code has caught. No later signal would end the program."""
        if self._raised is not None:
            raise Interrupted(self._raised)

    def raise_waiting(self) -> None:
        if not self.held and self._waiting is not None:
            number, self._waiting = self._waiting, None
            self._on_signal(number, None)

    def wake(self, descriptor: int) -> None:
        """Writes a byte to the descriptor when a signal arrives, and at once if one is waiting."""
        signal.set_wakeup_fd(descriptor, warn_on_full_buffer=False)
        if self._waiting is not None:
            os.write(descriptor, b"\0")

    def _send_again(self, unraisable: Any) -> None:
        """Sends the signal again if it interrupted a destructor or a callback, because Python drops such exceptions."""
        error = unraisable.exc_value
        if not isinstance(error, Interrupted):
            sys.__unraisablehook__(unraisable)
            return
        self.held = self.was_raised = False
        threading.Timer(AGAIN_S, os.kill, (os.getpid(), error.number)).start()


_current = _Interrupts()


class _Block:
    """A block in which interrupts wait, or in which they are raised."""

    def __init__(self, *, held: bool) -> None:
        self._held = held

    def __enter__(self) -> None:
        self._in_main_thread = threading.current_thread() is threading.main_thread()
        if self._in_main_thread:
            self._before, _current.held = _current.held, self._held
            _current.raise_waiting()

    def __exit__(self, *_: object) -> None:
        if self._in_main_thread:
            _current.held = self._before or _current.was_raised
            _current.raise_waiting()


def held() -> _Block:
    """``with held():`` interrupts are raised only at the end of the block."""
    return _Block(held=True)


def allowed() -> _Block:
    """``with allowed():`` interrupts are raised inside a ``held`` block. After the first interrupt, Ctrl-C is raised
    again."""
    return _Block(held=False)


def ended(main: Callable[[], int | None]) -> int:
    """Runs ``main`` so that signals interrupt it. Returns its exit status, or that of a process that a signal has
    ended."""
    global _current
    outside, hook = _current, sys.unraisablehook
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    _current = _Interrupts()
    try:
        _current.install()
        try:
            return main() or 0
        finally:
            _current.held = True  # ``main`` has ended, so there is nothing left to interrupt
    except Interrupted as interrupted:
        return 128 + interrupted.number
    except KeyboardInterrupt:
        return STATUS
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        _current, sys.unraisablehook = outside, hook


def coming() -> int:
    """A descriptor that becomes readable when an interrupt arrives, for a program that waits for several descriptors.
    Call it in a ``held`` block, and once in a program.

    Python runs its handlers when the main thread next executes an instruction. If a signal arrived just before the
    wait, or in another thread, the handler would run only after the wait.
    """
    readable, writable = os.pipe()
    os.set_blocking(writable, False)
    _current.wake(writable)
    return readable


def end_quietly() -> None:
    """Makes Ctrl-C end the program without a traceback during its imports, which take seconds on a busy machine.
    Nothing has to be cleaned up yet."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: os._exit(STATUS))


class _TooLong(BaseException):
    """Not an Exception: foreign code may catch every Exception."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Interrupts a block of foreign code that takes longer. Raises TimeoutError after it, also if the code has caught
    the interrupt, or has raised an exception of its own; likewise Interrupted. Only the main thread has a limit."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    late, before = False, _current.was_raised

    def end(*_: object) -> None:
        nonlocal late
        late = True
        raise _TooLong

    handler, others = signal.signal(signal.SIGALRM, end), signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, handler)
            signal.setitimer(signal.ITIMER_REAL, *others)
    except Interrupted:
        raise
    except BaseException:
        if not late and _current.was_raised == before:
            raise
    if _current.was_raised and not before:
        _current.raise_again()
    if late:
        raise TimeoutError(f"no answer within {seconds:g} s")
