"""The simulator beside the emulated network: the same all-reduce over a star of 4 to 16 Mininet hosts and in the
solver.

Ours goes through the embedded switch, gloo's ring through a Linux bridge; links are shaped to 100 Mbit/s. The simulator
gets the links and nothing else: latency zero, what is left of a frame without its headers, no constants fitted.
"""

from __future__ import annotations

import os
import shutil
import statistics
from dataclasses import replace
from functools import partial
from typing import Any

from experiments.network_study.cells import CONDITIONS, our_switch
from experiments.network_study.exchange import Exchange
from experiments.network_study.flows import solver
from experiments.network_study.flows.clos import Clos
from experiments.network_study.flows.model import IDEAL, Model
from experiments.network_study.schedules import leaf_spine_aggregation, ring
from experiments.shared.machine import observed

WORKERS = (4, 8, 16)
VALUES = 100_000
LINK_MBIT = 100.0
TCP_PAYLOAD, FRAME = 1448, 1514  # of a full TCP segment, and with its headers as the link's limit counts them
FIXED_POINT_BYTES = 4


def why_not() -> str:
    """Why there is nothing to measure on this machine; empty if there is."""
    if os.geteuid() != 0:
        return "emulated hosts need root"
    return "" if shutil.which("mn") else "Mininet is not installed"


def simulated(workers: int) -> tuple[float, float]:
    """Seconds in the simulator: through the switch, and as a ring."""
    ports = max(2 * workers, 4)
    star = Clos(2, ports, 1, bandwidth=LINK_MBIT * 1e6 / 8, switch_latency=0.0)
    exchange = Exchange(star, VALUES * FIXED_POINT_BYTES, our_switch())
    tcp: Model = replace(IDEAL, name="TCP payload", bandwidth_factor=TCP_PAYLOAD / FRAME)
    return solver.run(star, leaf_spine_aggregation(exchange), IDEAL), solver.run(star, ring(exchange), tcp)


def measure() -> list[dict[str, Any]]:
    """Emulated and simulated seconds, one row a number of workers and method. Raises SereneError."""
    from experiments.performance.bench import all_reduce

    rows = []
    for workers in WORKERS:
        row, conditions = observed(partial(all_reduce, workers, VALUES, None, 0.0))
        for method, samples, seconds in zip(
            ("aggregation in the switch", "ring (gloo)"), (row.ours, row.peer), simulated(workers), strict=True
        ):
            rows.append(
                {
                    "workers": workers, "method": method, "emulated_s": statistics.median(samples),
                    "emulated_least_s": min(samples), "emulated_most_s": max(samples), "simulated_s": seconds,
                    CONDITIONS: conditions.to_dict(),
                }
            )  # fmt: skip
    return rows
