"""Locks of files and folders between processes. The kernel releases a lock when its process ends in any way.

`serene.topologies.processes.set_up_turn` has another kind of lock, one for each network namespace.
"""

from __future__ import annotations

import fcntl
import time
from typing import IO

AGAIN_S = 0.02  # between two attempts


def locked(file: int | IO[str] | IO[bytes], within_s: float | None = 0.0) -> bool:
    """Takes the lock of an open file or folder, and returns whether it succeeded in time. within_s: None waits without
    limit. The process has the lock until it closes the file. Raises OSError if the file system has no locks."""
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
