"""Optimizers' states for a training that resumes: the mean of several workers', and the momentum of ``outer``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from serene.errors import SereneError

OUTER_MOMENTUM = "outer_momentum"  # in a parameter's state


def mean_state(states: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The mean of several workers' optimizer states, as of ``state_dict()``.

    Momentum is linear, so with SGD any number of workers that load the mean continue the mean of the earlier workers.
    With Adam the mean of the second moments is an approximation. Values that are no floating-point tensors, and the
    parameter groups, are the first worker's. Raises SereneError if the states have different parts.
    """
    if not isinstance(states, Sequence):
        raise SereneError(f"states is a {type(states).__name__}: expected a list of workers' state_dict()")
    if not states:
        raise SereneError("states is empty: expected one worker's state_dict(), or more")
    if any(not isinstance(state, Mapping) or "state" not in state for state in states):
        raise SereneError("states has something else than an optimizer's state_dict()")
    return {**states[0], "state": _mean([state["state"] for state in states], "state")}


def _mean(parts: Sequence[Any], where: str) -> Any:
    """Of one part of the states. where: its place, for errors."""
    first = parts[0]
    if isinstance(first, Mapping):
        if any(not isinstance(part, Mapping) or part.keys() != first.keys() for part in parts):
            raise SereneError(f"the workers' states differ in {where}: expected those of one optimizer and model")
        return {key: _mean([part[key] for part in parts], f"{where}[{key!r}]") for key in first}
    if not (isinstance(first, Tensor) and first.is_floating_point()):
        return first
    if any(not isinstance(part, Tensor) or part.shape != first.shape for part in parts):
        raise SereneError(f"the workers' states differ in {where}: expected those of one optimizer and model")
    total = torch.zeros_like(first, dtype=torch.float64)
    for part in parts:
        total += part.to(total.device)
    return (total / len(parts)).to(first.dtype)


def add_outer_momentum(
    state: dict[int, dict[str, Any]], groups: Sequence[Mapping[str, Any]], momentum: Mapping[Tensor, Tensor]
) -> None:
    """Adds the momentum of ``outer`` to a ``state_dict()``. state: its part of that name, by the parameters' numbers in
    ``groups``. momentum: of each parameter, shaped like it."""
    number_of = {each: number for number, each in enumerate(each for group in groups for each in group["params"])}
    for parameter, part in momentum.items():
        # The state of a parameter that never had a gradient stays empty, as Adam expects it.
        if part.any():
            state.setdefault(number_of[parameter], {})[OUTER_MOMENTUM] = part.to(parameter.dtype, copy=True)


def take_outer_momentum(state: Mapping[Tensor, dict[str, Any]], momentum: Mapping[Tensor, Tensor]) -> None:
    """Moves what `add_outer_momentum` has added from an optimizer's state to ``momentum``, which stays as it is if
    nothing was added. state: by parameter."""
    loaded = {parameter: own.pop(OUTER_MOMENTUM) for parameter, own in state.items() if OUTER_MOMENTUM in own}
    for parameter, part in momentum.items() if loaded else ():
        part.copy_(loaded[parameter]) if parameter in loaded else part.zero_()
