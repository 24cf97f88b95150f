"""Cases of collectives, and how far a rank's results may be from gloo's."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

Group = Any  # dist.ProcessGroup, or None for the default group


@dataclass(frozen=True)
class Case:
    """Collectives to compare. run: plays them on a group, and returns the tensors to be compared. summed: how many of
    them go through the switch; for a training, at least how many. exact: plays the same with sums in float64; each
    result then has to be that sum rounded once. further: how many times as far from gloo's result a training may end as
    a single sum may."""

    name: str
    run: Callable[[Group], list[Tensor]]
    summed: int
    exact: Callable[[Group], list[Tensor]] | None = None
    near: bool = False  # the switch sums, but for another group than the one under test
    further: float = 1.0


def largest(tensors: list[Tensor]) -> float:
    finite = [tensor.double()[tensor.double().isfinite()].abs() for tensor in tensors]
    return max((float(part.max()) for part in finite if part.numel()), default=0.0)


def of_the_switch(workers: int) -> float:
    """How far the switch's sums may be off, as a fraction of the largest value (docs/decisions/block-exponents.md)."""
    return workers * 2.0 ** (math.ceil(math.log2(workers)) - 28)


def not_one_rounding(ours: list[Tensor], exact: list[Tensor]) -> str:
    """Names the first result that is further from the sum in float64 than half a unit of its last place plus the
    switch's error; "" if none is."""
    workers = dist.get_world_size()
    for index, (mine, sums) in enumerate(zip(ours, exact, strict=True)):
        kind = torch.finfo(mine.dtype)
        half_unit = (sums.abs() * kind.eps / 2).clamp(min=kind.smallest_normal * kind.eps / 2)
        apart = (mine.double() - sums).abs() - half_unit
        if mine.numel() and float(apart.max()) > of_the_switch(workers) * workers * largest(exact):
            at = int(apart.reshape(-1).argmax())
            return f"result {index}, value {at}: {mine.reshape(-1)[at]}, in float64 {sums.reshape(-1)[at]}"
    return ""


def wrong(case: Case, ours: list[Tensor], theirs: list[Tensor]) -> str:
    """Returns how one rank's results differ from gloo's by more than both may be off; "" if they do not."""
    workers = dist.get_world_size()
    for index, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        gloo = 2 * workers * torch.finfo(other.dtype).eps if other.is_floating_point() else 0.0
        exactly = not (case.summed or case.near)
        allowed = 0.0 if exactly else (of_the_switch(workers) + gloo) * case.further * largest(theirs)
        if (mine.shape, mine.dtype) != (other.shape, other.dtype):
            return f"result {index}: {mine.dtype}{list(mine.shape)}, gloo {other.dtype}{list(other.shape)}"
        a, b = mine.detach().double(), other.detach().double()
        same = (a == b) | (a.isnan() & b.isnan())
        near = a.isfinite() & b.isfinite() & ((a - b).abs() <= allowed)
        if not bool((same | near).all()):
            at = int((~(same | near)).reshape(-1).nonzero()[0])
            return f"result {index}, value {at}: {a.reshape(-1)[at]}, gloo {b.reshape(-1)[at]}, allowed {allowed:.3g}"
    return ""
