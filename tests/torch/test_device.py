"""Tensors on an accelerator: on the stand-in (tests/torch/standin) everywhere, and on a GPU where there is one."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest
import torch

from tests.controller.processes import ROOT
from tests.torch.local import Local, outputs, start_ranks

DEVICES = [
    pytest.param(
        "standin", marks=pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++ to compile the stand-in")
    ),
    pytest.param(
        "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU and PyTorch for CUDA")
    ),
]


def printed(local: Local, device: str, backend: str) -> list[dict[str, str]]:
    """Returns what each rank prints, by topic."""
    texts = outputs(start_ranks(local, 2, ["-m", "tests.torch.on_device", device, backend]))
    return [dict(line.split(": ", 1) for line in text.splitlines() if ": " in line) for text in texts]


@pytest.mark.parametrize("device", DEVICES)
def test_device_tensors_are_summed_as_host_tensors(local: Local, device: str) -> None:
    """Each collective, DistributedDataParallel and a replica of shared training. Work that a stream enqueued before a
    sum is in it; work enqueued after a sum sees it."""
    if device == "standin":
        subprocess.run([sys.executable, "-c", "import tests.torch.standin"], cwd=ROOT, check=True, timeout=1800)
    ours, theirs = printed(local, device, "serene"), printed(local, device, "gloo")
    for rank, expected in enumerate(theirs):
        for what in [what for what in expected if expected[what].startswith("[")]:
            values = json.loads(ours[rank][what])
            assert values == pytest.approx(json.loads(expected[what]), rel=1e-5, abs=1e-6), (rank, what)
        assert ours[rank]["replica"] == expected["replica"]
        assert {"losses", "all_reduce torch.bfloat16", "broadcast", "replica"} <= set(expected)
    if device == "standin":
        assert [rank["in order"] for rank in ours] == ["[4.0, 8.0, 12.0]"] * 2
