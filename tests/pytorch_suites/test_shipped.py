"""A part of PyTorch's own tests passes on the process group `serene`; `make pytorch-suites` plays them all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.controller.processes import missing
from tests.pytorch_suites.playing import play
from tests.torch.local import local_switch

# One for each kind of collective and of DistributedDataParallel's ways; those that found faults here.
PART = [
    "test_all_reduce_sum_async", "test_all_to_all", "test_barrier", "test_ddp_comparison",
    "test_ddp_grad_div_uneven_inputs", "test_DistributedDataParallel_SyncBatchNorm_No_Affine", "test_gather",
    "test_scatter", "test_reduce_scatter_tensor_cpu", "test_send_recv_any_source",
]  # fmt: skip


def test_a_part_passes(tmp_path: Path) -> None:
    if lacking := missing("embedded"):
        pytest.skip(f"the embedded switch needs {lacking}")
    with local_switch(tmp_path) as local:
        ended = play("serene", 3, local.environment, PART)
    assert {name: one for name, one in ended.items() if one.status == "failed"} == {}
    assert sum(one.status == "passed" for one in ended.values()) >= 6
