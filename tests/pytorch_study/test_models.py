"""The networks that the study trains, and their data."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from serene.errors import SereneError
from serene.experiments.pytorch_study.tasks import CONTEXT, EVERY, PASSAGE, Transformer, cnn, licenses


def test_transformer_is_causal() -> None:
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


def test_models_have_documented_parameter_counts() -> None:
    sizes = [sum(parameter.numel() for parameter in model.parameters()) for model in (cnn(), Transformer())]
    assert sizes == [9_098, 137_216]


def values(text: Tensor) -> set[int]:
    return set(text.flatten().tolist())


def test_license_task_test_set_is_disjoint_from_training_set(tmp_path: Path) -> None:
    """Every tenth passage is held out. Each passage is one repeated byte, so a window shows where it comes from."""
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


def test_license_task_names_the_package_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(SereneError, match="base-files"):
        licenses(tmp_path)
