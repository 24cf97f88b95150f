"""The reference: training in one process with the same quantised gradients. A BSP job must end with the same bits."""

from __future__ import annotations

import numpy as np

from serene.fixedpoint import FixedPoint
from serene.workers import data
from serene.workers.training import Recipe, Trainer


def train(recipe: Recipe, fixed: FixedPoint | None = None) -> np.ndarray:
    """The parameters, float32[size], after all steps of a BSP job. fixed: the job's number format; None: the
    default."""
    fixed = fixed or FixedPoint()
    data.keep(recipe.dataset, recipe.data_dir)  # else each worker would read it
    trainers = [Trainer(recipe, worker) for worker in range(recipe.workers)]
    for iteration in range(1, recipe.steps + 1):
        total = np.zeros(trainers[0].size, np.int32)
        for trainer in trainers:
            gradient, _ = trainer.gradient(iteration)
            total += fixed.quantise(gradient)[0]
        for trainer in trainers:
            trainer.apply(fixed.dequantise(total))
    return trainers[0].parameters
