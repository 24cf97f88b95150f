"""PyTorch's DistributedDataParallel through the switch.

    model = torch.nn.parallel.DistributedDataParallel(network)      # any group: it broadcasts the first parameters
    with SwitchReducer(network, worker=dist.get_rank()) as reducer:
        model.register_comm_hook(reducer, reduce_bucket)
        ...                                                         # train as always

The gradients of a bucket are sent while the backward pass still computes the next one. What DDP gets is the sum of what
all workers contributed since the last read, divided by the number of workers that take part: under BSP the mean, as
without the hook.
"""

# Without "from __future__ import annotations": DDP looks at the annotations of its hooks, which have to be types.
import logging
import threading
import warnings
from itertools import count

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import GradBucket  # type: ignore[attr-defined] # documented, but not in PyTorch's __all__
from torch.futures import Future
from typing_extensions import Self

from serene.client import Client, Session, SessionLost, Transport, UdpTransport
from serene.client.parts import Parts
from serene.errors import SereneError, choices
from serene.program import Program
from serene.torch.waiting import RanksWaiting, group_timeout_s
from serene.torch.work import at_the_end_of_backward, backward_pass

LOG = logging.getLogger("serene.torch")
DTYPES = (torch.float32, torch.float16, torch.bfloat16)
_numbers = count()  # numbers the reducers of this process: alike on all ranks, which make theirs together


