"""Locks of files and folders between processes. The kernel releases one when its holder ends, however it ends.

Beside these there is `serene.topologies.processes.set_up_turn`, whose lock is one for each network namespace.
"""

from __future__ import annotations

import fcntl
import time
from typing import IO

AGAIN_S = 0.02  # between two attempts


def locked(file: int | IO[str] | IO[bytes], within_s: float | None = 0.0) -> bool:
    """Whether this process got the lock of an open file or folder within the time (None: it waits as long as it takes).
    It keeps the lock until it closes the file. Raises OSError where the file system has no locks."""
    if within_s is None:
        fcntl.flock(file, fcntl.LOCK_EX)
        return True
    end = time.monotonic() + within_s
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= end:
                return False
        time.sleep(AGAIN_S)
