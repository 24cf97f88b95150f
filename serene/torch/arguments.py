"""Checks of `DistributedOptimizer`'s arguments."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real

from serene.errors import SereneError

MOST_WORKERS = 256
LIMITS = (0.5, 2.0**30)
LONGEST_TIMEOUT_S = 1e6  # threads cannot wait for ever
EVICT_AFTER_S, LEAST_EVICT_AFTER_S, MOST_EVICT_AFTER_S = 10.0, 0.5, 86400.0


def check_types(whole: Mapping[str, object], real: Mapping[str, object]) -> None:
    """Raises SereneError for one that is neither None nor a number of that kind."""
    for name, value in whole.items():
        if value is not None and type(value) is not int:
            raise SereneError(f"{name}={value!r}: expected a whole number")
    for name, value in real.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, Real)):
            raise SereneError(f"{name}={value!r}: expected a number")


def check(job: str, workers: int, every: int, outer: float, limit: float | None, timeout_s: float) -> None:
    """Raises SereneError for impossible arguments."""
    if not (isinstance(job, str) and 0 < len(job) <= 64 and job.isprintable()):
        raise SereneError(f"job={job!r}: expected a name of 1 to 64 printable characters")
    if not 1 <= workers <= MOST_WORKERS:
        raise SereneError(f"workers={workers}: expected 1 to {MOST_WORKERS}")
    if every < 1:
        raise SereneError(f"every={every}: expected 1 or more")
    if not 0 <= outer < 1:
        raise SereneError(f"outer={outer}: expected 0 to less than 1")
    if limit is not None and not (math.isfinite(limit) and LIMITS[0] <= limit <= LIMITS[1]):
        raise SereneError(f"limit={limit}: expected {LIMITS[0]:g} to {LIMITS[1]:g}")
    if not 0 <= timeout_s <= LONGEST_TIMEOUT_S:
        raise SereneError(f"timeout_s={timeout_s}: expected 0 to {LONGEST_TIMEOUT_S:g} s")


def elastic(workers: int, places: int | None, minimum: int | None, evict_after: float | None) -> dict[str, int | float]:
    """The settings of workers that come and go; empty if they stay. Raises SereneError for impossible ones."""
    if places is None and minimum is None and evict_after is None:
        return {}
    places, minimum = places if places is not None else workers, minimum if minimum is not None else 1
    evict_after = EVICT_AFTER_S if evict_after is None else float(evict_after)
    if places < workers:  # the controller checks the switch's number of places
        raise SereneError(f"places={places}: expected {workers} or more, because workers={workers}")
    if not 1 <= minimum <= workers:
        raise SereneError(f"minimum={minimum}: expected 1 to {workers}, because workers={workers}")
    if not LEAST_EVICT_AFTER_S <= evict_after <= MOST_EVICT_AFTER_S:
        raise SereneError(f"evict_after={evict_after:g}: expected {LEAST_EVICT_AFTER_S:g} to {MOST_EVICT_AFTER_S:g} s")
    return {"places": places, "minimum": minimum, "evict_after": evict_after}
