"""Compares the simulator with an emulated star: the same all-reduce of 4 to 16 Mininet hosts.

Aggregation goes through the embedded switch, gloo's ring through a Linux bridge, over links of 100 Mbit/s. The
simulation has the same links and headers, no latency, and no fitted constants.
"""

from __future__ import annotations

import os
import shutil
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, replace

from serene.experiments.network_study.cells import our_switch
from serene.experiments.network_study.emulated.plan import FRAME, PAYLOAD
from serene.experiments.network_study.exchange import VALUE_BYTES, Exchange
from serene.experiments.network_study.flows import solver
from serene.experiments.network_study.flows.clos import Clos
from serene.experiments.network_study.flows.solver import IDEAL, Model
from serene.experiments.network_study.schedules import leaf_spine_aggregation, ring
from serene.experiments.shared.measurements import Row

WORKERS = (4, 8, 16)
VALUES = 100_000
LINK_MBIT = 100.0


def why_not() -> str:
    """Why there is nothing to measure on this machine; empty if there is."""
    if os.geteuid() != 0:
        return "emulated hosts need root"
    return "" if shutil.which("mn") else "Mininet is not installed"


def simulated(workers: int) -> tuple[float, float]:
    """Seconds of an all-reduce in the simulator: through the switch, and as a ring."""
    ports = max(2 * workers, 4)
    star = Clos(2, ports, 1, bandwidth=LINK_MBIT * 1e6 / 8, switch_latency=0.0)
    exchange = Exchange(star, VALUES * VALUE_BYTES, our_switch())
    tcp: Model = replace(IDEAL, name="TCP payload", bandwidth_factor=PAYLOAD / FRAME)
    return solver.run(star, leaf_spine_aggregation(exchange), IDEAL), solver.run(star, ring(exchange), tcp)


@dataclass(frozen=True)
class Case:
    workers: int


def measure(case: Case) -> Row:
    """Emulated and simulated seconds of a number of workers, by method. Raises SereneError."""
    from serene.experiments.performance.bench import all_reduce

    row = all_reduce(case.workers, VALUES, None, 0.0)
    both = zip(("aggregation in the switch", "ring (gloo)"), (row.ours, row.peer), simulated(case.workers), strict=True)
    return {
        "methods": [
            {"method": method, "emulated_s": statistics.median(samples), "samples_s": samples, "simulated_s": seconds}
            for method, samples, seconds in both
        ]
    }


def rows(kept: Iterable[Row]) -> list[Row]:
    """A row for each number of workers and method, of what was measured."""
    return [{"hosts": row["workers"], "ratio": 1.0, **row, **each} for row in kept for each in row["methods"]]
