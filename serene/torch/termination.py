"""A program that is ended by SIGTERM, or by the SIGHUP of its terminal, first leaves its jobs.

torchrun, SLURM and Kubernetes end programs so. Without a handler such a signal ends a program at once, and the other
workers wait for it. Here a signal without a handler gets one while the program is in a job. It leaves the jobs, within
seconds, and then lets the signal end the program: the exit status stays the signal's. A program's own handler is kept,
also one that is set later; what it does about the jobs is its own matter (an exception leaves them).
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGHUP)

# A handler runs between any two instructions of the main thread. So there is no lock: each access is one operation.
_leave: dict[object, Callable[[], None]] = {}


def begin(member: object, leave: Callable[[], None]) -> None:
    """``leave`` is called if a signal ends the program. It must not take a lock that another call may hold in the same
    thread. Only the main thread can set handlers; from another one this has an effect if a handler is set already."""
    _leave[member] = leave
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _end)


def end(member: object) -> None:
    """The member has left by itself."""
    _leave.pop(member, None)
    if not _leave:
        _restore()


def forget() -> None:
    """In a forked process, which is in no job."""
    _leave.clear()
    _restore()


def _restore() -> None:
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            if signal.getsignal(number) is _end:
                signal.signal(number, signal.SIG_DFL)


def _end(number: int, frame: FrameType | None) -> None:
    """Leaves all jobs, then ends the program as if there were no handler."""
    # A launcher may signal a program twice: SLURM and systemd signal torchrun's workers, and so does torchrun. The
    # second signal, of any kind, must not end the program before it has left; that takes only seconds.
    for each in (*SIGNALS, signal.SIGINT):
        if signal.getsignal(each) in (_end, signal.default_int_handler):
            signal.signal(each, lambda *_: None)
    # If the signal also ends the processes of a DataLoader, PyTorch's handler of SIGCHLD raises an error here.
    signal.signal(signal.SIGCHLD, lambda *_: None)
    try:
        while _leave:
            _, leave = _leave.popitem()
            with suppress(Exception):  # nobody could handle it, and the program must end
                leave()
    finally:  # also after an exit that the program's own handler of another signal raises
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
