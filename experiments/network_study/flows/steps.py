"""Schedules: one step after another, each with flows that start together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serene.errors import SereneError
from serene.experiments.network_study.flows.clos import Ints

Floats = NDArray[np.float64]


class BadStep(SereneError):
    """A step's ends, sizes or limits are invalid; the message says what is valid."""


@dataclass(frozen=True)
class Step:
    """Flows that start at the same time. The step ends when the last of them does.

    ``source``, ``target``: nodes, int64[flows]. ``size``: in bytes, one for all flows or float64[flows]. ``limit``: of
    each flow's rate, in bytes/s, by the sender's window. ``times``: how often the step is repeated. ``delay``: seconds
    that are added once. Raises BadStep.
    """

    source: Ints
    target: Ints
    size: Floats | float
    limit: float = np.inf
    times: int = 1
    delay: float = 0.0

    def __post_init__(self) -> None:
        if self.source.shape != self.target.shape or self.source.ndim != 1 or not self.source.size:
            raise BadStep(f"sources {self.source.shape}, targets {self.target.shape}; expected as many, at least one")
        if np.any(~np.isfinite(self.size)) or np.min(self.size) <= 0:
            raise BadStep("a flow's size must be a positive number of bytes")
        if not self.limit > 0 or self.times < 1 or not 0 <= self.delay < np.inf:
            raise BadStep(f"limit {self.limit:g}, times {self.times}, delay {self.delay:g}; expected > 0, >= 1, >= 0")

    @property
    def sizes(self) -> Floats:
        """The size of each flow in bytes, float64[flows]."""
        return np.broadcast_to(np.asarray(self.size, dtype=np.float64), self.source.shape)


Schedule = Iterable[Step]
