"""PyTorch's process group in Mininet hosts, a rank in each: an unmodified program trains through either switch.

Everything goes through the switch: sums through its aggregation, and what is gloo's (and PyTorch's store) through its
forwarding, since hosts have no other network.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from serene.controller.http.client import ControllerClient
from serene.torch.placement import RACK
from tests.endtoend.process_groups import STEPS, end, hosts, losses_with_gloo, outputs, start, torchrun

pytestmark = [pytest.mark.mininet, pytest.mark.timeout(600)]

RANKS = 3
RACKS, IN_RACKS, FEW = 2, 4, 10  # racks, ranks and steps
NEAR = 1e-4  # of a loss; as tests.torch.test_examples has it
BAD_LINKS = """
seed = 3

[[packets]]
kinds = ["OTHER"]
loss = 0.005

[[packets]]
loss = 0.01
duplication = 0.01
reordering = 0.01
"""


@pytest.fixture(scope="module")
def gloo_losses(tmp_path_factory: pytest.TempPathFactory) -> np.ndarray:
    return losses_with_gloo("ddp", RANKS, tmp_path_factory.mktemp("gloo"))


@pytest.fixture(scope="module")
def sharded_losses(tmp_path_factory: pytest.TempPathFactory) -> np.ndarray:
    return losses_with_gloo("sharded", IN_RACKS, tmp_path_factory.mktemp("gloo"), FEW)


@pytest.mark.parametrize("target", ["embedded"], indirect=True)
def test_torchrun_in_hosts_trains_as_with_gloo(target: str, tmp_path: Path, gloo_losses: np.ndarray) -> None:
    out = tmp_path / "losses.json"
    with hosts(target, tmp_path) as network:
        arguments = ["examples/ddp.py", "--steps", str(STEPS), "--losses", str(out)]
        end(torchrun(network, tmp_path, arguments), tmp_path)
        with ControllerClient(network.unix_url) as client:
            (job,) = client.jobs()
            assert (job.state.value, job.workers_expected) == ("finished", RANKS)
            assert all(worker.contributions >= 2 * STEPS for worker in job.workers), "sums go through the switch"
    assert gloo_losses[-5:].mean() < 0.9 * gloo_losses[0], "it learns nothing"
    np.testing.assert_allclose(json.loads(out.read_text()), gloo_losses, rtol=NEAR)


def test_process_group_losses_do_not_change_over_bad_links(
    target: str, tmp_path: Path, gloo_losses: np.ndarray
) -> None:
    """Packets are lost, duplicated and late; gloo's packets, too."""
    out, faults = tmp_path / "losses.json", tmp_path / "faults.toml"
    faults.write_text(BAD_LINKS)
    with hosts(target, tmp_path, faults) as network:
        arguments = ["examples/ddp.py", "--steps", str(STEPS), "--losses", str(out)]
        end(start(network, tmp_path, arguments), tmp_path)
        with ControllerClient(network.unix_url) as client:
            (job,) = client.jobs()
            assert sum(worker.repeats for worker in job.workers) > 0, "nothing was lost"
    np.testing.assert_allclose(json.loads(out.read_text()), gloo_losses, rtol=NEAR)


# -- over racks ----------------------------------------------------------------------------------------------------


def test_sums_over_racks_are_right_for_each_group(target: str, tmp_path: Path) -> None:
    """The groups are all ranks, one rank of each rack, and the ranks of one rack."""
    with hosts(target, tmp_path, ranks=IN_RACKS, racks=RACKS) as network:
        end(start(network, tmp_path, ["-m", "tests.torch.summing"]), tmp_path)
        with ControllerClient(network.unix_url) as client:
            by_rack = {tuple(job.racks) for job in client.jobs()}
    lines = [text.strip().splitlines()[-2:] for text in outputs(tmp_path)]
    assert [line[1] for line in lines] == ["right"] * IN_RACKS
    assert all("job None" not in line[0] for line in lines), "a group goes through gloo"
    assert by_rack == {(2, 2), (1, 1), (0, 2)}


def test_sharded_training_over_racks_equals_gloo(target: str, sharded_losses: np.ndarray, tmp_path: Path) -> None:
    """A sharded model, which uses all-reduce, reduce-scatter and all-gather."""
    out, steps = tmp_path / "ours.json", ["--steps", str(FEW)]
    with hosts(target, tmp_path, ranks=IN_RACKS, racks=RACKS) as network:
        end(start(network, tmp_path, ["examples/sharded.py", *steps, "--losses", str(out)]), tmp_path)
        with ControllerClient(network.unix_url) as client:
            (job,) = client.jobs()
            assert (job.state.value, job.racks) == ("finished", [2, 2])
            assert all(worker.contributions >= 2 * FEW for worker in job.workers), "sums go through the switches"
    np.testing.assert_allclose(json.loads(out.read_text()), sharded_losses, rtol=50 * NEAR)


@pytest.mark.parametrize("target", ["embedded"], indirect=True)
def test_rank_naming_wrong_rack_fails_all_ranks(target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All ranks report it and end. Every rank claims rack 1 here, but rank 0's host is in rack 0."""
    monkeypatch.setenv(RACK, "1")
    with hosts(target, tmp_path, ranks=IN_RACKS, racks=RACKS) as network:
        processes = start(network, tmp_path, ["-m", "tests.torch.summing"])
        assert all(process.wait(300) == 1 for process in processes)
    for text in outputs(tmp_path):
        assert "names rack 1, but its HELLO came from rack 0" in text and RACK in text
