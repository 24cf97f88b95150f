"""The arithmetic of a training step, shared by the distributed worker and the single-process reference.

Every contribution has the weight lr / N (docs/decisions/constant-weight.md): after each read, parameters -= lr / N *
delta. It is computed in float32 and in this order of operations. So runs that read the same sums end with the same
bits.
"""

from __future__ import annotations

import hashlib

import numpy as np
import torch

from serene.workers import data
from serene.workers.architectures import LEARNING_RATES
from serene.workers.models import Model
from serene.workers.recipe import Recipe as Recipe


class Trainer:
    """One worker's replica of the model and its shard of the data. Raises NoSuchModel or DataError."""

    def __init__(self, recipe: Recipe, worker: int) -> None:
        torch.set_num_threads(1)
        # torch.use_deterministic_algorithms would also import PyTorch's compiler, which takes a second, only to set a
        # flag.
        torch.set_deterministic_debug_mode("error")
        whole = data.load(recipe.dataset, recipe.data_dir)
        self._recipe = recipe
        self._worker = worker
        self._shard = whole.shard(worker, recipe.workers)
        self._model = Model(recipe.model, whole.shape, whole.classes, recipe.seed)
        self._rate = np.float32((recipe.learning_rate or LEARNING_RATES[recipe.model]) / recipe.workers)
        self.parameters = self._model.parameters()

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self._model.size

    def gradient(self, iteration: int) -> tuple[np.ndarray, float]:
        """The gradient, float32[size], and the loss of an iteration's batch. Iterations count from 1."""
        images, labels = self._shard.batch(self._recipe.batch_size, self._recipe.seed, self._worker, iteration)
        return self._model.gradient(images, labels)

    def apply(self, delta: np.ndarray) -> None:
        """Moves the parameters against a sum of gradients. delta: float32[size]."""
        self.parameters = self.parameters - self._rate * delta
        self._model.load(self.parameters)

    def accuracy(self, images: int | None = None) -> float:
        """Accuracy from 0 to 1 on the test images. images: only the first ones, this number of them; None: all."""
        return self._model.accuracy(self._shard.test_images[:images], self._shard.test_labels[:images])

    def digest(self) -> str:
        """SHA-256 of the parameters' bytes."""
        return hashlib.sha256(self.parameters.tobytes()).hexdigest()
