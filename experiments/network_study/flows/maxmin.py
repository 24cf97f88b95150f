"""Weighted max-min fair rates by progressive filling, on arrays.

All rates grow together, each flow's in proportion to its weight, until a link is full or a flow at its limit; the
flows concerned stop there, the others grow on (Bertsekas and Gallager, Data Networks, 6.5.2).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TIGHT = 1e-12  # relative: links and limits reached so close together are reached together


def rates(capacity: Floats, flow: Ints, link: Ints, share: Floats, weight: Floats, limit: Floats) -> Floats:
    """The flows' rates, in the unit of ``capacity``.

    ``flow``, ``link``, ``share``, shape (uses,): this flow takes ``share`` times its rate of this link. ``capacity``,
    shape (links,). ``weight`` and ``limit``, shape (flows,): weights above zero; a limit may be infinite, but then
    the flow has to use a link.
    """
    rate = np.zeros(weight.size)
    growing = np.ones(weight.size, dtype=bool)
    left = capacity.astype(np.float64)
    level_at_limit = limit / weight
    level = 0.0  # a growing flow's rate is level * weight
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
