"""Since when a worker is silent: nothing that it did was counted, and nothing was reported by it.

A worker that waits retransmits, and is not silent; a worker that computes for long is silent, and so is a dead one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping

SPOKEN = ("contributions", "repeats", "blocked")  # counters of packets that a worker sent, not of those sent to it
UNHEARD_S = 1e5  # of one that was silent before anybody listened: longer than any wait for a silent worker


def spoken(counters: Mapping[str, int]) -> tuple[int, ...]:
    """What shows that a worker sends: its counts of SPOKEN. counters: packets by counter name."""
    return tuple(counters.get(name, 0) for name in SPOKEN)


class Silence:
    """Remembers when each worker was last heard, on the caller's clock."""

    def __init__(self) -> None:
        self._heard: dict[Hashable, tuple[object, float]] = {}
        self._presumed: set[Hashable] = set()  # silent, of those that are not in ``_heard`` yet

    def note(self, who: Hashable, sign: object, now: float) -> None:
        """Notes what shows that a worker sends; where it differs from the last note, the worker was heard at
        ``now``."""
        if who not in self._heard or self._heard[who][0] != sign:
            self._heard[who] = sign, now - UNHEARD_S if who in self._presumed else now
        self._presumed.discard(who)

    def presume(self, who: Hashable) -> None:
        """Takes it for silent until it shows a sign: it was before anybody listened."""
        self._presumed.add(who)

    def seconds(self, who: Hashable, now: float) -> float:
        """Seconds since a worker was heard; 0 while nothing is known of it."""
        if who in self._heard:
            return now - self._heard[who][1]
        return UNHEARD_S if who in self._presumed else 0.0

    def forget(self, whom: Callable[[Hashable], bool]) -> None:
        """Forgets the workers for which ``whom`` is true."""
        for who in [who for who in self._heard if whom(who)]:
            del self._heard[who]
        self._presumed = {who for who in self._presumed if not whom(who)}
