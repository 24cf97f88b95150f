"""Parameters that several workers change together: each holds ``start + unit * sum``, from the same integers.

A worker's own optimiser changes its parameters. The *update* is by how much it has changed them since the worker's last
contribution; the contribution is that update, weighted and rounded to units. What rounding or the limit leaves, the
*residual*, goes with the next one. The switch adds up all contributions modulo 2^32.

The sum never leaves plus or minus 2^31 units: whoever contributes keeps what it knows of the sum within `REACH`, and at
most a few contributions, of at most `limit_for` units each, are made before their workers have read that it was
crossed. So a read is the sum itself, however many contributions it holds, and however late it comes.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from serene.errors import SereneError
from serene.fixedpoint import LARGEST

REACH = 2**30  # units that a parameter may be away from its start
ROUND_MOST = 2**27  # units that one contribution of each worker has together, at most
FIRST_UPDATES = 2**14  # a parameter may move by so many of the largest first update,
STARTS = 2**8  # and by so many of the largest value that a parameter begins with
RUN = 1 << 22  # values that are computed at once, at least
DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


class BadUpdate(SereneError):
    """An update has a value that is not finite."""


class BadParameters(SereneError):
    """Parameters that cannot be shared; the message says which."""


def limit_for(workers: int) -> int:
    """The largest value of a contribution, in units: a power of two."""
    return ROUND_MOST >> (workers - 1).bit_length()


def scale_for(reach: float, workers: int) -> int:
    """Units in 1.0, a power of two, so that a parameter may move by ``reach`` from its start."""
    largest = (LARGEST // workers).bit_length() - 1
    return 1 << min(max(math.floor(math.log2(REACH / reach)), 0), largest)


@dataclass(frozen=True)
class Named:
    """A parameter, and what it is called in messages."""

    name: str
    parameter: Tensor


class Replica:
    """One worker's parameters. parameters: on one device, in the same order on all workers.

    Raises BadParameters where there is none, or one that cannot be shared.
    """

    def __init__(self, parameters: Sequence[Named]) -> None:
        _check(parameters)
        self._named = list(parameters)
        self.device = parameters[0].parameter.device
        self.values = sum(named.parameter.numel() for named in parameters)
        wide = any(named.parameter.dtype is torch.float64 for named in parameters)
        kind = torch.float64 if wide else torch.float32  # it holds the smaller types' values exactly
        self._start = torch.empty(self.values, dtype=kind, device=self.device)
        for where, run in self._runs():
            self._start[where] = _flat(run).to(kind)
        pinned = self.device.type != "cpu"
        self._residual = torch.zeros(self.values, dtype=torch.float64, device=self.device)
        self.sum = torch.zeros(self.values, dtype=torch.int32, pin_memory=pinned)  # as it was read last
        self.contribution = torch.zeros(self.values, dtype=torch.int32, pin_memory=pinned)  # the last one
        self.sent = torch.zeros(self.values, dtype=torch.int32)  # the sum of all contributions of this worker
        self._shown = torch.zeros(self.values, dtype=torch.int32, device=self.device)  # what the parameters began with
        self._stream = torch.Stream(self.device) if pinned else None
        self.unit = 0.0
        self._limit = 0
        self._workers = 1  # by which the last contribution was divided
        self.held_back = 0  # values of all contributions so far that the limit, or the reach, has cut

    def _runs(self) -> Iterator[tuple[slice, list[Named]]]:
        """The parameters, a few at a time, and where they are in the vector."""
        first, run, size = 0, list[Named](), 0
        for named in self._named:
            run.append(named)
            size += named.parameter.numel()
            if size >= RUN:
                yield slice(first, first + size), run
                first, run, size = first + size, [], 0
        if run:
            yield slice(first, first + size), run

    def digest(self) -> tuple[str, str]:
        """Of the parameters' shapes and types, and of the values that they began with: the same on two workers if, and
        only if, these are."""
        shapes = [(list(named.parameter.shape), str(named.parameter.dtype)) for named in self._named]
        values = hashlib.blake2b(digest_size=6)
        for where, _ in self._runs():
            values.update(self._start[where].cpu().numpy().tobytes())
        return hashlib.blake2b(repr(shapes).encode(), digest_size=6).hexdigest(), values.hexdigest()

    @torch.no_grad()
    def first_reach(self) -> float:
        """How far parameters should be able to move, by the first update and by what they began with. Raises
        BadUpdate."""
        update = start = 0.0
        for where, run in self._runs():
            began = self._start[where].double()
            moved = _flat(run).double() - began
            update = max(update, self._largest(moved, run))
            start = max(start, float(began.abs().max()))
        return max(FIRST_UPDATES * update, STARTS * start) or float(STARTS)

    def _largest(self, update: Tensor, run: Sequence[Named]) -> float:
        """The largest magnitude in an update. Raises BadUpdate."""
        largest = float(update.abs().max())
        if math.isfinite(largest):
            return largest
        for named, part in zip(run, torch.split(update, [named.parameter.numel() for named in run]), strict=True):
            if not bool(torch.isfinite(part).all()):
                wrong = part[~torch.isfinite(part)]
                raise BadUpdate(
                    f"the update of {named.name} has {len(wrong)} values that are not finite, the first is {wrong[0]}: "
                    "nothing was sent"
                )
        raise AssertionError("a value that is not finite is in no parameter")

    def begin(self, scale: int, limit: int) -> None:
        """The job's numbers: units in 1.0, and the largest value of a contribution in units."""
        self.unit, self._limit = 1 / scale, limit

    @torch.no_grad()
    def contribute(self, workers: int) -> np.ndarray:
        """The next contribution, int32[values], valid until the next call. workers: that take part now.

        What the parameters have become since `show` is the update. Raises BadUpdate, and then nothing has changed.
        """
        self._workers = workers
        step = self.unit * workers  # what one unit of a contribution is of an update
        updates = [self._update(where, run) for where, run in self._runs()] if self._single_run else None
        if updates is None:  # a first pass, so that a value that is not finite is found before anything has changed
            for where, run in self._runs():
                self._largest(self._update(where, run), run)
        for number, (where, run) in enumerate(self._runs()):
            update = self._update(where, run) if updates is None else updates[number]
            if updates is not None:
                self._largest(update, run)
            shown = self._shown[where]
            wanted = torch.round(update / step)
            units = wanted.clamp(-self._limit, self._limit).to(torch.int32)
            # Beyond the reach a parameter may only come back.
            most, least = REACH - shown.clamp(0, REACH), -REACH - shown.clamp(-REACH, 0)
            units = torch.minimum(torch.maximum(units, least), most)
            self.held_back += int(torch.count_nonzero(wanted != units))
            self._residual[where] = update - units.double() * step
            self._copy(self.contribution[where], units)
        self._wait()
        self.sent += self.contribution
        return self.contribution.numpy()

    @property
    def _single_run(self) -> bool:
        return self.values <= RUN

    def _update(self, where: slice, run: Sequence[Named]) -> Tensor:
        """With the residual, float64[n]."""
        return _flat(run).double() - self._parameters(where, run) + self._residual[where]

    def _parameters(self, where: slice, run: Sequence[Named]) -> Tensor:
        """What `show` made of the parameters, float64[n]."""
        exact = self._start[where].double() + self._shown[where].double() * self.unit
        kinds = {named.parameter.dtype for named in run}
        if len(kinds) == 1:
            return exact.to(kinds.pop()).double()
        parts = torch.split(exact, [named.parameter.numel() for named in run])
        return torch.cat([part.to(named.parameter.dtype).double() for part, named in zip(parts, run, strict=True)])

    def take(self, *, under_way: bool = False) -> None:
        """Takes the sum as it is now for what `show` shows. under_way: and the last own contribution, which is not in
        the sum yet. It counts in full, as if all others' were the same: the worker goes on from where its own optimizer
        is, and its moments fit its parameters."""
        self._copy(self._shown, self.sum + self._workers * self.contribution if under_way else self.sum)
        self._wait()

    @torch.no_grad()
    def show(self) -> None:
        """Makes the parameters what the contributions in the sum that was taken have made of them."""
        for where, run in self._runs():
            parts = torch.split(self._parameters(where, run), [named.parameter.numel() for named in run])
            for named, part in zip(run, parts, strict=True):
                named.parameter.copy_(part.view(named.parameter.shape))

    def _copy(self, to: Tensor, values: Tensor) -> None:
        """Between the host's memory and the device's, on a stream of its own."""
        if self._stream is None:
            to.copy_(values)
            return
        self._stream.wait_stream(torch.accelerator.current_stream(self.device))
        with self._stream:
            to.copy_(values, non_blocking=True)
            if values.device == self.device:
                values.record_stream(self._stream)

    def _wait(self) -> None:
        if self._stream is not None:
            self._stream.synchronize()


def _flat(run: Sequence[Named]) -> Tensor:
    parts = [named.parameter.detach().reshape(-1) for named in run]
    if len({part.dtype for part in parts}) > 1:
        parts = [part.double() for part in parts]
    return torch.cat(parts)


def _check(parameters: Sequence[Named]) -> None:
    if not parameters:
        raise BadParameters("the optimizer has no parameter that is trained: expected one with requires_grad")
    for named in parameters:
        parameter = named.parameter
        if parameter.dtype not in DTYPES:
            names = ", ".join(str(dtype).removeprefix("torch.") for dtype in DTYPES)
            raise BadParameters(f"{named.name} is of {str(parameter.dtype).removeprefix('torch.')}: expected {names}")
        if parameter.layout is not torch.strided or parameter.is_meta or hasattr(parameter, "device_mesh"):
            raise BadParameters(f"{named.name} is no dense tensor with its values on this process's device")
        if not parameter.numel():
            raise BadParameters(f"{named.name} has no values")
    devices = {str(named.parameter.device) for named in parameters}
    if len(devices) > 1:
        raise BadParameters(f"the parameters are on {' and '.join(sorted(devices))}: expected one device")
