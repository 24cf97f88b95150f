"""The networks that workers train, as one flat vector of parameters each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import nn

from serene.errors import SereneError, choices

Shape = tuple[int, int, int]  # channels, height, width


class NoSuchModel(SereneError):
    """No model of that name."""


def _mlp(shape: Shape, classes: int) -> nn.Module:
    """784-100-10 on 28x28 grey images: 79,510 parameters."""
    return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), 100), nn.ReLU(), nn.Linear(100, classes))


def _cnn(shape: Shape, classes: int) -> nn.Module:
    """Two convolutions and a linear layer: 9,098 parameters on 28x28 grey images."""
    channels, height, width = shape
    return nn.Sequential(
        nn.Conv2d(channels, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * (height // 4) * (width // 4), classes),
    )


def _cnn_large(shape: Shape, classes: int) -> nn.Module:
    """Two convolutions and two linear layers: 206,922 parameters on 28x28 grey images."""
    channels, height, width = shape
    return nn.Sequential(
        nn.Conv2d(channels, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * (height // 4) * (width // 4), 128),
        nn.ReLU(),
        nn.Linear(128, classes),
    )


MODELS: Mapping[str, Callable[[Shape, int], nn.Module]] = {"mlp": _mlp, "cnn": _cnn, "cnn-large": _cnn_large}

# Learning rates at which a job of 4 workers with batches of 32 is above 0.9 on the digits after 200 steps.
LEARNING_RATES: Mapping[str, float] = {"mlp": 0.1, "cnn": 0.1, "cnn-large": 0.1}


def check_model(name: str) -> None:
    if name not in MODELS:
        raise NoSuchModel(f"no model {name!r}; there are {choices(MODELS)}")


class Model:
    """A network with its loss: the same initial parameters for the same seed, on every worker."""

    def __init__(self, name: str, shape: Shape, classes: int, seed: int) -> None:
        check_model(name)
        torch.manual_seed(seed)
        self._network = MODELS[name](shape, classes)
        self._parameters = list(self._network.parameters())
        self._loss = nn.CrossEntropyLoss()

    @property
    def size(self) -> int:
        """Number of parameters."""
        return sum(parameter.numel() for parameter in self._parameters)

    def parameters(self) -> np.ndarray:
        """float32[size], a copy."""
        with torch.no_grad():
            return torch.cat([parameter.reshape(-1) for parameter in self._parameters]).numpy()

    def load(self, vector: np.ndarray) -> None:
        """Sets all parameters. vector: float32[size]."""
        at = 0
        with torch.no_grad():
            for parameter in self._parameters:
                count = parameter.numel()
                parameter.copy_(torch.from_numpy(vector[at : at + count]).reshape(parameter.shape))
                at += count

    def gradient(self, images: torch.Tensor, labels: torch.Tensor) -> tuple[np.ndarray, float]:
        """float32[size], the gradient of the mean loss over a batch, and that loss."""
        self._network.train()
        self._network.zero_grad()
        loss = self._loss(self._network(images), labels)
        loss.backward()
        gradients = [parameter.grad.reshape(-1) for parameter in self._parameters]  # type: ignore[union-attr]
        return torch.cat(gradients).numpy(), float(loss.detach())

    def accuracy(self, images: torch.Tensor, labels: torch.Tensor) -> float:
        """Share of images that are classified right."""
        self._network.eval()
        with torch.no_grad():
            return float((self._network(images).argmax(dim=1) == labels).float().mean())
