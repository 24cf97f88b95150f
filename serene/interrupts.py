"""Ctrl-C while a program is still being imported, which takes seconds on a busy machine."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

STATUS = 128 + signal.SIGINT


@contextmanager
def end_quietly() -> Iterator[None]:
    """SIGINT ends the process with this status and no traceback: nothing has begun that would have to be ended.

    A SIGINT that is ignored, as in what a shell runs in the background, stays so.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: os._exit(STATUS))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
