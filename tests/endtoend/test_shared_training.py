"""The examples of shared training in Mininet's hosts, at one switch and over racks: every worker ends with the same
parameters."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from serene.controller.http.client import ControllerClient
from serene.strategy import ASP
from tests.controller.processes import states, until
from tests.endtoend.process_groups import end, hosts, outputs, start

pytestmark = [pytest.mark.mininet, pytest.mark.timeout(600)]


@pytest.mark.parametrize(
    ("target", "program", "workers", "racks"),
    [
        ("embedded", "shared", 4, 2),
        *(pytest.param("bmv2", *one, marks=pytest.mark.bmv2) for one in (("shared", 4, 2), ("elastic", 5, 1))),
    ],
    indirect=["target"],
)
def test_shared_training_in_hosts_ends_with_equal_parameters(
    target: str, program: str, workers: int, racks: int, tmp_path: Path
) -> None:
    """The elastic example begins with four workers, and one joins later. tests/torch uses the embedded switch only."""
    with hosts(target, tmp_path, ranks=workers, racks=racks) as network, ControllerClient(network.unix_url) as client:
        go = tmp_path / "go"
        processes = start(network, tmp_path, ["-m", "tests.torch.held", "100", str(go), f"examples/{program}.py"])
        until(lambda: client.jobs() and states(client).count("running") == workers, "all take part", 240)
        client.set_strategy(0, ASP())
        go.touch()
        end(processes, tmp_path)
        job = client.job(0)
        places = 8 if program == "elastic" else workers
        assert (job.name, sum(job.racks), len(job.racks)) == (
            "elastic" if program == "elastic" else "example", places, racks
        )  # fmt: skip
    ended = [
        re.search(r"worker (\d): loss (\S+), sum of the parameters (-?\d+\.\d{9})", text) for text in outputs(tmp_path)
    ]
    assert len({found[1] for found in ended if found}) == workers
    assert len({found[3] for found in ended if found}) == 1
    losses = [float(found[2]) for found in ended if found]
    assert max(losses) < 0.9, f"it learns nothing: {losses}"
