"""A small training in the test's own process, with any optimizer."""

from __future__ import annotations

import torch
from torch import nn
from torch.optim import Optimizer

from serene.torch.replica import Replica

STEPS = 20


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16, bias=False), nn.BatchNorm1d(16), nn.Tanh(), nn.Linear(16, 3))


def loss_of(model: nn.Module, step: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(step)
    points = torch.randn(16, 8, generator=generator)
    return nn.functional.cross_entropy(model(points), points[:, :3].argmax(dim=1))


def train(model: nn.Module, optimizer: Optimizer, steps: range = range(STEPS)) -> None:
    for step in steps:
        optimizer.zero_grad()
        loss_of(model, step).backward()  # type: ignore[no-untyped-call]
        optimizer.step()


def residual_of(replica: Replica) -> torch.Tensor:
    """Of all its values, float64."""
    return torch.cat([replica._residual(number) for number in range(len(replica._runs))])
