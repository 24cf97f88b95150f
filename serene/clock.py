"""Unix time from a clock that nobody sets.

A clock that is set in the middle of a training would make it hours long, or end before it began. The two clocks are
compared when this module is imported; processes that are forked afterwards, as a run's workers are, have the same time.
"""

from __future__ import annotations

import time

# Other than the monotonic clock, this one goes on while the machine sleeps.
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_AHEAD_S = time.time() - time.clock_gettime(_STEADY)


def unix_s() -> float:
    """Seconds since 1970, as if the machine's clock had not been set since."""
    return _AHEAD_S + time.clock_gettime(_STEADY)
