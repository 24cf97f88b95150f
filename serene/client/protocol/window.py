"""A worker's window and retransmission timeout.

The window grows by one for every answered window of slots, and halves when packets were lost, at most once a round trip
(AIMD). The timeout follows RFC 6298. Only slots sent once are measured (Karn), and only by answers that echo the PUSH:
a release measures the others' time, not the distance of the switch.
"""

from __future__ import annotations

from dataclasses import dataclass, field

SMALLEST_WINDOW = 4
LARGEST_WINDOW = 256
FIRST_TIMEOUT_S = 0.1
SHORTEST_TIMEOUT_S = 0.02
LONGEST_TIMEOUT_S = 0.5  # also while blocked at the barrier: a swap is detected within this time


@dataclass
class Window:
    """``size``: the number of slots that may be in flight."""

    size: float = 32.0
    largest: float = LARGEST_WINDOW
    _next_cut: float = field(default=0.0, init=False)

    def answered(self, slots: int) -> None:
        """This number of slots was answered: the window grows."""
        self.size = min(self.size + slots / self.size, self.largest)

    def lost(self, now: float, round_trip_s: float) -> None:
        """Packets were lost: the window halves, unless it did so within the last ``round_trip_s`` seconds."""
        if now >= self._next_cut:
            self.size = max(self.size / 2, SMALLEST_WINDOW)
            self._next_cut = now + round_trip_s


@dataclass
class RoundTrip:
    """Smoothed round-trip time and the retransmission timeout, in seconds."""

    smoothed: float | None = field(default=None, init=False)
    variation: float = field(default=0.0, init=False)
    backoff: int = field(default=0, init=False)

    def measured(self, sample: float) -> None:
        """One round trip took ``sample`` seconds."""
        if self.smoothed is None:
            self.smoothed, self.variation = sample, sample / 2
        else:
            self.variation += (abs(sample - self.smoothed) - self.variation) / 4
            self.smoothed += (sample - self.smoothed) / 8

    @property
    def timeout(self) -> float:
        """Seconds without an answer after which packets are retransmitted."""
        base = FIRST_TIMEOUT_S
        if self.smoothed is not None:
            base = max(self.smoothed + 4 * self.variation, SHORTEST_TIMEOUT_S)
        return min(base * (1 << self.backoff), LONGEST_TIMEOUT_S)

    def timed_out(self) -> None:
        """Nothing came within the timeout: it doubles."""
        self.backoff = min(self.backoff + 1, 16)

    def progressed(self) -> None:
        """An answer came: the timeout is not prolonged any more."""
        self.backoff = 0
