"""PyTorch's process group in Mininet hosts, a rank in each: an unmodified program trains through either switch.

Everything goes through the switch: sums through its aggregation, and what is gloo's (and PyTorch's store) through its
forwarding, since hosts have no other network.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from serene.controller.http.client import ControllerClient
from serene.controller.jobs.job import JobState
from serene.controller.status.model import JobStatus
from serene.experiments.run.network import MininetNetwork
from serene.strategy import ASP
from serene.torch.placement import RACK
from tests.controller.processes import states, until
from tests.endtoend.process_groups import STEPS, end_well, hosts, losses_with_gloo, outputs, start, torchrun
from tests.runs import missing
from tests.topologies.conftest import on_bmv2

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


def finished_job(client: ControllerClient, contributions: int) -> JobStatus:
    """The only job, when it has finished. Sums go through the switch: each worker has contributed so often or more."""

    def found() -> JobStatus | None:
        (job,) = client.jobs()
        enough = all(worker.contributions >= contributions for worker in job.workers)
        return job if job.state is JobState.FINISHED and enough else None

    return until(found, f"the job has finished, with {contributions} contributions of each worker")


def test_process_group_losses_do_not_change_over_bad_links(
    target: str, tmp_path: Path, gloo_losses: np.ndarray
) -> None:
    """Packets are lost, duplicated and late; gloo's packets, too. Through the embedded switch with torchrun."""
    out, faults = tmp_path / "losses.json", tmp_path / "faults.toml"
    faults.write_text(BAD_LINKS)
    started = torchrun if target == "embedded" else start
    with hosts(target, tmp_path, faults) as network:
        arguments = ["examples/ddp.py", "--steps", str(STEPS), "--losses", str(out)]
        end_well(started(network, tmp_path, arguments), tmp_path)
        with ControllerClient(network.unix_url) as client:
            job = finished_job(client, 2 * STEPS)
            assert job.workers_expected == RANKS
            assert sum(worker.repeats for worker in job.workers) > 0, "nothing was lost"
    assert gloo_losses[-5:].mean() < 0.9 * gloo_losses[0], "it learns nothing"
    np.testing.assert_allclose(json.loads(out.read_text()), gloo_losses, rtol=NEAR)


# -- over racks ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["embedded", on_bmv2()])
def tree(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MininetNetwork]:
    """A network of two racks for all the tests of a target."""
    if lacking := missing(request.param):
        pytest.skip(f"a network with the {request.param} switch needs {lacking}")
    with hosts(request.param, tmp_path_factory.mktemp("tree"), ranks=IN_RACKS, racks=RACKS) as network:
        yield network


@pytest.fixture
def racks(tree: MininetNetwork) -> Iterator[tuple[MininetNetwork, ControllerClient]]:
    """That network and its controller, without jobs."""
    with ControllerClient(tree.unix_url) as client:
        yield tree, client
        for job in client.jobs():
            client.delete_job(job.job)


Racks = tuple[MininetNetwork, ControllerClient]


def test_sums_over_racks_are_right_for_each_group(racks: Racks, tmp_path: Path) -> None:
    """The groups are all ranks, one rank of each rack, and the ranks of one rack."""
    network, client = racks
    end_well(start(network, tmp_path, ["-m", "tests.torch.summing"]), tmp_path)
    by_rack = {tuple(job.racks) for job in client.jobs()}
    lines = [text.strip().splitlines()[-2:] for text in outputs(tmp_path)]
    assert [line[1] for line in lines] == ["right"] * IN_RACKS
    assert all("job None" not in line[0] for line in lines), "a group goes through gloo"
    assert by_rack == {(2, 2), (1, 1), (0, 2)}


def test_sharded_training_over_racks_equals_gloo(racks: Racks, sharded_losses: np.ndarray, tmp_path: Path) -> None:
    """A sharded model, which uses all-reduce, reduce-scatter and all-gather."""
    network, client = racks
    out, steps = tmp_path / "ours.json", ["--steps", str(FEW)]
    end_well(start(network, tmp_path, ["examples/sharded.py", *steps, "--losses", str(out)]), tmp_path)
    assert finished_job(client, 2 * FEW).racks == [2, 2]
    np.testing.assert_allclose(json.loads(out.read_text()), sharded_losses, rtol=50 * NEAR)


@pytest.mark.parametrize("tree", ["embedded"], indirect=True)
def test_rank_naming_wrong_rack_fails_all_ranks(racks: Racks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All ranks report it and end. Every rank claims rack 1 here, but rank 0's host is in rack 0."""
    monkeypatch.setenv(RACK, "1")
    processes = start(racks[0], tmp_path, ["-m", "tests.torch.summing"])
    assert all(process.wait(300) == 1 for process in processes)
    for text in outputs(tmp_path):
        assert "names rack 1, but its HELLO came from rack 0" in text and RACK in text


# -- shared training -----------------------------------------------------------------------------------------------


def check_shared(network: MininetNetwork, client: ControllerClient, folder: Path, program: str, places: int) -> None:
    """All workers of an example of shared training end with the same parameters, and each contribution counts exactly
    once: all read the sum of what they sent. places: in the job."""
    go, workers = folder / "go", network.settings.workers
    processes = start(network, folder, ["-m", "tests.torch.held", "100", str(go), f"examples/{program}.py"])
    until(lambda: client.jobs() and states(client).count("running") == workers, "all take part", 240)
    client.set_strategy(0, ASP())
    go.touch()
    end_well(processes, folder)
    job = client.job(0)
    assert (job.name, sum(job.racks), len(job.racks)) == (
        "elastic" if program == "elastic" else "example", places, network.settings.racks
    )  # fmt: skip
    found = re.findall(r"worker (\d): loss (\S+), sum of the parameters (-?\d+\.\d{9})", "".join(outputs(folder)))
    assert len({worker for worker, _, _ in found}) == workers
    assert len({parameters for _, _, parameters in found}) == 1
    assert max(float(loss) for _, loss, _ in found) < 0.9, f"it learns nothing: {found}"
    sums = [np.load(each) for each in folder.glob("go.*.npz")]
    sent = np.sum([each["sent"] for each in sums], axis=0, dtype=np.int32)
    assert len(sums) == workers and sent.any()
    for each in sums:
        np.testing.assert_array_equal(each["read"], sent)


def test_shared_training_over_racks_ends_with_equal_parameters(racks: Racks, tmp_path: Path) -> None:
    check_shared(*racks, tmp_path, "shared", IN_RACKS)


@pytest.mark.parametrize("target", [on_bmv2()], indirect=True)
def test_elastic_training_in_hosts_ends_with_equal_parameters(target: str, tmp_path: Path) -> None:
    """It begins with four workers, and one joins later. tests/torch has it on the embedded switch."""
    with hosts(target, tmp_path, ranks=5) as network, ControllerClient(network.unix_url) as client:
        check_shared(network, client, tmp_path, "elastic", 8)
