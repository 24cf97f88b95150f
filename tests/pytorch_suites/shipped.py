"""Those of PyTorch's own tests that come with it, for `tests.pytorch_suites.playing`."""

from __future__ import annotations

from torch.testing._internal.common_distributed import MultiProcessTestCase
from torch.testing._internal.distributed import ddp_under_dist_autograd_test as under_autograd
from torch.testing._internal.distributed import distributed_test
from torch.testing._internal.distributed.rpc.tensorpipe_rpc_agent_test_fixture import TensorPipeRpcAgentTestFixture


class Forked(MultiProcessTestCase):
    def setUp(self) -> None:
        super().setUp()
        self._spawn_processes()


class Distributed(Forked, distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
    """c10d's collectives, point to point, DistributedDataParallel, `join`, profiler and debug level."""


# The tests' own class first, which says how many ranks there are.


class UnderAutograd(under_autograd.DdpUnderDistAutogradTest, TensorPipeRpcAgentTestFixture, Forked):
    """DistributedDataParallel beside parameters on other ranks, by RPC."""


class Comparison(under_autograd.DdpComparisonTest, TensorPipeRpcAgentTestFixture, Forked):
    """DistributedDataParallel compared with one process, by RPC."""
