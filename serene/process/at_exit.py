"""How Serene's programs end."""

from __future__ import annotations

import atexit
import gc


def leave_garbage() -> None:
    """Skips garbage collection when this program ends: the kernel frees all its memory anyway.

    Python would traverse all imported objects several times, which takes a third of a short command's time.
    """
    atexit.register(gc.freeze)
