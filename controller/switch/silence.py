"""What it means that a worker is silent: nothing was counted that it did, and nothing has been reported by it.

A worker that waits asks again and again, and is not silent; one that computes for long is, and one that is dead.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping

SPOKEN = ("contributions", "repeats", "blocked")  # counters of what a worker does, not of what is done to it


def spoken(counters: Mapping[str, int]) -> tuple[int, ...]:
    """What a worker has done so far: packets by counter name."""
    return tuple(counters.get(name, 0) for name in SPOKEN)


class Silence:
    """Remembers when each worker last gave a sign. Its clock is the caller's."""

    def __init__(self) -> None:
        self._heard: dict[Hashable, tuple[object, float]] = {}

    def note(self, who: Hashable, sign: object, now: float) -> None:
        """What there is of a worker; when it differs from what there was, it has been heard."""
        if who not in self._heard or self._heard[who][0] != sign:
            self._heard[who] = sign, now

    def seconds(self, who: Hashable, now: float) -> float:
        """Since it was heard; 0 while nothing is known of it."""
        return now - self._heard[who][1] if who in self._heard else 0.0

    def forget(self, whom: Callable[[Hashable], bool]) -> None:
        for who in [who for who in self._heard if whom(who)]:
            del self._heard[who]
