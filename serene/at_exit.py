"""How our programs end."""

from __future__ import annotations

import atexit
import gc


def leave_garbage() -> None:
    """At the end of this program nothing is collected: its memory goes back as a whole.

    Python would walk over all that was imported, several times: a third of what a short command costs.
    """
    atexit.register(gc.freeze)
