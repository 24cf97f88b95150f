"""What the study trains: the networks, their examples, and the model with gradients of all magnitudes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from serene.errors import SereneError
from serene.experiments.pytorch_study.magnitudes import MAGNITUDES, fixed_sum, local_gradient, relative_error, segments
from serene.experiments.pytorch_study.models import CONTEXT, Transformer, resnet18
from serene.experiments.pytorch_study.tasks import EVERY, PASSAGE, licenses
from serene.fixedpoint import FixedPoint


def test_the_residual_network_has_resnet_18s_size() -> None:
    """11,689,512 parameters with three channels and a thousand classes, as the paper's and torchvision's."""
    assert sum(parameter.numel() for parameter in resnet18(3, 1000).parameters()) == 11_689_512
    assert resnet18().eval()(torch.zeros(2, 1, 28, 28)).shape == (2, 10)


def test_the_transformer_sees_nothing_of_what_follows() -> None:
    torch.manual_seed(0)
    model = Transformer().eval()
    text = torch.randint(0, 256, (1, CONTEXT))
    other = text.clone()
    other[0, 40:] = (text[0, 40:] + 1) % 256
    with torch.no_grad():
        one, two = model(text), model(other)
    assert one.shape == (1, 256, CONTEXT)
    torch.testing.assert_close(one[..., :40], two[..., :40])
    assert not torch.allclose(one[..., 40:], two[..., 40:])


def values(text: Tensor) -> set[int]:
    return set(text.flatten().tolist())


def test_what_is_tested_was_not_learnt(tmp_path: Path) -> None:
    """Every tenth passage is held out. Passages of one byte value each show from where a window is."""
    passages = 3 * EVERY
    (tmp_path / "text").write_bytes(b"".join(bytes([number]) * PASSAGE for number in range(passages)))
    (tmp_path / "link").symlink_to(tmp_path / "text")
    task = licenses(tmp_path)
    tested = values(task.test[0])
    assert tested == {0, EVERY, 2 * EVERY}
    inputs, following = task.train(torch.Generator().manual_seed(1), 500)
    assert inputs.shape == following.shape == (500, CONTEXT)
    assert not tested & values(inputs)
    assert (inputs[:, 1:] == following[:, :-1]).all()


def test_without_texts_the_package_is_named(tmp_path: Path) -> None:
    with pytest.raises(SereneError, match="base-files"):
        licenses(tmp_path)


def test_each_layer_has_gradients_of_its_magnitude() -> None:
    gradient, sizes = local_gradient(1, 0)
    again, _ = local_gradient(1, 0)
    other, _ = local_gradient(1, 1)
    assert torch.equal(gradient, again)
    assert not torch.equal(gradient, other)
    largest = [float(part.abs().max()) for part in torch.split(gradient, sizes)]
    np.testing.assert_allclose(largest, MAGNITUDES, rtol=0.5)


def test_segments_are_each_value_once() -> None:
    sizes = [5, 1, 14, 3]
    found = [(list(range(23))[place], layer, others) for place, layer, others in segments(sizes, 8)]
    assert [value for values, _, _ in found for value in values] == list(range(23))
    assert [(len(values), layer, others) for values, layer, others in found] == [
        (5, 0, [1, 2]),
        (1, 1, [0, 2]),
        (2, 2, [0, 1]),
        (8, 2, []),
        (4, 2, [3]),
        (3, 3, [2]),
    ]


def test_the_fixed_scale_is_the_jobs() -> None:
    gradients = [np.array([1.0, 2.0**-21, 100.0], np.float32), np.array([0.5, 2.0**-19, -1.0], np.float32)]
    assert fixed_sum(gradients, FixedPoint()).tolist() == [1.5, 2.0**-19, 7.0]  # half a step goes to even; clipped at 8
    assert relative_error(np.array([3.0, 1.0]), np.array([4.0, 1.0])) == 0.25
