"""The process group `serene`: sums of floating-point numbers go through the switch, all other collectives through gloo.

`SwitchGroup` is a `GlooGroup`, so collectives that are not overridden here are gloo's. All-reduce and reduce-scatter
are overridden: for dense float32, float16 and bfloat16 tensors, SUM and AVG, they use a `Pool`.
"""

from __future__ import annotations

import atexit
import logging
import math
import os
import threading
import warnings
import weakref
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from multiprocessing.util import Finalize
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import (  # type: ignore[attr-defined]
    PrefixStore,
    ReduceOp,
    Store,
    Work,
)

from serene.client.allreduce.collective import Disagreement
from serene.client.allreduce.pool import Pool
from serene.errors import SereneError
from serene.torch.gloo import GlooGroup
from serene.torch.notices import LongWaits, SlowRank, await_ranks, what_each_does
from serene.torch.opening import (
    Controller,
    JobAccess,
    NotOpened,
    address_of_gloo,
    gradient_bits,
    gradient_scale,
    open_pool,
)
from serene.torch.placement import Placement
from serene.torch.ring import RankGone, Ring
from serene.torch.scaling import Scaling
from serene.torch.staging import device_of, laid_out, rounded, stored
from serene.torch.warning import warn_user
from serene.torch.work import Runner, at_the_end_of_backward, backward_pass, both, profiled

LOG = logging.getLogger("serene.torch")
DTYPES = (torch.float32, torch.float16, torch.bfloat16)
OPERATIONS = {"SUM": ReduceOp.SUM, "AVG": ReduceOp.AVG}
LEAVE_TIMEOUT_S = 2.0  # for the controller's BYE
STOP_TIMEOUT_S = 1.0  # for the thread to end


class CollectiveFailed(SereneError, RuntimeError):
    """A collective through the switch has failed, at least on this rank; the message has the reason."""


