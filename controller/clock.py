"""The controller's clocks: wall time, which may be set, and a monotonic one."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Clock:
    """unix: seconds since 1970. steady: seconds from an arbitrary start, never set."""

    unix: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic


SYSTEM = Clock()
