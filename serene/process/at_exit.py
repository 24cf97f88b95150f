"""How Serene's programs end."""

from __future__ import annotations

import atexit
import gc


def leave_garbage() -> None:
    """Skips garbage collection when this program ends, since its memory is returned as a whole.

    Python would traverse everything imported, several times: a third of a short command's time.
    """
    atexit.register(gc.freeze)
