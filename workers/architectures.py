"""The networks that workers train, layer by layer: their names, and how large they are.

Without PyTorch, which takes more than a second to import: workers/models.py makes them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from serene.errors import SereneError, choices

Shape = tuple[int, int, int]  # channels, height, width


class NoSuchModel(SereneError):
    """No model of that name."""


@dataclass(frozen=True)
class Linear:
    inputs: int
    outputs: int

    @property
    def size(self) -> int:
        """Number of parameters."""
        return (self.inputs + 1) * self.outputs


@dataclass(frozen=True)
class Convolution:
    """3x3; height and width stay."""

    inputs: int
    outputs: int

    @property
    def size(self) -> int:
        """Number of parameters."""
        return (9 * self.inputs + 1) * self.outputs


class Plain(Enum):
    """Layers without parameters."""

    FLATTEN = auto()
    RELU = auto()
    HALVE = auto()  # height and width, by the largest of four


Layer = Linear | Convolution | Plain


def _mlp(shape: Shape, classes: int) -> list[Layer]:
    """784-100-10 on 28x28 grey images: 79,510 parameters."""
    return [Plain.FLATTEN, Linear(math.prod(shape), 100), Plain.RELU, Linear(100, classes)]


def _convolutions(shape: Shape, first: int, second: int) -> tuple[list[Layer], int]:
    """Two, and the number of values that come out."""
    channels, height, width = shape
    layers: list[Layer] = [
        Convolution(channels, first), Plain.RELU, Plain.HALVE, Convolution(first, second), Plain.RELU, Plain.HALVE,
        Plain.FLATTEN,
    ]  # fmt: skip
    return layers, second * (height // 4) * (width // 4)


def _cnn(shape: Shape, classes: int) -> list[Layer]:
    """Two convolutions and a linear layer: 9,098 parameters on 28x28 grey images."""
    layers, values = _convolutions(shape, 8, 16)
    return [*layers, Linear(values, classes)]


def _cnn_large(shape: Shape, classes: int) -> list[Layer]:
    """Two convolutions and two linear layers: 206,922 parameters on 28x28 grey images."""
    layers, values = _convolutions(shape, 16, 32)
    return [*layers, Linear(values, 128), Plain.RELU, Linear(128, classes)]


MODELS: Mapping[str, Callable[[Shape, int], list[Layer]]] = {"mlp": _mlp, "cnn": _cnn, "cnn-large": _cnn_large}

# Learning rates at which a job of 4 workers with batches of 32 is above 0.9 on the digits after 200 steps.
LEARNING_RATES: Mapping[str, float] = {"mlp": 0.1, "cnn": 0.1, "cnn-large": 0.1}


def check_model(name: str) -> None:
    if name not in MODELS:
        raise NoSuchModel(f"no model {name!r}; there are {choices(MODELS)}")


def size(name: str, shape: Shape, classes: int) -> int:
    """Number of parameters."""
    check_model(name)
    return sum(layer.size for layer in MODELS[name](shape, classes) if not isinstance(layer, Plain))
