"""Error feedback for DistributedDataParallel: a gradient's rounding error is sent with the next gradient.

    model = DistributedDataParallel(module)
    model.register_comm_hook(ErrorFeedback(), mean_with_residual)

Each rank keeps its own residuals, parameter by parameter, in float64: eight bytes for each value. Under a given scale
there are eight more, for values that are lost because a residual would become too large. DistributedDataParallel passes
a bucket's parameters, so residuals stay right when it rebuilds its buckets.
"""

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import GradBucket  # type: ignore[attr-defined] # documented, but not in PyTorch's __all__
from torch.futures import Future

from serene.errors import SereneError
from serene.torch.group import SwitchGroup


class PerParameter:
    """A float64 for each value of each parameter: zero at first, and kept when the parameter moves to another
    bucket."""

    def __init__(self) -> None:
        self._by_parameter: dict[Tensor, Tensor] = {}  # parts of their buckets' tensors
        self._by_bucket: dict[tuple[int, ...], Tensor] = {}  # by the parameters' identities

    def of(self, parameter: Tensor) -> Tensor:
        """A parameter's: float64, shaped like it."""
        flat = self._by_parameter.get(parameter)
        return (
            torch.zeros(parameter.shape, dtype=torch.float64, device="cpu")
            if flat is None
            else flat.view(parameter.shape)
        )

    def of_bucket(self, parameters: Sequence[Tensor]) -> Tensor:
        """The values of a bucket's parameters, concatenated: float64[n], writable; the same tensor in each step."""
        key = tuple(id(parameter) for parameter in parameters)
        if key not in self._by_bucket:
            whole = torch.cat([self.of(parameter).reshape(-1) for parameter in parameters])
            parts = torch.split(whole, [parameter.numel() for parameter in parameters])
            self._by_parameter.update(zip(parameters, parts, strict=True))
            moved = set(key)
            self._by_bucket = {old: kept for old, kept in self._by_bucket.items() if not moved & set(old)}
            self._by_bucket[key] = whole
        return self._by_bucket[key]


class ErrorFeedback:
    """One rank's error feedback. group: the process group that adds up the gradients, by default the default group.
    Raises SereneError unless that group uses the switch."""

    def __init__(self, group: dist.ProcessGroup | None = None) -> None:
        chosen = dist.group.WORLD if group is None else group
        if not isinstance(chosen, SwitchGroup) or (chosen.size() > 1 and chosen.job is None):
            raise SereneError(f"error feedback needs a process group 'serene' with a job, not {chosen!r}")
        self._group = chosen
        self._held, self._lost = PerParameter(), PerParameter()

    def residual(self, parameter: Tensor) -> Tensor:
        """The unsent part of a parameter's gradients so far, which is sent with the next one: float64, shaped like
        it."""
        return self._held.of(parameter)

    def lost(self, parameter: Tensor) -> Tensor:
        """The part of a parameter's gradients so far that is neither sent nor in the residual: float64, shaped like it.
        Under a fixed scale or IntSGD's, a residual holds up to 2^22 limits."""
        return self._lost.of(parameter)

    def mean(self, bucket: GradBucket) -> Future[Tensor]:
        """The mean of all ranks' gradients, in the bucket's memory, with error feedback. Raises SereneError if the
        bucket's values are not those of its parameters."""
        buffer, parameters = bucket.buffer(), list(bucket.parameters())
        held = self._held.of_bucket(parameters)
        lost = self._lost.of_bucket(parameters) if self._group.scale_is_given else None
        if held.numel() != buffer.numel():
            raise SereneError(
                f"a bucket has {buffer.numel()} values, its parameters {held.numel()}: residuals cannot be assigned"
            )
        work = self._group.mean_with_feedback(buffer, held, lost)
        return work.get_future().then(lambda done: done.value()[0])


def mean_with_residual(state: ErrorFeedback, bucket: GradBucket) -> Future[Tensor]:
    """The hook for ``register_comm_hook``, which requires annotations that are types, not strings."""
    return state.mean(bucket)
