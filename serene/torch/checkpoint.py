"""Optimizers' states for a training that resumes: the mean of several workers', the residual, and the momentum of
``outer``.

The last two are lists in the state's parameter groups. There a plain optimizer keeps them as they are. In a parameter's
state it would round them to the parameter's type.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

import torch
from torch import Tensor

from serene.errors import SereneError

RESIDUAL, OUTER_MOMENTUM = "residual", "outer_momentum"  # in a parameter group


def mean_state(states: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The mean of several workers' optimizer states, as of ``state_dict()``.

    Momentum is linear, so with SGD any number of workers that load the mean continue the mean of the earlier workers.
    With Adam the mean of the second moments is an approximation. The residual is linear, too: together any number of
    workers send all of it. Values that are no floating-point tensors are the first worker's. Raises SereneError if the
    states have different parts.
    """
    if not isinstance(states, Sequence):
        raise SereneError(f"states is a {type(states).__name__}: expected a list of workers' state_dict()")
    if not states:
        raise SereneError("states is empty: expected one worker's state_dict(), or more")
    if any(not isinstance(state, Mapping) or "state" not in state for state in states):
        raise SereneError("states has an item that is not an optimizer's state_dict()")
    parts = {name: [state.get(name) for state in states] for name in ("state", "param_groups")}
    return {**states[0], **{name: _mean(of, name) for name, of in parts.items()}}


def _mean(parts: Sequence[Any], where: str) -> Any:
    """Of one part of the states. where: its place, for errors."""
    first, differ = parts[0], f"the workers' states differ in {where}: expected those of one optimizer and model"
    if isinstance(first, Mapping):
        if any(not isinstance(part, Mapping) or part.keys() != first.keys() for part in parts):
            raise SereneError(differ)
        return {key: _mean([part[key] for part in parts], f"{where}[{key!r}]") for key in first}
    if isinstance(first, list):
        if any(not isinstance(part, list) or len(part) != len(first) for part in parts):
            raise SereneError(differ)
        return [_mean(of, f"{where}[{number}]") for number, of in enumerate(zip(*parts, strict=True))]
    if not any(isinstance(part, Tensor) and part.is_floating_point() for part in parts):
        return first
    if any(not isinstance(part, Tensor) or part.shape != first.shape for part in parts):
        raise SereneError(differ)
    total = torch.zeros_like(first, dtype=torch.float64)
    for part in parts:
        total += part.to(total.device)
    return (total / len(parts)).to(first.dtype)


def add_part(
    saved: Sequence[dict[str, Any]], groups: Sequence[Mapping[str, Any]], name: str, of: Mapping[Tensor, Tensor]
) -> None:
    """Adds a tensor of each parameter to a ``state_dict()``. saved: its parameter groups. groups: the optimizer's. of:
    by parameter."""
    for into, group in zip(saved, groups, strict=True):
        into[name] = [None if (part := of.get(each)) is None else part.clone() for each in group["params"]]


def move_older(state: MutableMapping[Any, dict[str, Any]], groups: Sequence[dict[str, Any]]) -> None:
    """Moves the outer momentum to where `add_part` adds it: until November 2026 checkpoints had it in each parameter's
    state. state, groups: of an optimizer, or of a ``state_dict()``."""
    for group in groups:
        each = [state[key] for key in group["params"] if key in state]
        if any(OUTER_MOMENTUM in own for own in each):
            older = [state[key].get(OUTER_MOMENTUM) if key in state else None for key in group["params"]]
            group.setdefault(OUTER_MOMENTUM, older)  # first: an interrupt must not lose it
            for own in each:
                own.pop(OUTER_MOMENTUM, None)


def checked(saved: Mapping[str, Any], groups: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A ``state_dict()`` after `move_older` and `check_parts`; the given one stays as it is. groups: the
    optimizer's."""
    state = {key: dict(own) if isinstance(own, Mapping) else own for key, own in saved["state"].items()}
    moved = [dict(group) for group in saved["param_groups"]]
    move_older(state, moved)
    check_parts(moved, groups)
    return {**saved, "state": state, "param_groups": moved}


def check_parts(given: Sequence[Mapping[str, Any]], groups: Sequence[Mapping[str, Any]]) -> None:
    """Raises SereneError for a part that `add_part` cannot have added. given: a state's parameter groups. groups: the
    optimizer's."""
    for number, (each, group) in enumerate(zip(given, groups, strict=False)):
        for name in (RESIDUAL, OUTER_MOMENTUM):
            if name in each:
                _check_part(each[name], group["params"], f"the state's param_groups[{number}][{name!r}]")


def _check_part(part: Any, parameters: Sequence[Tensor], where: str) -> None:
    if not isinstance(part, list) or len(part) != len(parameters):
        has = f"a list of {len(part)}" if isinstance(part, list) else f"a {type(part).__name__}"
        raise SereneError(f"{where} is {has}: expected a list of {len(parameters)}, one for each parameter")
    for index, (values, parameter) in enumerate(zip(part, parameters, strict=True)):
        if values is None:
            continue
        shape = list(parameter.shape)
        if not (isinstance(values, Tensor) and values.is_floating_point() and list(values.shape) == shape):
            has = f"{values.dtype} of shape {list(values.shape)}" if isinstance(values, Tensor) else repr(values)[:80]
            raise SereneError(f"{where}[{index}] is {has}: expected None, or floating-point values of shape {shape}")
        if not values.isfinite().all():  # a contribution of such a value would spoil all workers' parameters
            raise SereneError(f"{where}[{index}] has values that are not finite: load an earlier checkpoint")


def part_of(groups: Sequence[dict[str, Any]], name: str) -> dict[Tensor, Tensor] | None:
    """What `add_part` has added to an optimizer's parameter groups, by parameter. None if nothing was. Call
    `check_parts` first."""
    groups = [group for group in groups if name in group]
    each = [pair for group in groups for pair in zip(group["params"], group[name], strict=True)]
    return {parameter: part for parameter, part in each if part is not None} if groups else None


def remove_parts(groups: Sequence[dict[str, Any]]) -> None:
    for group in groups:
        for name in (RESIDUAL, OUTER_MOMENTUM):
            group.pop(name, None)
