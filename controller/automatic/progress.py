"""The training's progress, computed from the workers' reported losses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from serene.controller.automatic.base import Observation


def mean_loss(seen: Observation) -> float | None:
    """The mean of the members' last reported losses; None if none reports any."""
    losses = [worker.loss for worker in seen.barrier if worker.loss is not None]
    return sum(losses) / len(losses) if losses else None


def mean_round(seen: Observation) -> float:
    """The mean number of iterations that the members have contributed; 0 without members."""
    return sum(worker.rounds for worker in seen.barrier) / max(len(seen.barrier), 1)


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The slope of the line through points (x, y) by least squares; 0 where all x are the same."""
    x, y = np.array(points, float).T
    x = x - x.mean()
    return float(x @ y / (x @ x)) if x.any() else 0.0
