"""The state of a shared optimizer: parts that do not fit the parameters are refused, and nothing is loaded."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import SGD

from serene.errors import SereneError
from serene.http import CONTROLLER
from serene.torch import DistributedOptimizer
from tests.torch.local import Local


@pytest.fixture(autouse=True)
def controller(local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONTROLLER, local.client.url)


FITS = torch.zeros(2, dtype=torch.float64)
WRONG = {
    "one value for two": ([torch.ones(1), FITS], r"\[0\] is torch.float32 of shape \[1\]: expected None, or floating"),
    "not finite": ([FITS, torch.tensor([0.0, float("nan")])], r"\[1\] has values that are not finite"),
    "whole numbers": ([FITS, torch.tensor([1, 2])], r"\[1\] is torch.int64 of shape \[2\]: expected None"),
    "no tensor": ([FITS, [0.0, 0.0]], r"\[1\] is \[0.0, 0.0\]: expected None, or floating-point values of shape \[2\]"),
    "too few": ([FITS], r" is a list of 1: expected a list of 2, one for each parameter"),
    "no list": (None, r" is a NoneType: expected a list of 2, one for each parameter"),
}


@pytest.mark.parametrize("name", ["residual", "outer_momentum"])
@pytest.mark.parametrize("wrong", WRONG)
def test_part_that_does_not_fit_is_refused(name: str, wrong: str) -> None:
    """Loaded by the shared optimizer before and after its first step, or by the wrapped one. Else one value would
    count for all, and one that is not finite would spoil all workers' parameters."""
    part, message = WRONG[wrong]
    parameters = [nn.Parameter(torch.zeros(2)) for _ in range(2)]
    for each in parameters:
        each.grad = torch.ones(2)
    own = SGD(parameters, lr=0.5)
    state: dict[str, Any] = deepcopy(own.state_dict())
    state["param_groups"][0] |= {"lr": 9.0, name: part}
    job = f"{name} {wrong}"
    with DistributedOptimizer(own, job=job, workers=1, outer=0.5, limit=64.0) as optimizer:
        for _ in range(2):
            with pytest.raises(SereneError, match=rf"^the state's param_groups\[0\]\['{name}'\]{message}"):
                optimizer.load_state_dict(state)
            assert own.param_groups[0]["lr"] == 0.5 and name not in own.param_groups[0]
            optimizer.step()
    assert parameters[0].tolist() == parameters[1].tolist() == [-1.625, -1.625]
    own.load_state_dict(state)
    with DistributedOptimizer(own, job=f"{job} again", workers=1, outer=0.5, limit=64.0) as optimizer:
        for _ in range(2):
            with pytest.raises(SereneError, match=rf"^the state's param_groups\[0\]\['{name}'\]{message}"):
                optimizer.step()