class SwitchReducer:
    """One worker of a job, for one module on the CPU.

    Each parameter that is trained has slots of its own, so it does not matter how DDP makes its buckets. Where
    `torch.distributed` is in use, all ranks make their reducers together.

    worker: over racks, its number in its rack. transport: by default UDP to the switch's usual address. program: the
    one that the switch runs; it says how many values a slot has. timeout_s: to join. wait_timeout_s: `backward()`
    raises NoAnswer after so long a wait for other ranks (under BSP, for one that has died); by default the process
    group's timeout. Raises what `Client.join` and `Client.catch_up` raise, and SereneError for a module without
    parameters that are trained, and for another program than the switch's.
    """

    def __init__(
        self,
        module: nn.Module,
        *,
        job: int = 0,
        worker: int,
        transport: Transport | None = None,
        program: str = "serene",
        timeout_s: float = 60.0,
        wait_timeout_s: float | None = None,
    ) -> None:
        self._number = next(_numbers)
        self._wait_timeout_s = group_timeout_s() if wait_timeout_s is None else wait_timeout_s
        lanes = Program.load(program).lanes
        self._job, self._worker = job, worker
        self._first_slot: dict[int, int] = {}  # by the parameter's identity
        slots = 0
        for parameter in module.parameters():
            if parameter.requires_grad:
                self._first_slot[id(parameter)] = slots
                slots += -(-parameter.numel() // lanes)
        if not slots:
            raise SereneError("the module has no parameter that is trained: expected one with requires_grad")
        self.client = Client(transport or UdpTransport(), job, worker, slots * lanes)
        self.session = Session(self.client, join_timeout_s=timeout_s, on_lost=self._warn_of_loss)
        self._clipped_warned = 0
        self._risk_warned = 0
        try:
            joined = self.client.join(timeout_s)
            if joined.lanes != lanes:
                raise SereneError(
                    f"the switch has {joined.lanes} values in a slot, program {program!r} has {lanes}: name the "
                    "program that the switch runs"
                )
            self._parts = self._begin_together()
        except BaseException:
            self.client.close()
            raise

    def _begin_together(self) -> Parts:
        """Every rank reads the sum as it is before any of them contributes: what earlier processes have contributed is
        in the parameters that these begin with, or is meant to be forgotten. The first barrier ends when all have
        joined, so that all read under the same epoch."""
        together = dist.is_available() and dist.is_initialized()
        if together:
            dist.barrier()
        try:
            if self.session.catch_up() is None:
                self.client.pull()
        except SessionLost as lost:
            self.session.resume(lost)
        waiting = RanksWaiting.of_all(f"serene/reducer {self._number}") if together else None
        parts = Parts(self.session, patience_s=self._wait_timeout_s, waiting=waiting)
        try:
            if together:
                dist.barrier()
        except BaseException:
            parts.close()
            raise
        return parts

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        self.close(leave=kind is None)

    def close(self, *, leave: bool = True) -> None:
        """Ends the exchange and closes the client. leave: leaves the job first, so that the others do not wait for this
        worker any more."""
        self._parts.close()
        try:
            if leave:
                self.session.leave()
        finally:
            self.client.close()

    def reduce(self, bucket: GradBucket) -> Future[Tensor]:
        """The bucket's mean gradient, when the switch has answered: in the bucket's own type, though float32 is summed.
        Raises SereneError for a gradient of another type, or of a parameter that the module did not have."""
        answered: Future[None] = Future()
        own = bucket.buffer() if backward_pass() is not None else None
        kind = bucket.gradients()[0].dtype
        parts = [
            self._parts.submit(self._slot_of(parameter), self._vector(gradient))
            for parameter, gradient in zip(bucket.parameters(), bucket.gradients(), strict=True)
        ]
        left, lock = len(parts), threading.Lock()

        def arrived(_: object) -> None:
            nonlocal left
            with lock:  # called in the exchange's thread, or in this one where the part has arrived already
                left -= 1
                if left:
                    return
            answered.set_result(None)

        def failed() -> BaseException | None:
            return next((error for part in parts if (error := part.exception()) is not None), None)

        def check() -> None:
            if (error := failed()) is not None:
                raise error

        def mean(_: object) -> Tensor:
            """After an error, in a backward pass, the bucket's own gradient, and the pass raises the error when it ends
            (``check``). DDP would take an error that is set in a future for a gradient; and one raised here would end
            DDP's own callback, after which DDP cannot be used any more."""
            if own is not None and failed() is not None:
                return own
            updates = [part.result() for part in parts]
            self._warn_of_clipping()
            self._warn_of_overflow()
            each = [torch.from_numpy(update.delta) / max(update.members, 1) for update in updates]
            return torch.cat(each).to(kind)

        if own is not None:
            # Twice, so that the check comes after DDP's own callback, which is queued in between.
            at_the_end_of_backward(lambda: at_the_end_of_backward(check))
        result: Future[Tensor] = answered.then(mean)
        for part in parts:
            part.add_done_callback(arrived)
        return result

    def _vector(self, gradient: Tensor) -> np.ndarray:
        """float32[n], a copy: DDP writes the result to the gradient's memory."""
        if gradient.dtype not in DTYPES:
            names = choices(str(dtype).removeprefix("torch.") for dtype in DTYPES)
            raise SereneError(f"a gradient of {str(gradient.dtype).removeprefix('torch.')}: expected {names}")
        vector: np.ndarray = gradient.detach().to(torch.float32, copy=True).reshape(-1).numpy()
        return vector

    @property
    def iterations(self) -> int:
        """How many iterations are over: every parameter's gradient was contributed, and the sums were read."""
        return self.session.iteration

    @property
    def reads_at_risk(self) -> int:
        """How many parts had a sum that may have exceeded 32 bits."""
        return self.session.reads_at_risk

    def _warn_of_clipping(self) -> None:
        """Warns once, and again whenever there are ten times as many values."""
        clipped = self.client.clipped_values
        if clipped >= max(10 * self._clipped_warned, 1):
            self._clipped_warned = clipped
            fixed = self.client.fixed_point
            warnings.warn(
                f"{clipped} gradient values so far were beyond the job's limit of {fixed.limit:g} and were clipped: do "
                "not scale the loss, or make the job with a larger --limit",
                RuntimeWarning,
                stacklevel=2,
            )

    def _warn_of_loss(self, lost: SessionLost) -> None:
        LOG.warning("worker %d of job %d: %s; joining again", self._worker, self._job, lost)

    def _warn_of_overflow(self) -> None:
        """As often as of clipping."""
        if self.reads_at_risk >= max(10 * self._risk_warned, 1):
            self._risk_warned = self.reads_at_risk
            fixed = self.client.fixed_point
            warnings.warn(
                f"{self.reads_at_risk} reads so far held more than {fixed.capacity} contributions of up to "
                f"{fixed.limit:g}, which 32 bits may not hold: this worker's gradients may be wrong; make the job with "
                "a smaller --limit or --scale, or let the workers go less far apart",
                RuntimeWarning,
                stacklevel=2,
            )

    def _slot_of(self, parameter: Tensor) -> int:
        try:
            return self._first_slot[id(parameter)]
        except KeyError:
            raise SereneError(
                "the bucket has a parameter that the reducer's module did not have when the reducer was made"
            ) from None


def reduce_bucket(reducer: SwitchReducer, bucket: GradBucket) -> Future[Tensor]:
    """The hook for ``register_comm_hook``."""
    return reducer.reduce(bucket)
