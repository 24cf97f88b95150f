"""Gradients as integers, which a switch adds exactly and in any order.

A contribution is ``round(g * scale)``, half to even, clipped at ``limit``. The error is at most 0.5 / scale for each
value that was not clipped. Sums are exact modulo 2**32. A difference of two reads is a signed 32-bit number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from serene.errors import SereneError

DEFAULT_SCALE = 2**20
DEFAULT_LIMIT = 8.0
LARGEST = 2**31 - 1
POOL_SCALE = 2**32 - 1  # means that each block has its own scale; larger than any job's scale


class BadGradient(SereneError):
    """A gradient contains NaN or an infinity."""


@dataclass(frozen=True)
class FixedPoint:
    """The mapping between float32 and int32. ``scale``: units in 1.0; ``limit``: the largest |value| that is not
    clipped."""

    scale: int = DEFAULT_SCALE
    limit: float = DEFAULT_LIMIT

    def __post_init__(self) -> None:
        if self.scale < 1 or not self.limit > 0:
            raise SereneError(f"scale {self.scale} and limit {self.limit}: both must be positive")
        if self.scale * self.limit > LARGEST:
            largest = int(LARGEST / self.limit)
            raise SereneError(f"scale {self.scale} with limit {self.limit} exceeds 32 bits; the largest is {largest}")

    @classmethod
    def of(cls, workers: int) -> FixedPoint:
        """The default mapping. For many workers its scale is a smaller power of two, so that a sum of one contribution
        of each fits."""
        scale = DEFAULT_SCALE
        while cls(scale).capacity < workers and scale > 1:
            scale //= 2
        return cls(scale)

    @property
    def capacity(self) -> int:
        """The number of contributions that a difference of two reads can certainly hold."""
        return int(LARGEST / (self.scale * self.limit))

    def quantise(self, gradient: np.ndarray) -> tuple[np.ndarray, int]:
        """float32[n] to (int32[n], number of values clipped). Raises BadGradient for NaN and infinities."""
        if not np.isfinite(gradient).all():
            at = int(np.flatnonzero(~np.isfinite(gradient))[0])
            raise BadGradient(f"the gradient is {gradient[at]} at index {at}: only finite numbers can be added up")
        clipped = int(np.count_nonzero(np.abs(gradient) > self.limit))
        scaled = np.clip(gradient.astype(np.float64), -self.limit, self.limit) * self.scale
        return np.rint(scaled).astype(np.int32), clipped

    def dequantise(self, difference: np.ndarray) -> np.ndarray:
        """int32[n], a difference of two reads, to float32[n]."""
        return (difference.astype(np.float64) / self.scale).astype(np.float32)