class SwitchGroup(GlooGroup):
    """One process's side of a group.

    rank, size: of this process in the group, and of the group. timeout: for a collective, and for each step of making
    the group. ranks: the default group's ranks that are in this group; empty for the default group itself.

    Raises NotOpened, on all ranks, if the default group gets no job; OpeningFailed if a rank is missing. Another group
    without a job uses gloo for all collectives, and warns.
    """

    ends_backward = True  # a collective that fails during a backward pass ends it: `backward()` raises

    def __init__(self, store: Store, rank: int, size: int, timeout: timedelta, *, ranks: Sequence[int] = ()) -> None:
        ours = PrefixStore("serene", store)
        if size > 1:
            await_ranks(ours, rank, size, timeout, ranks)
        super().__init__(store, rank, size, timeout, address_of_gloo(ours, rank, size, timeout))
        self._store = ours
        self.summed = 0  # collectives that were submitted to the switch
        self._took_part = 0  # the number of this rank's last one
        self._in_order = threading.Lock()
        self._failed: Exception | None = None
        self._left = False  # no other collective can begin
        self._process = os.getpid()
        self._pool: Pool | None = None
        self._runner: Runner | None = None
        self._ring: Ring | None = None
        self._access: JobAccess | None = None
        self._placement = Placement()
        self._waits: LongWaits | None = None
        self._slow: SlowRank | None = None
        self._scaling: Scaling | None = None
        self._backward: int | None = None  # the last backward pass whose gradients were summed
        if size > 1:
            self._open(rank, size, ranks)
        else:  # one rank needs neither, but a wrong setting is refused as with more ranks
            gradient_bits(), gradient_scale()
        if self._pool is not None:
            self._runner = Runner(f"serene-job-{self.job}", self._pool.idle)
            self._scaling = Scaling(gradient_scale(), self._pool, rank, size)
            _end_with_the_process(self)

    def _open(self, rank: int, size: int, ranks: Sequence[int]) -> None:
        try:
            world = (dist.get_rank(), dist.get_world_size()) if ranks else (rank, size)
            opened = open_pool(self._store, rank, size, self._timeout, world)
        except NotOpened as error:
            if not ranks:
                raise
            if rank == 0:
                text = f"the group of the ranks {_listed(ranks)} goes through gloo: {error}"
                warnings.warn(text, RuntimeWarning, stacklevel=2)
        else:
            self._pool, self._ring, self._access, self._placement = opened
            LOG.info("ranks %s: job %d, through %s", ranks or "all", self._access.job, self._access.way)
            self._waits = LongWaits(self._store, rank, size, self._access.job)
            if rank == 0 and not ranks:
                asked = partial(Controller().slow, self._access.job)
                self._slow = SlowRank(self._access.job, asked, self._placement.ranks(size))

    @property
    def job(self) -> int | None:
        """The group's job at the controller; None if all collectives use gloo."""
        return None if self._access is None else self._access.job

    @property
    def scale_is_given(self) -> bool:
        """Whether gradients have a given scale, so that error feedback may lose values."""
        return self._scaling is not None and self._scaling.given

    @property
    def error(self) -> Exception | None:
        """The error of a failed collective, after which the group cannot sum any more; None without one."""
        return self._failed

    def getBackendName(self) -> str:
        return "serene"

    # -- collectives -----------------------------------------------------------------------------------------

    def allreduce(self, tensors: Any, opts: Any = None, timeout: timedelta | None = None) -> Work:
        tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
        if opts is None or isinstance(opts, ReduceOp | ReduceOp.RedOpType):
            opts = _options(dist.AllreduceOptions(), opts, timeout)
        if len(tensors) == 1 and self._sums(tensors, opts.reduceOp):
            return self._sum("all_reduce", tensors, tensors, opts)
        return super().allreduce(tensors, opts)

    def mean_with_feedback(self, tensor: Tensor, residual: Tensor, lost: Tensor | None) -> Work:
        """As all-reduce with AVG, of gradients. residual, lost: float64[n], as of `Pool.all_reduce`
        (serene.torch.feedback); lost: needed only if `scale_is_given`."""
        options = _options(dist.AllreduceOptions(), ReduceOp.AVG)
        if not self._sums([tensor], options.reduceOp):  # a group of one rank, or a tensor that is not for the switch
            tensor.div_(self.size())  # as DistributedDataParallel does: gloo has no mean of sparse tensors
            return super().allreduce([tensor], _options(options, ReduceOp.SUM))
        feedback = (residual,) if lost is None else (residual, lost)
        return self._sum("all_reduce", [tensor], [tensor], options, feedback=feedback)

    def allreduce_coalesced(self, tensors: list[Tensor], opts: Any = None) -> Work:
        opts = dist.AllreduceCoalescedOptions() if opts is None else opts
        if self._sums(tensors, opts.reduceOp):
            return self._sum("all_reduce_coalesced", tensors, tensors, opts)
        return super().allreduce_coalesced(tensors, opts)

    def reduce_scatter(self, output_tensors: Any, input_tensors: Any, opts: Any = None, *rest: Any) -> Work:
        if isinstance(output_tensors, Tensor):
            output_tensors, input_tensors = [output_tensors], [list(input_tensors)]
        if opts is None or isinstance(opts, ReduceOp | ReduceOp.RedOpType):
            opts = _options(dist.ReduceScatterOptions(), opts, *rest)
        if len(output_tensors) == len(input_tensors) == 1 and self._scatters(
            output_tensors[0], input_tensors[0], opts.reduceOp
        ):
            return self._sum("reduce_scatter", input_tensors[0], output_tensors, opts, scatter=True)
        return super().reduce_scatter(output_tensors, input_tensors, opts)

    def reduce_scatter_single(self, output: Tensor, input: Tensor, opts: Any = None) -> Work:
        opts = dist.ReduceScatterOptions() if opts is None else opts
        if self._scatters(output, [input], opts.reduceOp):
            return self._sum("reduce_scatter_single", [input], [output], opts, scatter=True)
        return super().reduce_scatter_single(output, input, opts)

    def reduce_scatter_single_coalesced(self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None) -> Work:
        opts = dist.ReduceScatterOptions() if opts is None else opts
        pairs = list(zip(outputs, inputs, strict=False))
        if len(outputs) == len(inputs) and all(
            self._scatters(output, [input], opts.reduceOp) for output, input in pairs
        ):
            by_rank = [part.reshape(self.size(), -1) for part in inputs]
            ordered = [part[rank] for rank in range(self.size()) for part in by_rank]
            return self._sum("reduce_scatter_coalesced", ordered, outputs, opts, scatter=True)
        return super().reduce_scatter_single_coalesced(outputs, inputs, opts)

    # Two names each; PyTorch's versions call one or the other.

    def _reduce_scatter_base(self, output: Tensor, input: Tensor, opts: Any = None) -> Work:
        return self.reduce_scatter_single(output, input, opts)

    def reduce_scatter_tensor_coalesced(self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None) -> Work:
        return self.reduce_scatter_single_coalesced(outputs, inputs, opts)

    # -- through the switch ----------------------------------------------------------------------------------

    def _sums(self, tensors: Sequence[Tensor], operation: Any) -> bool:
        """Whether the switch adds these up."""
        return (
            self._access is not None
            and bool(tensors)
            and _name(operation) is not None
            and tensors[0].dtype in DTYPES
            and all(tensor.dtype is tensors[0].dtype and tensor.layout is torch.strided for tensor in tensors)
            and (all(tensor.device.type == "cpu" for tensor in tensors) or device_of(tensors) is not None)
        )

    def _scatters(self, output: Tensor, inputs: Sequence[Tensor], operation: Any) -> bool:
        """Whether the switch adds these up and scatters the sum. Sizes that do not fit go to gloo, which raises an
        error."""
        size = output.numel() * self.size()
        whole = len(inputs) == 1 and inputs[0].numel() == size and inputs[0].is_contiguous()
        parts = len(inputs) == self.size() and all(part.numel() == output.numel() for part in inputs)
        return (whole or parts) and self._sums([output, *inputs], operation)

    def _sum(
        self,
        what: str,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        opts: Any,
        *,
        scatter: bool = False,
        feedback: Sequence[Tensor] = (),
    ) -> Work:
        """Submits the sum of the concatenated inputs over all ranks. The outputs get all of it or, with ``scatter``,
        this rank's part; all parts are equal. what: the collective's name. feedback: residual and, if needed, lost,
        float64[n] each. Raises CollectiveFailed."""
        if self._failed is not None:
            raise CollectiveFailed(str(self._failed)) from self._failed
        with self._in_order:  # threads may share a group: numbers are given in the order in which the pool is used
            return self._submit(what, inputs, outputs, opts, scatter, feedback)

    def _submit(
        self,
        what: str,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        opts: Any,
        scatter: bool,
        feedback: Sequence[Tensor],
    ) -> Work:
        if self._left:
            raise CollectiveFailed("the group has been destroyed")
        operation = _name(opts.reduceOp)
        if not all(stored(tensor) for tensor in (*inputs, *outputs)):
            raise CollectiveFailed(
                f"{what}, {operation}: a tensor is nested or has no storage: expected dense tensors. Nothing was sent; "
                "the other ranks still wait for this rank"
            )
        self.summed += 1
        number = self.summed
        backward = backward_pass()
        call = f"{what} of {_described(inputs)}, {operation}"
        values = sum(tensor.numel() for tensor in inputs)
        signature = f"{number} {what} {inputs[0].dtype} {values} {operation}".encode()
        timeout = opts.timeout if opts.timeout > timedelta(0) else self._timeout
        inputs, outputs = [tensor.detach() for tensor in inputs], [tensor.detach() for tensor in outputs]
        copies = None if (device := device_of(inputs)) is None else self._copies_of(device)
        if copies is not None:
            given, inputs = inputs, [copies.pinned(tensor) for tensor in inputs]
            for to, values_there in zip(inputs, given, strict=True):
                copies.fetch(to, values_there)
        fetched = None if copies is None else copies.fetched()

        def run() -> None:
            if copies is not None:
                copies.wait_for(fetched)
            flat = self._exchange(inputs, not scatter, backward, feedback, signature, number, call, timeout)
            if scatter:
                flat = flat.view(self.size(), -1)[self.rank()]
            if operation == "AVG":
                flat /= self.size()
            if outputs[0].data_ptr() == flat.data_ptr() and len(outputs) == 1:
                return  # it was summed in place
            pieces = torch.split(flat, [output.numel() for output in outputs])
            for output, piece in zip(outputs, pieces, strict=True):
                sums = rounded(piece, output.dtype).view(output.shape)
                if copies is None:
                    output.copy_(sums)
                else:
                    copies.put(output, sums)
            if copies is not None:
                copies.wait()
                assert self._pool is not None
                self._pool.facts["copying_s"] = copies.waited_s

        assert self._runner is not None
        with profiled(what, run) as task:
            work = self._runner.submit(task, list(outputs))
        if backward is not None and self.ends_backward:
            at_the_end_of_backward(partial(self._end, work))
        return work

    def _end(self, work: Work) -> None:
        """In the thread of the backward pass, at its end: raises the collective's error, and warns."""
        work.wait()
        assert self._scaling is not None
        for text in self._scaling.warnings():
            warn_user(text)

    def _exchange(
        self,
        inputs: Sequence[Tensor],
        in_place: bool,
        backward: int | None,
        feedback: Sequence[Tensor],
        signature: bytes,
        number: int,
        call: str,
        timeout: timedelta,
    ) -> Tensor:
        """Returns the sums, float32[n]; in_place: in the input's own memory if it is such a tensor."""
        assert self._pool is not None and self._ring is not None
        if self._failed is not None:
            raise CollectiveFailed(str(self._failed)) from self._failed
        assert self._waits is not None
        self._pool.while_waiting = partial(self._while_waiting, number, call)
        try:
            flat = laid_out(inputs, writable=in_place)
            self._add_up(flat, backward, feedback, signature, timeout)
            self._took_part = number
            return flat
        except Disagreement:
            self._took_part = number
            calls = what_each_does(self._store, self.rank(), self.size(), number, call)
            raise CollectiveFailed(f"the ranks' calls differ: {calls}") from None
        except BaseException as error:  # after any error the other ranks must not wait for this one
            reason = self._reason(number, error)
            self._failed = CollectiveFailed(f"{call}: {reason}")
            self._ring.fail(reason)
            raise self._failed from error
        finally:
            self._pool.while_waiting = _nothing  # keeps no group: gloo's threads end with the last reference to it
            self._waits.over()

    def _while_waiting(self, number: int, call: str) -> None:
        """Raises if the unfinished collective of this number cannot end, or must not."""
        assert self._ring is not None and self._waits is not None
        if self._failed is not None:
            raise self._failed
        self._ring.check(number)
        self._waits.waiting(number, call)

    def _add_up(
        self, flat: Tensor, backward: int | None, feedback: Sequence[Tensor], signature: bytes, timeout: timedelta
    ) -> None:
        """backward: the backward pass of these gradients. They may have fewer bits than 32, as all ranks have agreed by
        now."""
        assert self._pool is not None and self._scaling is not None
        values, timeout_s = flat.numpy(), timeout.total_seconds()
        held, lost = [*(part.numpy() for part in feedback), None, None][:2]
        if backward is not None and backward != self._backward:
            self._backward = backward
            self._pool.end_step()
        bits, unit = self._scaling.of(backward)
        gradients = backward is not None and self._scaling.given
        full_signature = signature + b" of gradients" if gradients else signature
        try:
            self._pool.all_reduce(values, full_signature, timeout_s, bits=bits, unit=unit, residual=held, lost=lost)
        except Disagreement:
            if self._pool.precision == 32 and not self._scaling.given:
                raise
            # One rank may call in its backward pass a collective that another rank calls outside of any, as
            # DistributedDataParallel does when a rank has joined. All ranks detect that before any has changed its
            # values, and sum again in 32 bits, without any scale.
            self._pool.all_reduce(values, signature, timeout_s, residual=held)
        else:
            if gradients:
                self._scaling.learn(values)

    def _reason(self, number: int, error: BaseException) -> str:
        """The reason why a collective has failed, with the known facts about another failed rank."""
        assert self._ring is not None
        if not isinstance(error, RankGone):
            try:
                self._ring.check(number)
            except RankGone as gone:
                error = gone
        if isinstance(error, RankGone):
            return str(error)
        return f"on rank {self.rank()}: {error if isinstance(error, SereneError) else repr(error)}"

    # -- through gloo ----------------------------------------------------------------------------------------

    def barrier(self, *args: Any, **named: Any) -> Work:
        """Ends when every rank has called it and this rank's earlier sums have ended. gloo's barrier likewise waits for
        gloo's collectives."""
        others = self._plain.barrier(*args, **named)
        last = None if self._runner is None else self._runner.last_under_way()
        return others if last is None else both(last, others)

    # -- the end ---------------------------------------------------------------------------------------------

    def shutdown(self) -> None:
        """For `destroy_process_group`: leaves the job when unfinished collectives have ended. When all ranks have left,
        the job is over."""
        self.leave(self._timeout.total_seconds())
        self._plain.shutdown()

    def abort(self) -> None:
        self.leave(0.0)
        self._plain.abort()

    def leave(self, patience_s: float) -> None:
        """Leaves the job. patience_s: seconds to wait for unfinished and queued collectives; those that take longer
        fail, also on the other ranks."""
        if self._pool is None or self._runner is None or self._ring is None or self._process != os.getpid():
            return
        with self._in_order:
            if self._left:
                return
            self._left = True
        if self._slow is not None:
            self._slow.stop()
        died = [self._placement.worker(rank) for rank in self._ring.died()]
        if self._runner.stop(max(patience_s, STOP_TIMEOUT_S)):
            self._ring.leave(self._took_part)
        else:
            ended = f"rank {self.rank()} has ended in the middle of a collective"
            self._failed = CollectiveFailed(ended)  # ends the unfinished collective, and the queued ones
            self._ring.fail(ended)
            if not self._runner.stop(STOP_TIMEOUT_S):
                return
        self._pool.leave(LEAVE_TIMEOUT_S, died)
        self._pool.close()
        self._pool = None

    def close_in_child(self) -> None:
        """Closes the sockets in a forked child (of a DataLoader, for example): while a child has them open, the death
        of this process is not detected."""
        if self._pool is not None and self._ring is not None:
            self._ring.close()
            self._pool.close()
            self._failed = CollectiveFailed("the group belongs to the parent process: a forked process needs its own")


