"""SIGINT and SIGTERM as a file descriptor to wait for."""

from __future__ import annotations

import os
import signal


def ending_signals() -> int:
    """A descriptor that becomes readable when SIGINT or SIGTERM comes; for the main thread, once.

    Python's own handlers run when the main thread next does something: one that came just before it began to wait, or
    to another thread, would be heard of only when the wait is over.
    """
    heard, tell = os.pipe()
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    return heard
