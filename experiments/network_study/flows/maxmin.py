"""Weighted max-min fair rates by progressive filling, on arrays.

The rates of all flows grow in proportion to their weights until a link is full or a flow has reached its limit. These
flows stop growing, and the others go on (Bertsekas and Gallager, Data Networks, 6.5.2).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TIGHT = 1e-12  # relative difference up to which links and limits count as reached at the same time


def rates(capacity: Floats, flow: Ints, link: Ints, share: Floats, weight: Floats, limit: Floats) -> Floats:
    """The flows' rates, in the unit of ``capacity``.

    ``flow``, ``link``, ``share``, shape (uses,): each use is of a link by a flow, which takes ``share`` times its rate
    there. ``capacity``, shape (links,). ``weight``, ``limit``, shape (flows,): weights are above zero, limits may be
    infinite if the flow uses a link.
    """
    rate = np.zeros(weight.size)
    growing = np.ones(weight.size, dtype=bool)
    left = capacity.astype(np.float64)
    level_at_limit = limit / weight
    level = 0.0  # the rate of every growing flow is level * weight
    while growing.any():
        load = np.bincount(link, share * weight[flow], minlength=capacity.size)  # of the growing flows
        used = load > 0
        level_at_full = np.full(capacity.size, np.inf)
        level_at_full[used] = level + left[used] / load[used]
        next_level = min(level_at_full.min(initial=np.inf), level_at_limit[growing].min())
        left -= load * (next_level - level)
        level = next_level
        stopped = growing & (level_at_limit <= level * (1 + TIGHT))
        full = level_at_full <= level * (1 + TIGHT)
        stopped[flow[full[link]]] = True  # only growing flows are left in these arrays
        left[full] = 0.0
        rate[stopped] = np.minimum(level * weight[stopped], limit[stopped])
        growing &= ~stopped
        keep = growing[flow]
        flow, link, share = flow[keep], link[keep], share[keep]
    return rate