def _end_with_the_process(group: SwitchGroup) -> None:
    """Makes a script that ends without `destroy_process_group`, or by an exception, leave its job nevertheless, so that
    the others do not wait for it."""
    there = weakref.ref(group)

    def leave() -> None:
        if (left := there()) is not None:
            left.leave(0.0)

    def close_in_child() -> None:
        if (left := there()) is not None:
            left.close_in_child()

    atexit.register(leave)
    Finalize(None, leave, exitpriority=0)  # in a multiprocessing process, which may end without atexit
    os.register_at_fork(after_in_child=close_in_child)


def _name(operation: Any) -> str | None:
    """The name of a ReduceOp, which cannot be hashed; None if the switch does not support it."""
    return next((name for name, ours in OPERATIONS.items() if operation == ours), None)


def _options(options: Any, operation: Any, timeout: timedelta | None = None) -> Any:
    if operation is not None:
        options.reduceOp = operation
    if timeout is not None:
        options.timeout = timeout
    return options


def _described(tensors: Sequence[Tensor]) -> str:
    kind = str(tensors[0].dtype).removeprefix("torch.")
    shapes = [list(tensor.shape) for tensor in tensors]
    if all(shape == shapes[0] for shape in shapes[1:]):
        return f"{kind}{shapes[0]}" if len(shapes) == 1 else f"{len(shapes)} {kind}{shapes[0]}"
    return f"{kind} of {len(shapes)} shapes, {math.fsum(tensor.numel() for tensor in tensors):.0f} values"


def _nothing() -> None:
    """The pool's callback while it waits, outside of a collective."""


def _listed(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks))
