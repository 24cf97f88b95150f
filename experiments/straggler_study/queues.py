"""Queues that delay packets: they serve one packet at a time, in the order of arrival."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass
class Queue:
    """A link or a switch: ``service_s`` seconds for each packet, no limit to the queue."""

    service_s: float
    _free_at: float = field(default=0.0, init=False)

    def serve(self, ready: np.ndarray) -> np.ndarray:
        """When packets leave that are ready at these times. float64[n], ascending, to float64[n]."""
        if not self.service_s or not ready.size:
            return ready
        order = np.arange(ready.size) * self.service_s
        left = np.maximum.accumulate(np.maximum(ready, self._free_at) - order) + order + self.service_s
        self._free_at = float(left[-1])
        return np.asarray(left)
