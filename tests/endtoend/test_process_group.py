"""PyTorch's process group in Mininet hosts, a rank in each: an unmodified program trains through either switch.

Everything goes through the switch: sums through its aggregation, and what is gloo's (and PyTorch's store) through its
forwarding, since hosts have no other network.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from controller.http.client import ControllerClient
from experiments.run.network import MininetNetwork
from experiments.run.settings import check
from tests.controller.processes import until
from tests.runs import ROOT, private_network
from tests.support.warm import warm_python

pytestmark = [pytest.mark.mininet, pytest.mark.timeout(600)]

RANKS, STEPS = 3, 25
PATIENCE_S = 300.0
MASTER = ("10.0.0.1", "29500")  # a host's own address: the others reach it through the switch
TORCHRUN = ["-m", "torch.distributed.run"]
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


@contextmanager
def hosts(
    target: str, folder: Path, faults: Path | None = None, ranks: int = RANKS, racks: int = 1
) -> Iterator[MininetNetwork]:
    settings = check(
        target=target, workers=str(ranks), racks=str(racks), strategy="bsp", straggler="none", steps="1", model="mlp",
        dataset="digits", data_dir=None, link_mbit="", seed="1", compute_ms="0", program="serene", mininet=True,
        out=folder / "none", faults=faults,
    )  # fmt: skip
    with private_network(), MininetNetwork(settings, folder) as network:
        yield network


def environment(network: MininetNetwork, rank: int) -> dict[str, str]:
    return {
        **os.environ,
        "SERENE_CONTROLLER": network.unix_url,
        "GLOO_SOCKET_IFNAME": f"h{rank + 1}-eth0",  # as with gloo alone: all hosts have the same name
        "OMP_NUM_THREADS": "1",
    }


def start(network: MininetNetwork, folder: Path, arguments: Sequence[str]) -> list[subprocess.Popen[bytes]]:
    """``python ARGUMENTS`` as each host's rank, in a warm Python; what they say goes to files."""
    processes, ranks = [], network.settings.workers
    for rank in range(ranks):
        variables = {"RANK": str(rank), "LOCAL_RANK": "0", "WORLD_SIZE": str(ranks)}
        variables |= {"MASTER_ADDR": MASTER[0], "MASTER_PORT": MASTER[1]}
        with (folder / f"rank-{rank}.log").open("wb") as log:
            command = [warm_python(), *arguments]
            env = {**environment(network, rank), **variables}
            processes.append(network.popen(rank, command, stdout=log, stderr=log, cwd=str(ROOT), env=env))
    return processes


def torchrun(network: MininetNetwork, folder: Path, arguments: Sequence[str]) -> list[subprocess.Popen[bytes]]:
    """As a user does it: torchrun and the ranks start in interpreters of their own."""
    processes, ranks = [], network.settings.workers
    for rank in range(ranks):
        nodes = ["--nnodes", str(ranks), "--node-rank", str(rank), "--nproc-per-node", "1"]
        nodes += ["--master-addr", MASTER[0], "--master-port", MASTER[1]]
        with (folder / f"rank-{rank}.log").open("wb") as log:
            command = [sys.executable, *TORCHRUN, *nodes, *arguments]
            env = environment(network, rank)
            processes.append(network.popen(rank, command, stdout=log, stderr=log, cwd=str(ROOT), env=env))
    return processes


def said(folder: Path) -> list[str]:
    """By rank."""
    return [path.read_text(errors="replace") for path in sorted(folder.glob("rank-*.log"))]


def end(processes: Sequence[subprocess.Popen[bytes]], folder: Path) -> None:
    """They end well."""
    try:
        until(lambda: all(process.poll() is not None for process in processes), "the ranks end", PATIENCE_S)
        assert [process.returncode for process in processes] == [0] * len(processes), said(folder)
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def gloo_losses(tmp_path_factory: pytest.TempPathFactory) -> np.ndarray:
    return losses_with_gloo("ddp", RANKS, tmp_path_factory.mktemp("gloo"))


def losses_with_gloo(program: str, ranks: int, folder: Path) -> np.ndarray:
    """Of the same program, on loopback."""
    warm, out = warm_python(), folder / "losses.json"
    command = [warm, *TORCHRUN, "--standalone", "--nproc-per-node", str(ranks), f"examples/{program}.py"]
    command += ["--backend", "gloo"]
    done = subprocess.run(
        [*command, "--steps", str(STEPS), "--losses", str(out)],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHON_EXEC": warm}, cwd=ROOT, timeout=PATIENCE_S,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return np.array(json.loads(out.read_text()))


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


def test_lost_packets_change_no_loss(target: str, tmp_path: Path, gloo_losses: np.ndarray) -> None:
    """Nor do duplicated and late ones; gloo's are lost, too."""
    out, faults = tmp_path / "losses.json", tmp_path / "faults.toml"
    faults.write_text(BAD_LINKS)
    with hosts(target, tmp_path, faults) as network:
        arguments = ["examples/ddp.py", "--steps", str(STEPS), "--losses", str(out)]
        end(start(network, tmp_path, arguments), tmp_path)
        with ControllerClient(network.unix_url) as client:
            (job,) = client.jobs()
            assert sum(worker.repeats for worker in job.workers) > 0, "nothing was lost"
    np.testing.assert_allclose(json.loads(out.read_text()), gloo_losses, rtol=NEAR)


def test_a_rank_is_killed(target: str, tmp_path: Path) -> None:
    """The others hear of it through the switch, and say so; the job ends."""
    with hosts(target, tmp_path) as network:
        processes = start(network, tmp_path, ["-m", "tests.torch.failing", str(tmp_path)])
        try:
            began = [tmp_path / f"began-{rank}" for rank in range(RANKS)]
            until(
                lambda: all(file.exists() for file in began) or any(one.poll() is not None for one in processes),
                "all ranks sum",
                PATIENCE_S,
            )
            processes[1].kill()
            until(lambda: all(process.poll() is not None for process in processes), "the others end", PATIENCE_S)
        finally:
            for process in processes:
                process.kill()
                process.wait()
        for rank in (0, 2):
            last = said(tmp_path)[rank].strip().splitlines()[-1:]
            said_of_it = "CollectiveFailed: all_reduce of float32[7, 100], SUM: rank 1 of the group has died"
            assert last == [f"rank {rank}: {said_of_it}"]
        assert [process.returncode for process in processes] == [0, -signal.SIGKILL, 0]
        with ControllerClient(network.unix_url) as client:
            until(lambda: [job.state.value for job in client.jobs()] in ([], ["finished"]), "the job ends")
