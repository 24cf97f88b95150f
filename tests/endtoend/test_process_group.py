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
from tests.endtoend.process_groups import STEPS, end, hosts, losses_with_gloo, start, torchrun

pytestmark = [pytest.mark.mininet, pytest.mark.timeout(600)]

RANKS = 3
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
