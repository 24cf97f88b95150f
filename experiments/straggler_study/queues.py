"""Queues in virtual time, which serve one packet at a time, in the order of arrival."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass
class Queue:
    """The queue of a link or a switch, without a limit. ``service_s``: seconds that it takes for each packet."""

    service_s: float
    _free_at: float = field(default=0.0, init=False)

    def serve(self, ready: np.ndarray) -> np.ndarray:
        """When packets leave, float64[n], that arrive at these times, float64[n], ascending."""
        if not self.service_s or not ready.size:
            return ready
        order = np.arange(ready.size) * self.service_s
        left = np.maximum.accumulate(np.maximum(ready, self._free_at) - order) + order + self.service_s
        self._free_at = float(left[-1])
        return np.asarray(left)
