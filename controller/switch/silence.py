"""The time since which a worker is silent: no counter of its packets has changed, and it has not reported.

A waiting worker retransmits, so it is not silent. A worker that computes for long is silent; so is a dead one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping

SPOKEN = ("contributions", "repeats", "blocked")  # counters of packets that a worker sends, not of packets to it
UNHEARD_S = 1e5  # of a worker that was silent from the beginning: longer than any wait for a silent worker


def spoken(counters: Mapping[str, int]) -> tuple[int, ...]:
    """The counters that show that a worker sends, SPOKEN. counters: packets by counter name."""
    return tuple(counters.get(name, 0) for name in SPOKEN)


class Silence:
    """Stores each worker's last sign of life, on the caller's clock."""

    def __init__(self) -> None:
        self._heard: dict[Hashable, tuple[object, float]] = {}
        self._presumed: set[Hashable] = set()  # silent workers that are not in ``_heard`` yet

    def note(self, who: Hashable, sign: object, now: float) -> None:
        """Stores a worker's sign of life. If it differs from the last one, the worker has sent something at ``now``."""
        if who not in self._heard or self._heard[who][0] != sign:
            self._heard[who] = sign, now - UNHEARD_S if who in self._presumed else now
        self._presumed.discard(who)

    def presume(self, who: Hashable) -> None:
        """Counts it as silent until its first sign of life."""
        self._presumed.add(who)

    def seconds(self, who: Hashable, now: float) -> float:
        """Seconds since a worker's last sign of life; 0 while nothing is known of it."""
        if who in self._heard:
            return now - self._heard[who][1]
        return UNHEARD_S if who in self._presumed else 0.0

    def forget(self, whom: Callable[[Hashable], bool]) -> None:
        """Forgets the workers for which ``whom`` is true."""
        for who in [who for who in self._heard if whom(who)]:
            del self._heard[who]
        self._presumed = {who for who in self._presumed if not whom(who)}
