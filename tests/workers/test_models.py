"""Models as flat vectors: sizes, initial values, gradients, and the errors for names that do not exist."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from serene.workers import architectures
from serene.workers.architectures import MODELS
from serene.workers.models import Model

GREY, COLOUR = (1, 28, 28), (3, 32, 32)


def batch(shape: tuple[int, int, int], size: int = 16) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    return torch.rand(size, *shape, generator=generator), torch.arange(size) % 10


@pytest.mark.parametrize(
    ("name", "shape", "size"),
    [
        ("mlp", GREY, 79_510),
        ("cnn", GREY, 9_098),
        ("cnn-large", GREY, 206_922),
        ("mlp", COLOUR, 308_310),
        ("cnn", COLOUR, 11_642),
    ],
)
def test_model_size_matches_its_parameter_count(name: str, shape: tuple[int, int, int], size: int) -> None:
    model = Model(name, shape, 10, seed=1)
    assert model.size == architectures.size(name, shape, 10) == size
    assert model.parameters().shape == (size,)
    assert model.parameters().dtype == np.float32


@pytest.mark.parametrize("name", MODELS)
def test_initial_parameters_depend_only_on_the_seed(name: str) -> None:
    first = Model(name, GREY, 10, seed=3).parameters()
    torch.rand(17)  # whatever was drawn before
    assert Model(name, GREY, 10, seed=3).parameters().tobytes() == first.tobytes()
    assert Model(name, GREY, 10, seed=4).parameters().tobytes() != first.tobytes()


@pytest.mark.parametrize("name", MODELS)
def test_model_parameters_equal_the_loaded_vector(name: str) -> None:
    model = Model(name, GREY, 10, seed=1)
    vector = np.arange(model.size, dtype=np.float32)
    model.load(vector)
    assert model.parameters().tobytes() == vector.tobytes()


def test_model_parameters_returns_a_copy() -> None:
    model = Model("mlp", GREY, 10, seed=1)
    before = model.parameters()
    before[:] = 0
    assert model.parameters().any()


@pytest.mark.parametrize("name", MODELS)
def test_model_gradient_matches_the_slope_of_the_loss(name: str) -> None:
    model = Model(name, GREY, 10, seed=1)
    images, labels = batch(GREY)
    gradient, loss = model.gradient(images, labels)
    assert gradient.dtype == np.float32 and gradient.shape == (model.size,)
    # A step of a length h down the gradient lowers the loss by h * |gradient|, up to second order.
    start, length = model.parameters(), float(np.linalg.norm(gradient))
    step = np.float32(1e-2 / length)
    model.load(start - step * gradient)
    assert loss - model.gradient(images, labels)[1] == pytest.approx(1e-2 * length, rel=0.1)


@pytest.mark.parametrize("name", MODELS)
def test_model_gradients_do_not_accumulate(name: str) -> None:
    model = Model(name, GREY, 10, seed=1)
    first = model.gradient(*batch(GREY))[0].copy()
    assert model.gradient(*batch(GREY))[0].tobytes() == first.tobytes()


def test_model_accuracy_is_the_share_of_correct_answers() -> None:
    model = Model("mlp", GREY, 10, seed=1)
    vector = np.zeros(model.size, np.float32)
    vector[-10 + 7] = 1.0  # the last layer's bias: everything is a seven
    model.load(vector)
    images, _ = batch(GREY, 8)
    assert model.accuracy(images, torch.tensor([7, 7, 1, 7, 2, 3, 4, 5])) == 3 / 8
