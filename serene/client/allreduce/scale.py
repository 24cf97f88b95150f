"""The rules that turn gradient values into integers: voted, fixed by the user, or IntSGD's.

*Voted*: each block of a collective has its own scale, which the workers find by exponent pieces (blocks.py). *Fixed*:
the user names a limit, and all gradients of a training have one scale. *IntSGD*: a step's gradients have one scale,
which follows from the sums of the steps before, without communication.

A given scale (fixed or IntSGD's) is a power of two. Values beyond its limit are clipped; with error feedback the rest
goes into the residual, up to `HELD_LIMITS` limits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from serene.errors import SereneError, choices

RULES = ("voted", "fixed:LIMIT", "intsgd")
LIMITS = (1e-25, 1e25)  # the smallest and the largest of a fixed scale
UNITS = (-140, 90)  # log2 of the smallest and largest unit: sums of 32 workers, and residuals, then fit float32
HELD_LIMITS = 2.0**22  # in 32 bits a limit is less than 2^31 units, and float64 counts up to 2^53 units exactly


class BadScale(SereneError):
    """An unknown rule, or a limit outside LIMITS; the message names the valid ones."""


@dataclass(frozen=True)
class Scale:
    """rule: "voted", "fixed" or "intsgd". limit: of a fixed scale; values up to it are not clipped."""

    rule: str = "voted"
    limit: float = math.inf

    @classmethod
    def of(cls, text: str) -> Scale:
        """From text: "voted", "fixed:0.5" or "intsgd". Raises BadScale."""
        rule, _, number = text.partition(":")
        if text in ("voted", "intsgd"):
            return cls(rule)
        try:
            limit = float(number)
        except ValueError:
            limit = math.nan
        if rule != "fixed" or not LIMITS[0] <= limit <= LIMITS[1]:
            raise BadScale(f"expected {choices(RULES)}, with a limit from {LIMITS[0]:g} to {LIMITS[1]:g}")
        return cls(rule, limit)

    def __str__(self) -> str:
        return f"fixed:{self.limit:.9g}" if self.rule == "fixed" else self.rule


def unit_for(limit: float, most: float) -> int:
    """log2 of the finest unit, within UNITS, in which ``limit`` is at most ``most`` units. Raises BadScale."""
    if not LIMITS[0] <= limit <= LIMITS[1]:
        raise BadScale(f"a limit of {limit:g}: expected {LIMITS[0]:g} to {LIMITS[1]:g}")
    fraction, exponent = math.frexp(limit / most)
    return min(max(exponent - (fraction == 0.5), UNITS[0]), UNITS[1])


class IntSGD:
    """The rule of Mishchenko, Wang, Kovalev and Richtárik, "IntSGD: Adaptive Floatless Compression of Stochastic
    Gradients" (ICLR 2022; arXiv 2102.08374), for n workers and a gradient of d values:

        alpha = sqrt(d / (2 n r + epsilon^2)),   r = beta r' + (1 - beta) |g|^2

    where g is the last step's gradient, the mean over the workers as they have read it, and r' is the previous step's
    r. A value is multiplied by alpha and rounded at random. The paper has the step of the parameters in place of g, and
    multiplies alpha by the learning rate. For SGD at a constant rate that is the same, and a process group does not
    know the rate. (The authors' program also uses g.)

    - alpha is rounded up to a power of two: random rounding then adds no more variance than the paper allows.
    - The paper sends the first step exactly, because no step precedes it. Here it is sent in 32 bits with voted scales.
      r begins with its |g|^2.
    - If a gradient suddenly exceeds the range of so few bits, its values are clipped, counted and reported. The next
      step's scale follows from the sum that was read. With error feedback the rest goes into the residual.
    - A collective with a sum that is not finite does not count in g. A step whose sums are all zero changes nothing.

    All workers read the same sums, to the bit, so they compute the same scale. Otherwise the collective's
    signatures would differ and it would raise Disagreement. Not thread-safe.
    """

    BETA = 0.9
    EPSILON = 1e-8

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._mean_square = 0.0  # r / d
        self._squares, self._values = 0.0, 0  # of this step, so far: |g|^2 and d
        self.unit: int | None = None  # log2 of 1 / alpha; None before the first step's end

    def add(self, sums: np.ndarray) -> None:
        """Adds a part of this step's gradient, float32[n], as read: the sum over all workers."""
        squares = float(np.square(sums, dtype=np.float64).sum()) / self._workers**2
        if math.isfinite(squares):
            self._squares += squares
            self._values += len(sums)

    def end_step(self) -> None:
        """Ends a step: ``unit`` is that of the next one."""
        if self._squares:
            found = self._squares / self._values
            before = self._mean_square or found
            self._mean_square = self.BETA * before + (1 - self.BETA) * found
            step = math.sqrt(2 * self._workers * self._mean_square + self.EPSILON**2 / self._values)
            self.unit = min(max(math.frexp(step)[1] - 1, UNITS[0]), UNITS[1])
        self._squares, self._values = 0.0, 0
