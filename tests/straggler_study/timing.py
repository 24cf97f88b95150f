"""Times of simulated workers."""

from __future__ import annotations

import numpy as np

from serene.experiments.straggler_study.cell import Cell
from serene.experiments.straggler_study.trace import Trace
from serene.workers.stragglers import parse

SLOW = "slow_worker:probability=0.3,low=0.5,high=2.0"


def compute_times(cell: Cell) -> np.ndarray:
    """float64[workers, steps], seconds."""
    profile, mean = parse(cell.straggler), cell.compute_ms / 1e3
    return np.array(
        [
            [mean + profile.delay(worker, step, mean, cell.seed) for step in range(1, cell.steps + 1)]
            for worker in range(cell.workers)
        ]
    )


def ended(trace: Trace, worker: int) -> np.ndarray:
    rows = trace.steps[trace.steps["worker"] == worker]
    return np.asarray(rows["ended"][np.argsort(rows["step"])])
