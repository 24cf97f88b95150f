"""Queues in virtual time, which serve one packet at a time, in the order of arrival."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass
class Queue:
    """The queue of a link or a switch, without a limit. service_s: seconds that it takes for each packet. through_s:
    how long after its arrival a packet leaves at the earliest. It is less than service_s for a packet that stands for
    many that come one after another: the first of them go on while the last ones are still on their way here."""

    service_s: float
    through_s: float | None = None
    _free_at: float = field(default=0.0, init=False)

    def serve(self, ready: np.ndarray, parts: np.ndarray | float = 1.0) -> np.ndarray:
        """When packets leave, float64[n], that arrive at these times, float64[n], ascending. parts: what part of
        service_s each of them takes, float64[n] or one number, 0 to 1."""
        if not self.service_s or not ready.size:
            return ready
        takes = np.broadcast_to(self.service_s * np.asarray(parts), ready.shape)
        through = takes if self.through_s is None else np.minimum(takes, self.through_s)
        before = np.cumsum(takes) - takes
        # A packet begins when the last one is through, or so early that it leaves in time after its arrival.
        begins = np.maximum.accumulate(np.maximum(ready + through - takes, self._free_at) - before) + before
        left = begins + takes
        self._free_at = float(left[-1])
        return np.asarray(left)
