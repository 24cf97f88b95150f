"""Unix time from a clock that cannot be set.

If the system clock is set during a training, the training would seem hours long, or to end before it began. So this
module compares the system clock with a monotonic one once, when it is imported. Processes that are forked afterwards,
such as a run's workers, have the same time.
"""

from __future__ import annotations

import time

# Unlike the monotonic clock, this one continues while the machine sleeps.
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_AHEAD_S = time.time() - time.clock_gettime(_STEADY)


def unix_s() -> float:
    """Seconds since 1970, as if the system clock had not been set since this module was imported."""
    return _AHEAD_S + time.clock_gettime(_STEADY)
