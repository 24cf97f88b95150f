"""Measures, during training, how much a gradient still agrees with others after one update.

A worker's gradient agrees with the others' gradients for the same parameters, except for the batches' noise. Its next
gradient is for parameters that have moved by that update. The remaining agreement measures the effect of a gradient
that comes one update late. Where the learning rate is near its limit, training oscillates: gradients turn against the
last update, and late ones do harm. This is the lag-1 autocorrelation of the gradients, without the batches' noise.
"""

from __future__ import annotations

import numpy as np

from serene.report import Report

SAMPLED = 4096  # compared values of a vector, so that it costs microseconds


class Agreement:
    """Sums over a worker's exchanges of two cosines, -1 to 1. before: of its gradient with the sum of the others' in
    the same exchange. after: of its next gradient with that sum. exchanges: their number."""

    def __init__(self) -> None:
        self.before = self.after = 0.0
        self.exchanges = 0
        self._places: np.ndarray | None = None
        self._last: tuple[float, np.ndarray] | None = None

    def sample(self, vector: np.ndarray) -> np.ndarray:
        """A copy of at most SAMPLED values, from the same places of each vector."""
        if self._places is None:
            random = np.random.default_rng(0)
            self._places = np.sort(random.choice(len(vector), min(SAMPLED, len(vector)), replace=False))
        sampled: np.ndarray = vector[self._places]
        return sampled

    def note(self, gradient: np.ndarray, delta: np.ndarray) -> None:
        """Adds an exchange. gradient, delta: samples of the contribution and of the read sum, which includes it: both
        float32, or int32 in units."""
        own = gradient.astype(np.float64)
        if self._last is not None:
            before, others = self._last
            self.before, self.after = self.before + before, self.after + _cosine(own, others)
            self.exchanges += 1
        others = delta - own
        self._last = _cosine(own, others), others

    def facts(self) -> Report:
        """Fields for a worker's reports; empty while nothing is known."""
        return {"agreement": self.before, "agreement_after": self.after} if self.exchanges else {}


def _cosine(one: np.ndarray, other: np.ndarray) -> float:
    """0 for a vector of zeros."""
    lengths = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / lengths if lengths else 0.0
