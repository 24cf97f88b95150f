"""PyTorch's process group over racks in Mininet: two racks of two hosts, a rank in each, leaves and a root."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from serene.controller.http.client import ControllerClient
from serene.torch.placement import RACK
from tests.endtoend.process_groups import end, hosts, losses_with_gloo, said, start

pytestmark = [pytest.mark.mininet, pytest.mark.timeout(600)]

RACKS, RANKS, STEPS = 2, 4, 10
NEAR = 5e-3  # of a loss; as tests.torch.test_examples has it


def test_sums_over_racks_are_right_for_each_group(target: str, tmp_path: Path) -> None:
    """The groups are all ranks, one rank of each rack, and the ranks of one rack."""
    with hosts(target, tmp_path, ranks=RANKS, racks=RACKS) as network:
        end(start(network, tmp_path, ["-m", "tests.torch.summing"]), tmp_path)
        with ControllerClient(network.unix_url) as client:
            by_rack = {tuple(job.racks) for job in client.jobs()}
    lines = [text.strip().splitlines()[-2:] for text in said(tmp_path)]
    assert [line[1] for line in lines] == ["right"] * RANKS
    assert all("job None" not in line[0] for line in lines), "a group goes through gloo"
    assert by_rack == {(2, 2), (1, 1), (0, 2)}


@pytest.fixture(scope="module")
def gloo_losses(tmp_path_factory: pytest.TempPathFactory) -> np.ndarray:
    return losses_with_gloo("sharded", RANKS, tmp_path_factory.mktemp("gloo"), STEPS)


def test_sharded_training_over_racks_equals_gloo(target: str, gloo_losses: np.ndarray, tmp_path: Path) -> None:
    """A sharded model, which uses all-reduce, reduce-scatter and all-gather."""
    out, steps = tmp_path / "ours.json", ["--steps", str(STEPS)]
    with hosts(target, tmp_path, ranks=RANKS, racks=RACKS) as network:
        end(start(network, tmp_path, ["examples/sharded.py", *steps, "--losses", str(out)]), tmp_path)
        with ControllerClient(network.unix_url) as client:
            (job,) = client.jobs()
            assert (job.state.value, job.racks) == ("finished", [2, 2])
            assert all(worker.contributions >= 2 * STEPS for worker in job.workers), "sums go through the switches"
    np.testing.assert_allclose(json.loads(out.read_text()), gloo_losses, rtol=NEAR)


@pytest.mark.parametrize("target", ["embedded"], indirect=True)
def test_rank_naming_wrong_rack_fails_all_ranks(target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All ranks report it and end. Every rank claims rack 1 here, but rank 0's host is in rack 0."""
    monkeypatch.setenv(RACK, "1")
    with hosts(target, tmp_path, ranks=RANKS, racks=RACKS) as network:
        processes = start(network, tmp_path, ["-m", "tests.torch.summing"])
        assert all(process.wait(300) == 1 for process in processes)
    for text in said(tmp_path):
        assert "names rack 1, but its HELLO came from rack 0" in text and RACK in text
