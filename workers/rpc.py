"""A parameter server over PyTorch's own RPC (`torch.distributed.rpc`), as a baseline: EXCHANGE=rpc.

The rules and the number format are those of the server over TCP (workers/server.py). Only the transport differs: a
worker's contribution is the argument of a remote call, and the sum is the result.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from serene.client import NoAnswer
from serene.strategy import Strategy
from serene.workers.barrier import Barrier, WorkerGone
from serene.workers.baselines import Baseline, ExchangeFailed, Place, first_line

SERVER = "server"
CONNECT_S, SHUTDOWN_S = 120.0, 30.0


@dataclass(frozen=True)
class Served:
    """The job that remote calls use in the server's process. finished: passed when all workers have done their
    steps."""

    barrier: Barrier
    finished: threading.Barrier


_served: Served | None = None


def serve(listen: tuple[str, int], workers: int, barrier: Barrier) -> None:
    """Serves one job until all workers have left. Raises NoAnswer or WorkerGone."""
    global _served
    _served = Served(barrier, threading.Barrier(workers))
    rpc = _connect(SERVER, 0, workers, listen, CONNECT_S)
    rpc.shutdown(graceful=True, timeout=0)  # returns when all workers have called it
    if barrier.failed is not None:
        raise barrier.failed


def contribute(worker: int, round_: int, values: Any) -> tuple[Any, int, float]:
    """Called remotely. values: int32 tensor. Returns the same as `Barrier.contribute`, and the sum as a tensor."""
    import torch

    assert _served is not None
    read, total, waited = _served.barrier.contribute(worker, round_, values.numpy())
    return torch.from_numpy(read), total, waited


def last(worker: int) -> tuple[Any, int, float]:
    """Called remotely. Blocks until all workers have called it, and returns the last sum, as `contribute` does."""
    import torch

    assert _served is not None
    try:
        _served.finished.wait()
    except threading.BrokenBarrierError:
        raise _served.barrier.failed or WorkerGone(f"worker {worker} is late") from None
    read, total = _served.barrier.last()
    return torch.from_numpy(read), total, 0.0


def leave(worker: int) -> None:
    """Called remotely by a worker that ends before the job: no other worker may wait for it."""
    assert _served is not None
    _served.barrier.fail(WorkerGone(f"worker {worker} left before the end of the job"))
    _served.finished.abort()


class RpcExchange(Baseline):
    """Exchanges gradients by remote calls of PyTorch's RPC. server: the address where the processes meet, which is the
    server's."""

    def __init__(
        self,
        place: Place,
        strategy: Strategy,
        apply: Callable[[np.ndarray], None],
        server: tuple[str, int],
        join_timeout_s: float,
    ) -> None:
        super().__init__(place, strategy, apply)
        self._server = server
        self._join_timeout_s = join_timeout_s
        self._rpc: Any = None
        self._finished = False

    def join(self) -> Place:
        name, rank = f"worker-{self.place.worker}", 1 + self.place.worker
        self._rpc = _connect(name, rank, self.place.workers, self._server, self._join_timeout_s)
        return self.place

    def _contribute(self, values: np.ndarray) -> tuple[np.ndarray, int, float]:
        import torch

        return self._call(contribute, self.place.worker, self.iteration, torch.from_numpy(values))

    def _call(
        self, function: Callable[..., Any], *arguments: Any, timeout_s: float = 0
    ) -> tuple[np.ndarray, int, float]:
        """Calls a function at the server. Returns the same as `_contribute`. timeout_s: 0 is for ever."""
        answered = threading.Event()
        try:
            future = self._rpc.rpc_async(SERVER, function, arguments, timeout=timeout_s)
            future.add_done_callback(lambda _: answered.set())
            answered.wait()  # unlike future.wait(), it can be interrupted
            read, total, waited = future.wait()
        except (RuntimeError, WorkerGone) as error:
            raise ExchangeFailed(f"PyTorch's RPC: {first_line(error)}") from error
        return *self._since_last(read.numpy(), total), waited

    def finish(self, timeout_s: float) -> bool:
        difference, contributions, _ = self._call(last, self.place.worker, timeout_s=timeout_s)
        self._apply_last(difference, contributions)
        self._finished = True
        return True

    def abandon(self) -> None:
        rpc, self._rpc = self._rpc, None
        if rpc is None:
            return
        try:
            if not self._finished:
                rpc.rpc_sync(SERVER, leave, (self.place.worker,), timeout=SHUTDOWN_S)
            rpc.shutdown(graceful=True, timeout=SHUTDOWN_S)
        except RuntimeError:  # another process has died
            with suppress(RuntimeError):
                rpc.shutdown(graceful=False)


def _connect(name: str, rank: int, workers: int, meet_at: tuple[str, int], timeout_s: float) -> Any:
    """Connects this process, and returns `torch.distributed.rpc` when all processes are connected. Raises NoAnswer."""
    import torch.distributed.rpc

    rpc: Any = torch.distributed.rpc
    options = rpc.TensorPipeRpcBackendOptions(
        # A call blocks a thread of the server while its worker waits for others.
        num_worker_threads=max(16, 2 * workers),
        rpc_timeout=timeout_s,
        init_method=f"tcp://{meet_at[0]}:{meet_at[1]}",
        # TCP alone: otherwise processes of one machine copy tensors through shared memory, past the emulated links.
        _transports=["uv"],
        _channels=["basic"],
    )
    try:
        rpc.init_rpc(name, rank=rank, world_size=1 + workers, rpc_backend_options=options)
    except (RuntimeError, ValueError) as error:
        raise NoAnswer(f"PyTorch's RPC: some processes did not connect: {first_line(error)}") from error
    return rpc
