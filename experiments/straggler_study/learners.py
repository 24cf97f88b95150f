"""What a worker of the simulated engine trains: a model of ``workers``, softmax regression, or nothing."""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

import numpy as np
import torch

from serene.experiments.straggler_study.cell import NOTHING, SOFTMAX, Cell
from serene.workers import data
from serene.workers.train import EVALUATED
from serene.workers.training import Trainer

POOLING = 4  # factor by which images are shrunk for softmax: from 28x28 to 7x7, which makes 500 parameters with biases
SOFTMAX_RATE = 0.5
BATCH = 32


class Learner(Protocol):
    """What the simulation uses of `serene.workers.training.Trainer`, and of what takes its place."""

    @property
    def size(self) -> int: ...
    def gradient(self, iteration: int) -> tuple[np.ndarray, float]: ...
    def apply(self, delta: np.ndarray) -> None: ...
    def accuracy(self) -> float: ...


class Softmax:
    """Softmax regression on small images: real gradients in a fraction of the time that a network takes."""

    def __init__(self, cell: Cell, worker: int) -> None:
        whole = _pooled(cell.dataset)
        self._test, self._test_labels = whole[2][:EVALUATED], whole[3][:EVALUATED]
        part = slice(worker, None, cell.workers)
        self._images, self._labels = whole[0][part], whole[1][part]
        self._classes = int(whole[1].max()) + 1
        self._key = (cell.seed, worker)
        self._rate = np.float32((cell.learning_rate or SOFTMAX_RATE) / cell.workers)
        self._momentum = np.float32(cell.momentum)
        self._weights = np.zeros((self._images.shape[1], self._classes), np.float32)
        self._velocity = np.zeros_like(self._weights)

    @property
    def size(self) -> int:
        return self._weights.size

    def gradient(self, iteration: int) -> tuple[np.ndarray, float]:
        chosen = np.random.default_rng((*self._key, iteration)).integers(len(self._labels), size=BATCH)
        images, labels = self._images[chosen], self._labels[chosen]
        scores = images @ self._weights
        scores -= scores.max(axis=1, keepdims=True)
        shares = np.exp(scores)
        shares /= shares.sum(axis=1, keepdims=True)
        loss = float(-np.log(np.maximum(shares[np.arange(BATCH), labels], 1e-12)).mean())
        shares[np.arange(BATCH), labels] -= 1
        return (images.T @ shares / BATCH).reshape(-1), loss

    def apply(self, delta: np.ndarray) -> None:
        self._velocity = self._momentum * self._velocity + delta.reshape(self._weights.shape)
        self._weights = self._weights - self._rate * self._velocity

    def accuracy(self) -> float:
        return float(((self._test @ self._weights).argmax(axis=1) == self._test_labels).mean())


class Network(Trainer):
    """A model of ``workers``, evaluated on the same test images as by the emulated engine's workers."""

    def accuracy(self, images: int | None = EVALUATED) -> float:
        return super().accuracy(images)


class Nothing:
    """No training, for studies of times alone. It has one value, so that the switch has something to count."""

    size = 1

    def gradient(self, iteration: int) -> tuple[np.ndarray, float]:
        return np.ones(1, np.float32), float("nan")

    def apply(self, delta: np.ndarray) -> None:
        pass

    def accuracy(self) -> float:
        return float("nan")


@lru_cache(maxsize=2)
def _pooled(dataset: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training images and labels, then test images and labels: float32[n, pixels + 1], where the last column is 1 for
    the bias, and int64[n]."""
    whole = data.load(dataset)

    def pool(images: torch.Tensor) -> np.ndarray:
        small = torch.nn.functional.avg_pool2d(images, POOLING).flatten(1).numpy()
        return np.hstack([small, np.ones((len(small), 1), np.float32)])

    return (
        pool(whole.train_images), whole.train_labels.numpy(), pool(whole.test_images), whole.test_labels.numpy()
    )  # fmt: skip


def learner(cell: Cell, worker: int) -> Learner:
    """The learner of a cell's worker. Raises DataError."""
    if cell.model == NOTHING:
        return Nothing()
    if cell.model == SOFTMAX:
        return Softmax(cell, worker)
    return Network(cell.recipe, worker)
