"""The models that workers train, in PyTorch, with parameters and gradients as one flat vector each."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from serene.workers.architectures import MODELS, Convolution, Layer, Linear, Parameterless, Shape, check_model

# Images. The values between layers of a CNN then fit a processor's cache: 2,000 images take half the time.
EVALUATED_AT_ONCE = 100


def _module(layer: Layer) -> nn.Module:
    if isinstance(layer, Linear):
        return nn.Linear(layer.inputs, layer.outputs)
    if isinstance(layer, Convolution):
        return nn.Conv2d(layer.inputs, layer.outputs, 3, padding=1)
    if layer is Parameterless.MAX_POOL:
        return nn.MaxPool2d(2)
    return nn.ReLU() if layer is Parameterless.RELU else nn.Flatten()


class Model:
    """A network with its loss, by name. The same seed gives the same initial parameters on every worker. Raises
    NoSuchModel."""

    def __init__(self, name: str, shape: Shape, classes: int, seed: int) -> None:
        check_model(name)
        torch.manual_seed(seed)
        self._network = nn.Sequential(*map(_module, MODELS[name](shape, classes)))
        self._parameters = list(self._network.parameters())
        self._loss = nn.CrossEntropyLoss()

    @property
    def size(self) -> int:
        """Number of parameters."""
        return sum(parameter.numel() for parameter in self._parameters)

    def parameters(self) -> np.ndarray:
        """All parameters, float32[size], a copy."""
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
        """The gradient of the mean loss over a batch, float32[size], and that loss. images: float32[batch, channels,
        height, width]; labels: int64[batch]."""
        self._network.train()
        self._network.zero_grad()
        loss = self._loss(self._network(images), labels)
        loss.backward()
        gradients = [parameter.grad.reshape(-1) for parameter in self._parameters]  # type: ignore[union-attr]
        return torch.cat(gradients).numpy(), float(loss.detach())

    def accuracy(self, images: torch.Tensor, labels: torch.Tensor) -> float:
        """Share of correctly classified images, 0 to 1. images, labels: as in `gradient`."""
        self._network.eval()
        with torch.no_grad():
            found = torch.cat([self._network(part).argmax(dim=1) for part in torch.split(images, EVALUATED_AT_ONCE)])
        return float((found == labels).float().mean())
