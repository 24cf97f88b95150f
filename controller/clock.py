"""The clocks that the controller reads. Neither is ever set: a job that waits would wait for hours, or not at all."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from serene.clock import unix_s


@dataclass(frozen=True)
class Clock:
    """unix: seconds since 1970; steady: seconds since whenever."""

    unix: Callable[[], float] = unix_s
    steady: Callable[[], float] = time.monotonic


SYSTEM = Clock()
