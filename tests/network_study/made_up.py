"""Made-up answers: each method takes a different time."""

from __future__ import annotations

from typing import Any

from serene.experiments.network_study.cells import Cell, TrainingCell

UNIT_S = 0.025  # of 100 MB over 4 GB/s


# In units at r = 1, and how many times that at r = 1/8.
TAKES = {
    "servers-packed": (9.0, 8.0), "servers-distributed": (8.0, 1.25), "flat-butterfly": (6.0, 4.0),
    "layered-butterfly": (7.5, 1.1), "ring": (3.0, 2.0), "hierarchical-ring": (4.0, 1.2),
    "leaf-aggregation": (2.5, 3.0), "leaf-spine-aggregation": (2.0, 1.05),
}  # fmt: skip


OTHER = (20.0, 1.0)  # of a variant


CLOSED = {1.0: 1.0, 0.5: 0.99, 0.25: 1.5, 0.125: 1.01}  # the closed form's time is so many times as long


class MadeUp(dict[Cell, dict[str, Any]]):
    """Made-up answers in place of simulated ones."""

    def __missing__(self, cell: Cell) -> dict[str, Any]:
        if isinstance(cell, TrainingCell):
            return _training(cell)
        whole, growth = TAKES.get(cell.method, OTHER)
        seconds = UNIT_S * whole * (growth if cell.network.ratio == 0.125 else 1.0)
        seconds *= 4.0 / cell.network.bandwidth_gb * cell.gradient_mb / 100
        if cell.network.routing == "ecmp":
            seconds *= 1.5
        return {"seconds": seconds, "closed_form_s": CLOSED[cell.network.ratio] * seconds, "engine_s": 1.0}


def _training(cell: TrainingCell) -> dict[str, Any]:
    """The third seed is far from the others, and stragglers halve everything."""
    speed = {1: 4.0, 2: 5.0, 3: 30.0}[cell.seed] * (1.0 if cell.straggler == "none" else 0.5)
    speed *= 0.8 if cell.how == "servers" else 1.0
    return {"rounds_per_s": speed, "ahead_max": 7 if cell.seed == 2 and cell.straggler == "slow_worker" else 3}
