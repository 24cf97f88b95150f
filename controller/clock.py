"""The clocks that the controller reads: one that may be set, and one that only goes forward."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Clock:
    """unix: seconds since 1970; steady: seconds since whenever, never set."""

    unix: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic


SYSTEM = Clock()
