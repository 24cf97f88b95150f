"""Parameters that several workers change together: each holds ``start + unit * sum``, from the same integers.

A worker's own optimiser changes its parameters. The *update* is this change since the worker's last contribution. The
contribution is the update, weighted and rounded to units. The *residual* is the part that rounding or the limit leaves;
it is added to the next contribution. The switch adds up all contributions modulo 2^32.

Each worker has its own *outer momentum* (that of SlowMo and DiLoCo). A worker adds it to its update before sending, so
parameters stay the sum of all contributions. It is linear in the update. So under BSP the mean of the workers' outer
steps is the outer step of the mean update, as in DiLoCo.

The sum never leaves plus or minus 2^31 units. A worker keeps the sum that it has read within `REACH`. At most a few
contributions, of at most `limit_for` units each, are made before their workers have read that it was crossed. So a read
is the sum itself, with any number of contributions and at any time.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from serene.errors import SereneError, plural
from serene.fixedpoint import LARGEST
from serene.torch.staging import Copies

REACH = 2**30  # largest distance of a parameter from its start, in units
ROUND_MOST = 2**27  # the largest sum of one contribution of each worker, in units
FIRST_UPDATES = 2**14  # a parameter may move by so many of the largest first update,
STARTS = 2**8  # and by so many of the largest value that a parameter begins with
RUN = 1 << 16  # values that are computed at once: they fit a processor's cache
RUN_ON_DEVICE = 1 << 24
DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


class BadUpdate(SereneError):
    """An update has a value that is not finite."""


class BadParameters(SereneError):
    """Parameters that cannot be shared; the message names them."""


def limit_for(workers: int) -> int:
    """The largest value of a contribution, in units: a power of two."""
    return ROUND_MOST >> (workers - 1).bit_length()


def scale_for(reach: float, workers: int) -> int:
    """Units in 1.0, a power of two, so that a parameter may move by ``reach`` from its start."""
    largest = (LARGEST // workers).bit_length() - 1
    return 1 << min(max(math.floor(math.log2(REACH / reach)), 0), largest)


@dataclass(frozen=True)
class Named:
    """A parameter, and its name in messages."""

    name: str
    parameter: Tensor


@dataclass(frozen=True)
class _Run:
    """Values that are computed at once: some of one parameter's, or all of several small ones. where: in the vector;
    part: of the one parameter's values."""

    where: slice
    named: Sequence[Named]
    part: slice

    def values(self) -> Tensor:
        """Their present values."""
        if len(self.named) == 1:
            return self.named[0].parameter.detach().reshape(-1)[self.part]
        parts = [each.parameter.detach().reshape(-1) for each in self.named]
        if len({part.dtype for part in parts}) > 1:
            parts = [part.double() for part in parts]
        return torch.cat(parts)

    def split(self, values: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """The parameters, or the part of the one, each with its part of the run's values in its shape."""
        if len(self.named) > 1:
            sizes = [each.parameter.numel() for each in self.named]
            for each, part in zip(self.named, torch.split(values, sizes), strict=True):
                yield each.parameter, part.view(each.parameter.shape)
            return
        parameter = self.named[0].parameter
        if self.part.stop - self.part.start == parameter.numel():
            yield parameter, values.view(parameter.shape)
        else:
            yield parameter.view(-1)[self.part], values

    @property
    def kinds(self) -> set[torch.dtype]:
        return {each.parameter.dtype for each in self.named}


def _runs(named: Sequence[Named], most: int) -> list[_Run]:
    runs, small, first, size = list[_Run](), list[Named](), 0, 0

    def end() -> None:
        nonlocal small, first, size
        if small:
            runs.append(_Run(slice(first, first + size), small, slice(0, small[0].parameter.numel())))
        small, first, size = [], first + size, 0

    for each in named:
        values = each.parameter.numel()
        if size + values > most:
            end()
        if values <= most or not each.parameter.is_contiguous():
            small.append(each)
            size += values
            continue
        for begin in range(0, values, most):
            stop = min(begin + most, values)
            runs.append(_Run(slice(first + begin, first + stop), [each], slice(begin, stop)))
        first += values
    end()
    return runs


@dataclass(frozen=True)
class _Written:
    """How far a contribution is. An interrupt may come between any two operations: what was stored in part is stored
    again. runs: so many are over when this is stored; clipped: values so far; residual, velocity: the last such run's
    new ones, float64. left: each run's values when an interrupt ended the caller; changes: by run, float64, by how much
    the program has changed them since."""

    runs: int
    clipped: int
    residual: Tensor | None = None
    velocity: Tensor | None = None
    left: Sequence[Tensor] | None = None
    changes: Mapping[int, Tensor] = field(default_factory=dict)


class Replica:
    """One worker's parameters. parameters: on one device, in the same order on all workers. outer: momentum of the
    updates, Nesterov's, from 0 to less than 1.

    Raises BadParameters without parameters, or for one that cannot be shared.
    """

    def __init__(self, parameters: Sequence[Named], outer: float = 0.0) -> None:
        _check(parameters)
        self._named = list(parameters)
        self._shapes = [named.parameter.shape for named in parameters]
        self.device = parameters[0].parameter.device
        self.values = sum(named.parameter.numel() for named in parameters)
        wide = any(named.parameter.dtype is torch.float64 for named in parameters)
        kind = torch.float64 if wide else torch.float32  # it holds the smaller types' values exactly
        self._runs = _runs(parameters, RUN if self.device.type == "cpu" else RUN_ON_DEVICE)
        self._start = torch.empty(self.values, dtype=kind, device=self.device)
        for run in self._runs:
            self._start[run.where] = run.values().to(kind)
        # The residual as float32, and of the runs in which this is not exact, some values as float64: their places, and
        # they.
        self._rounded_residual = torch.zeros(self.values, dtype=torch.float32, device=self.device)
        self._exceptions = dict[int, tuple[Tensor | slice, Tensor]]()
        self._outer = outer
        self._velocity = torch.zeros(self.values if outer else 0, dtype=torch.float64, device=self.device)
        self._copies = Copies(self.device)
        # On the host also where the program has another default device.
        self.sum = torch.zeros(self.values, dtype=torch.int32, device="cpu")  # as it was read last
        pinned = self.device.type != "cpu"
        self.contribution = torch.zeros(self.values, dtype=torch.int32, device="cpu", pin_memory=pinned)  # the last one
        self.sent = torch.zeros(self.values, dtype=torch.int32, device="cpu")  # the sum of what the caller has sent
        # What the parameters began with. On the host it has no memory of its own after the first exchange, unless a
        # contribution is under way.
        self._shown = self.sum.to(self.device)
        self._pinned = self._copies.pinned(self.sum) if pinned else None  # the client's memory is not
        self.unit = 0.0
        self._limit = 0
        self._workers = 1  # by which the last contribution was divided
        self.clipped = 0  # values of all contributions so far that the limit, or the reach, has cut
        self._written: _Written | None = None  # of a contribution that has begun; None after `show`

    @property
    def start(self) -> Tensor:
        """The parameters' first values, float32[values], or float64 if a parameter is."""
        return self._start

    @property
    def outer_momentum(self) -> list[Tensor]:
        """Of each parameter the momentum of ``outer``, shaped like it and in its unit: float64, views. Empty without
        ``outer``."""
        return self._by_parameter(self._velocity) if self._outer else []

    def set_outer_momentum(self, parts: Sequence[Tensor | None]) -> None:
        """None: zeros. Without ``outer`` it has no effect."""
        for to, part in zip(self.outer_momentum, parts[: len(self.outer_momentum)], strict=True):
            to.zero_() if part is None else to.copy_(part)

    @torch.no_grad()
    def pending(self) -> list[Tensor]:
        """Of each parameter, shaped like it, float64: what the parameters as of `show` lack of this worker's updates.
        It is the residual, and what their own type has rounded off."""
        residuals = (self._residual(number) + self._rounded_off(run) for number, run in enumerate(self._runs))
        return self._by_parameter(torch.cat(list(residuals)))

    @torch.no_grad()
    def set_pending(self, parts: Sequence[Tensor | None]) -> None:
        """As `pending` returned it where the parameters were saved. None: zeros."""
        values = torch.zeros(self.values, dtype=torch.float64, device=self.device)
        for to, part in zip(self._by_parameter(values), parts, strict=True):
            if part is not None:
                to.copy_(part)
        for number, run in enumerate(self._runs):
            self._set_residual(number, values[run.where] - self._rounded_off(run))

    def _residual(self, number: int) -> Tensor:
        """A copy of this run's residual, float64[n]."""
        values = self._rounded_residual[self._runs[number].where].double()
        if (exceptions := self._exceptions.get(number)) is not None:
            places, exact = exceptions
            values[places] = exact
        return values

    def _set_residual(self, number: int, values: Tensor) -> None:
        # First all: an interrupt finds the old residual or the new one. Those of most places take less memory so, too.
        self._exceptions[number] = slice(None), values
        exact = self._rounded_residual[self._runs[number].where].copy_(values).double()
        if torch.equal(exact, values):
            del self._exceptions[number]
        elif len(places := (exact != values).nonzero().view(-1)) <= len(values) // 2:
            self._exceptions[number] = places, values[places]

    def _rounded_off(self, run: _Run) -> Tensor:
        return self._exact(run) - self._parameters(run)

    def _by_parameter(self, values: Tensor) -> list[Tensor]:
        parts = torch.split(values, [shape.numel() for shape in self._shapes])
        return [part.view(shape) for part, shape in zip(parts, self._shapes, strict=True)]

    def digest(self) -> tuple[str, str]:
        """A digest of the parameters' shapes, types and first values: equal on two workers if, and only if, these are
        equal."""
        shapes = [(list(named.parameter.shape), str(named.parameter.dtype)) for named in self._named]
        values = hashlib.blake2b(digest_size=6)
        for run in self._runs:
            values.update(self._start[run.where].cpu().numpy().tobytes())
        return hashlib.blake2b(repr(shapes).encode(), digest_size=6).hexdigest(), values.hexdigest()

    @torch.no_grad()
    def first_reach(self) -> float:
        """The distance that parameters should be able to move, by the first update, with the residual, and their first
        values. Raises as `contribute`."""
        self._check_update()
        update = start = 0.0
        for number, run in enumerate(self._runs):
            began = self._start[run.where].to(torch.float64, copy=True)
            first = run.values().double() - began + self._residual(number)
            update = max(update, float(first.abs_().max()))
            start = max(start, float(began.abs_().max()))
        return max(FIRST_UPDATES * update, STARTS * start) or float(STARTS)

    def _check_update(self) -> None:
        """Raises BadUpdate, or BadParameters if a parameter's shape has changed."""
        for named, shape in zip(self._named, self._shapes, strict=True):
            values = named.parameter.detach()
            if values.shape != shape:
                raise BadParameters(
                    f"{named.name} has now the shape {list(values.shape)}: expected {list(shape)}, as in the beginning"
                )
            if not all(math.isfinite(float(end)) for end in torch.aminmax(values)):
                wrong = values[~torch.isfinite(values)]
                raise BadUpdate(
                    f"the update of {named.name} has {plural(len(wrong), 'value')} not finite, the first is "
                    f"{wrong[0]}: nothing was sent"
                )

    def begin(self, scale: int, limit: int) -> None:
        """The job's numbers: units in 1.0, and the largest value of a contribution in units."""
        self._limit = limit
        self.unit = 1 / scale  # last: an interrupt may come between the two

    @property
    def begun(self) -> bool:
        """Whether the job's numbers are known."""
        return self.unit > 0

    @property
    def contributing(self) -> bool:
        """Whether a contribution has begun that the parameters do not show yet."""
        return self._written is not None

    @torch.no_grad()
    def contribute(self, workers: int) -> np.ndarray:
        """The next contribution, int32[values], valid until the next one begins. workers: the number of members.

        The update is the change of the parameters since `show`. Until the next `show` a further call continues this
        contribution, after an interrupt, or returns it again. Raises BadUpdate, or BadParameters if a shape has
        changed; then no state has changed.
        """
        if self._written is None or self._written.runs < len(self._runs):
            self._check_update()
        if self._written is None:
            self._workers = workers
            self._written = _Written(0, self.clipped)
        self._write(self._written)
        step = self.unit * self._workers  # what one unit of a contribution is of an update
        for number in range(self._written.runs, len(self._runs)):
            run = self._runs[number]
            velocity = None
            update = run.values().to(torch.float64, copy=True)
            update -= self._parameters(run)
            if self._outer:
                velocity = self._velocity[run.where] * self._outer + update
                update.add_(velocity, alpha=self._outer)
            update += self._residual(number)
            units = (update / step).round_()
            clipped = self.clipped + self._fit(units, self._shown[run.where])
            self._copies.fetch(self.contribution[run.where], units.to(torch.int32))
            update.sub_(units, alpha=step)
            self._write(replace(self._written, runs=number + 1, clipped=clipped, residual=update, velocity=velocity))
        self._copies.wait_for(self._copies.fetched())
        return self.contribution.numpy()

    def _write(self, written: _Written) -> None:
        self._written = written  # from now on it is the new state that counts
        if written.residual is not None:
            self._set_residual(written.runs - 1, written.residual)
        if written.velocity is not None:
            self._velocity[self._runs[written.runs - 1].where] = written.velocity
        self.clipped = written.clipped

    def _fit(self, units: Tensor, shown: Tensor) -> int:
        """Clips values beyond the limit, or that would move a parameter beyond its reach. Returns their number."""
        least, most = (float(end) for end in torch.aminmax(units))
        low, high = (int(end) for end in torch.aminmax(shown))
        if -self._limit <= least and most <= self._limit and low + least >= -REACH and high + most <= REACH:
            return 0
        wanted = units.clone()
        units.clamp_(-self._limit, self._limit)
        # Beyond the reach a parameter may only come back.
        units.clamp_((-REACH - shown.clamp(-REACH, 0)).double(), (REACH - shown.clamp(0, REACH)).double())
        return int(torch.count_nonzero(wanted != units))

    def _exact(self, run: _Run) -> Tensor:
        """The parameters as of `show`, before they are rounded to their types, float64[n]."""
        return self._start[run.where].to(torch.float64, copy=True).add_(self._shown[run.where], alpha=self.unit)

    def _parameters(self, run: _Run) -> Tensor:
        """The parameters as of `show`: in their type if all have one, else float64[n]."""
        exact = self._exact(run)
        kinds = run.kinds
        if len(kinds) == 1:
            return exact.to(kinds.pop())
        return torch.cat([part.reshape(-1).to(of.dtype).double() for of, part in run.split(exact)])

    def read(self, values: np.ndarray) -> None:
        """Stores the sum that was read, int32[values], for `take`. Nobody may change the values later: they are not
        copied. For any thread."""
        with torch.inference_mode(False):
            self.sum = torch.from_numpy(values)

    def take(self, *, under_way: bool = False) -> None:
        """Stores the present sum for `show`. under_way: also the last own contribution, which is not in the sum yet. It
        counts in full, as if all others' were equal: the worker continues from its own optimizer's parameters, and its
        moments fit these."""
        values = torch.add(self.sum, self.contribution, alpha=self._workers) if under_way else self.sum
        if self._pinned is None:
            self._shown = values
        else:
            self._copies.put(self._shown, self._pinned.copy_(values))
            self._copies.wait()

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Where an interrupt may come in the midst of a contribution. What the program changes in the parameters after
        it, until `resume`, is an update of its own."""
        try:
            yield
        except BaseException:
            self._note_interrupt()
            raise

    @torch.no_grad()
    def _note_interrupt(self) -> None:
        if self._written is not None and self._written.left is None:  # else `resume` was interrupted
            self._written = replace(self._written, left=[run.values().clone() for run in self._runs])

    @torch.no_grad()
    def resume(self) -> bool:
        """Keeps what the program has changed since an interrupt: `show` adds it to the parameters, and the next
        contribution has it. Returns False if that is unknown, because a second interrupt came at once."""
        written = self._written
        if written is None or written.left is None:
            return written is None
        changes = dict(written.changes)
        for number in range(written.runs):  # the others' changes go with this contribution
            change = self._runs[number].values().double() - written.left[number]
            if change.any():
                changes[number] = changes[number] + change if number in changes else change
        self._written = replace(written, left=None, changes=changes)  # one operation, so a change counts once
        return True

    @torch.no_grad()
    def is_shown(self) -> bool:
        """Whether the parameters are as of `show`."""
        return all(torch.equal(run.values(), self._parameters(run)) for run in self._runs)

    @torch.no_grad()
    def show(self) -> None:
        """Sets the parameters to their start plus the stored sum, and what `resume` has kept. The last contribution is
        over."""
        changes = {} if self._written is None else self._written.changes
        for number, run in enumerate(self._runs):
            values = self._parameters(run)
            for parameter, part in run.split(values + changes[number] if number in changes else values):
                parameter.copy_(part)
        self._written = None


@torch.no_grad()
def set_values(parameters: Sequence[Named], values: Tensor) -> None:
    """Sets the parameters to these values, as of `Replica.start`. Raises BadParameters for another number of them."""
    sizes = [named.parameter.numel() for named in parameters]
    if values.shape != (sum(sizes),):
        raise BadParameters(f"start has the shape {list(values.shape)}: expected [{sum(sizes)}], all trained values")
    for named, part in zip(parameters, torch.split(values, sizes), strict=True):
        named.parameter.copy_(part.view(named.parameter.shape))


def _check(parameters: Sequence[Named]) -> None:
    if not parameters:
        raise BadParameters("the optimizer has no trainable parameter: expected one with requires_grad")
    for named in parameters:
        parameter = named.parameter
        if parameter.dtype not in DTYPES:
            names = ", ".join(str(dtype).removeprefix("torch.") for dtype in DTYPES)
            raise BadParameters(f"{named.name} is of {str(parameter.dtype).removeprefix('torch.')}: expected {names}")
        if parameter.layout is not torch.strided or parameter.is_meta or hasattr(parameter, "device_mesh"):
            raise BadParameters(f"{named.name} is not a dense tensor on this process's device")
        if not parameter.numel():
            raise BadParameters(f"{named.name} has no values")
    devices = {str(named.parameter.device) for named in parameters}
    if len(devices) > 1:
        raise BadParameters(f"the parameters are on {' and '.join(sorted(devices))}: expected one device")
