"""Error feedback in DistributedDataParallel: nothing of a gradient is lost, to the bit."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn

from serene.errors import SereneError
from serene.torch import ErrorFeedback
from serene.torch.feedback import PerParameter
from tests.torch.local import Local, outputs, start_ranks

WORKERS = 2  # the mean is half the sum, to the bit


@pytest.mark.parametrize("bits", ["16", "8"])
def test_what_is_read_and_the_residuals_are_the_gradients(local: Local, bits: str) -> None:
    ranks = start_ranks(local, WORKERS, ["-m", "tests.torch.error_feedback"], [{"SERENE_PRECISION": bits}] * WORKERS)
    for said in [json.loads(text.splitlines()[-1]) for text in outputs(ranks)]:
        assert said["precision"] == int(bits) and said["buckets"] > 1
        assert said["apart"] == 0
        assert said["held"] > 0
        assert said["kept"] == [True, False], "nothing is lost under a voted scale, so nothing is kept of it"
        assert said["sparse"] == [0.5, 0.5, 0, 0, 0, 1]


def test_a_residual_goes_with_its_parameter() -> None:
    """From bucket to bucket, as DistributedDataParallel makes them anew."""
    kept = PerParameter()
    first, second, third = (nn.Parameter(torch.zeros(size)) for size in (3, 4, 5))
    held = kept.of_bucket([first, second])
    held[:] = torch.arange(7.0)
    assert kept.of_bucket([first, second]) is held
    kept.of_bucket([third])[:] = 9.0
    assert kept.of_bucket([second, third]).tolist() == [3, 4, 5, 6, 9, 9, 9, 9, 9]
    assert kept.of_bucket([first]).tolist() == [0, 1, 2]
    assert kept.of(third).tolist() == [9] * 5
    assert len(kept._by_bucket) == 2


def test_a_group_of_another_kind_is_refused() -> None:
    with pytest.raises(SereneError, match="expected a process group 'serene' with a job"):
        ErrorFeedback(object())  # type: ignore[arg-type]
