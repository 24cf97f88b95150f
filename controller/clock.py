"""The clocks that the controller reads. Setting the machine's clock changes neither."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from serene.clock import unix_s


@dataclass(frozen=True)
class Clock:
    """unix: seconds since 1970. steady: seconds from an arbitrary start, never set."""

    unix: Callable[[], float] = unix_s
    steady: Callable[[], float] = time.monotonic


SYSTEM = Clock()
