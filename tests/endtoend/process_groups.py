"""Programs under torchrun in the hosts of a Mininet network."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from serene.experiments.run.network import MininetNetwork
from serene.experiments.run.settings import check
from tests.controller.processes import until
from tests.runs import ROOT, private_network
from tests.support.warm import warm_python

PATIENCE_S = 300.0
STEPS = 25


MASTER = ("10.0.0.1", "29500")  # a host's own address: the others reach it through the switch
TORCHRUN = ["-m", "torch.distributed.run"]


@contextmanager
def hosts(
    target: str, folder: Path, faults: Path | None = None, ranks: int = 3, racks: int = 1
) -> Iterator[MininetNetwork]:
    settings = check(
        target=target, workers=ranks, racks=racks, steps=1, compute_ms=0, out=folder / "none", faults=faults
    )
    with private_network(), MininetNetwork(settings, folder) as network:
        yield network


def start(network: MininetNetwork, folder: Path, arguments: Sequence[str]) -> list[subprocess.Popen[bytes]]:
    """Starts ``python ARGUMENTS`` as each host's rank, in a warm Python; output goes to files."""
    return [_start(network, folder, rank, [warm_python(), *arguments]) for rank in range(network.settings.workers)]


def torchrun(network: MininetNetwork, folder: Path, arguments: Sequence[str]) -> list[subprocess.Popen[bytes]]:
    """As a user does it: torchrun and the ranks start in interpreters of their own."""
    ranks = network.settings.workers
    command = [sys.executable, *TORCHRUN, "--nnodes", str(ranks), "--nproc-per-node", "1"]
    command += ["--master-addr", MASTER[0], "--master-port", MASTER[1]]
    return [_start(network, folder, rank, [*command, "--node-rank", str(rank), *arguments]) for rank in range(ranks)]


def _start(network: MininetNetwork, folder: Path, rank: int, command: Sequence[str]) -> subprocess.Popen[bytes]:
    variables = {
        "SERENE_CONTROLLER": network.unix_url, "OMP_NUM_THREADS": "1", "RANK": str(rank), "LOCAL_RANK": "0",
        "WORLD_SIZE": str(network.settings.workers), "MASTER_ADDR": MASTER[0], "MASTER_PORT": MASTER[1],
    }  # fmt: skip
    with (folder / f"rank-{rank}.log").open("wb") as log:
        return network.popen(rank, command, stdout=log, stderr=log, cwd=str(ROOT), env={**os.environ, **variables})


def outputs(folder: Path) -> list[str]:
    """By rank."""
    return [path.read_text(errors="replace") for path in sorted(folder.glob("rank-*.log"))]


def end_well(processes: Sequence[subprocess.Popen[bytes]], folder: Path) -> None:
    try:
        until(lambda: all(process.poll() is not None for process in processes), "the ranks end", PATIENCE_S)
        assert [process.returncode for process in processes] == [0] * len(processes), outputs(folder)
    finally:
        for process in processes:
            process.kill()
            process.wait()


def losses_with_gloo(program: str, ranks: int, folder: Path, steps: int = STEPS) -> np.ndarray:
    """Of the same program, on loopback."""
    warm, out = warm_python(), folder / "losses.json"
    command = [warm, *TORCHRUN, "--standalone", "--nproc-per-node", str(ranks), f"examples/{program}.py"]
    command += ["--backend", "gloo"]
    done = subprocess.run(
        [*command, "--steps", str(steps), "--losses", str(out)],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHON_EXEC": warm}, cwd=ROOT, timeout=PATIENCE_S,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return np.array(json.loads(out.read_text()))
