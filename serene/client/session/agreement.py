"""How much of a gradient's worth one update leaves, measured while a worker trains.

A worker's gradient agrees with what the others contribute for the same parameters, as far as the batches' noise lets
it. Its next gradient is for parameters that have moved by that update: what is left of the agreement says what a
gradient is worth that comes one update late. Where the learning rate is near its limit, training oscillates: gradients
turn against the last update, and late ones do harm. This is the lag-1 autocorrelation of the gradients, without the
batches' noise.
"""

from __future__ import annotations

import numpy as np

from serene.report import Report

SAMPLED = 4096  # values of a vector that are compared, so that it costs microseconds


class Agreement:
    """Sums over a worker's exchanges of two cosines, -1 to 1. before: of its gradient with the sum of the others' in
    the same exchange. after: of its next gradient with that sum. exchanges: over how many the sums are."""

    def __init__(self) -> None:
        self.before = self.after = 0.0
        self.exchanges = 0
        self._places: np.ndarray | None = None
        self._last: tuple[float, np.ndarray] | None = None

    def note(self, gradient: np.ndarray, delta: np.ndarray) -> None:
        """Takes note of an exchange. gradient, delta: float32[n], what was contributed and the sum that was read, with
        the own gradient in it; or int32[n], both in units."""
        if self._places is None:
            random = np.random.default_rng(0)
            self._places = np.sort(random.choice(len(gradient), min(SAMPLED, len(gradient)), replace=False))
        own = gradient[self._places].astype(np.float64)
        if self._last is not None:
            before, others = self._last
            self.before, self.after = self.before + before, self.after + _cosine(own, others)
            self.exchanges += 1
        others = delta[self._places] - own
        self._last = _cosine(own, others), others

    def facts(self) -> Report:
        """For a worker's reports; empty while nothing is known."""
        return {"agreement": self.before, "agreement_after": self.after} if self.exchanges else {}


def _cosine(one: np.ndarray, other: np.ndarray) -> float:
    """0 for a vector of zeros."""
    lengths = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / lengths if lengths else 0.0
