"""Those of PyTorch's own tests that come with it, on a process group of any backend.

    BACKEND=serene WORLD_SIZE=3 python -m pytest tests/pytorch_suites/shipped.py

Each test starts its ranks, which import this module. Groups that a test asks of gloo by name are of $BACKEND.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any

import torch.distributed as dist
from torch.testing._internal.common_distributed import MultiProcessTestCase
from torch.testing._internal.distributed import ddp_under_dist_autograd_test as under_autograd
from torch.testing._internal.distributed import distributed_test
from torch.testing._internal.distributed.rpc.tensorpipe_rpc_agent_test_fixture import TensorPipeRpcAgentTestFixture

init_process_group = dist.init_process_group


def init_of_backend(backend: str | None = None, **named: Any) -> None:
    init_process_group(os.environ["BACKEND"] if backend == "gloo" else backend, **named)


dist.init_process_group = init_of_backend  # type: ignore[assignment]


# Ranks are forked from a process without threads that has imported all of this, which each would else do for itself.
RANKS = multiprocessing.get_context("forkserver")
RANKS.set_forkserver_preload([__name__])


def in_environment(environment: dict[str, str], target: Callable[..., None], *args: Any, **named: Any) -> None:
    os.environ.update(environment)
    target(*args, **named)


def forked(target: Callable[..., None], args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> BaseProcess:
    return RANKS.Process(target=in_environment, args=(dict(os.environ), target, *args), kwargs=kwargs, name=name)


class Forked(MultiProcessTestCase):
    def _spawn_processes(self) -> None:
        self._start_processes(forked)


class Distributed(Forked, distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
    """c10d's collectives, point to point, DistributedDataParallel, `join`, profiler and debug level."""

    def setUp(self) -> None:
        super().setUp()  # type: ignore[no-untyped-call]
        self._spawn_processes()


class UnderAutograd(Forked, TensorPipeRpcAgentTestFixture, under_autograd.DdpUnderDistAutogradTest):
    """DistributedDataParallel beside parameters on other ranks, by RPC."""

    def setUp(self) -> None:
        super().setUp()
        self._spawn_processes()


class Comparison(Forked, TensorPipeRpcAgentTestFixture, under_autograd.DdpComparisonTest):
    """DistributedDataParallel compared with one process, by RPC."""

    def setUp(self) -> None:
        super().setUp()
        self._spawn_processes()
