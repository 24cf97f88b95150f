"""What the workers' reported losses say of the training's progress."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from serene.controller.automatic.base import Observation


def mean_loss(seen: Observation) -> float | None:
    """The mean of the losses that the members reported last; None where none does."""
    losses = [worker.loss for worker in seen.barrier if worker.loss is not None]
    return sum(losses) / len(losses) if losses else None


def mean_round(seen: Observation) -> float:
    """How many iterations the members have contributed, in the mean; 0 without members."""
    return sum(worker.rounds for worker in seen.barrier) / max(len(seen.barrier), 1)


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The slope of the line through points (x, y) by least squares; 0 where all x are the same."""
    x, y = np.array(points, float).T
    x = x - x.mean()
    return float(x @ y / (x @ x)) if x.any() else 0.0
