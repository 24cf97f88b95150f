"""torchft's replicas through the switch: one dies and returns, while the others train on."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controller.processes import ROOT, until
from tests.torch.local import PATIENCE_S, Local

REPLICAS, STEPS = 3, 1_000_000
coordination = pytest.importorskip("torchft.coordination", reason="needs torchft (torchft-nightly on PyPI)")


@pytest.fixture
def lighthouse() -> Iterator[str]:
    server = coordination.LighthouseServer(bind="127.0.0.1:0", min_replicas=2, join_timeout_ms=60_000)
    yield str(server.address())
    server.shutdown()


class Replica:
    def __init__(self, local: Local, lighthouse: str, number: int, log: Path) -> None:
        self.log = log
        arguments = ["--replica", str(number), "--steps", str(STEPS), "--pause", "0.2"]
        with log.open("w") as out:
            self.process = subprocess.Popen(
                [sys.executable, "examples/torchft_ddp.py", *arguments],
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
                env={**local.environment, "TORCHFT_LIGHTHOUSE": lighthouse},
            )

    def steps(self) -> dict[int, tuple[int, str]]:
        """How many replicas took part in each step, and the sum of the parameters after it."""
        assert self.process.poll() is None, self.log.read_text()
        lines = re.findall(r"^step (\d+): .*, (\d+) replicas, sum of the parameters (\S+)$", self.log.read_text(), re.M)
        return {int(step): (int(replicas), total) for step, replicas, total in lines}

    def trains(self, replicas: int, after: int = 0) -> bool:
        return any(step > after and there == replicas for step, (there, _) in self.steps().items())


@pytest.mark.timeout(1200)
def test_torchft_replica_dies_and_returns(local: Local, lighthouse: str, tmp_path: Path) -> None:
    replicas = [Replica(local, lighthouse, number, tmp_path / f"{number}.log") for number in range(REPLICAS)]
    try:
        until(lambda: replicas[0].trains(3), "all train", PATIENCE_S)
        replicas[1].process.kill()
        replicas[1].process.wait()
        killed_at = max(replicas[0].steps())
        until(lambda: all(replicas[other].trains(2, killed_at) for other in (0, 2)), "two train on", PATIENCE_S)
        replicas[1] = Replica(local, lighthouse, 1, tmp_path / "back.log")
        until(lambda: [replica.trains(3, killed_at) for replica in replicas] == [True] * 3, "all train", PATIENCE_S)
        steps = [replica.steps() for replica in replicas]
        common = set.intersection(*map(set, steps))
        assert common, steps
        for at in common:
            assert len({of[at][1] for of in steps}) == 1, [of[at] for of in steps]
        assert [job.state.value for job in local.client.jobs()].count("running") == 1
    finally:
        for replica in replicas:
            replica.process.kill()
            replica.process.wait()
    until(lambda: {job.state.value for job in local.client.jobs()} <= {"finished"}, "no job is left", PATIENCE_S)
