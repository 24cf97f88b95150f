"""The example of shared training in Mininet's hosts, at one switch and over racks: every worker ends with the same
parameters."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from serene.controller.http.client import ControllerClient
from serene.strategy import ASP
from tests.controller.processes import until
from tests.endtoend.process_groups import end, hosts, said, start

pytestmark = [pytest.mark.mininet, pytest.mark.timeout(600)]

WORKERS = 4


@pytest.mark.parametrize("racks", [1, 2])
def test_all_workers_end_with_the_same_parameters(target: str, racks: int, tmp_path: Path) -> None:
    with hosts(target, tmp_path, ranks=WORKERS, racks=racks) as network, ControllerClient(network.unix_url) as client:
        workers = start(network, tmp_path, ["examples/shared.py"])
        until(lambda: [job for job in client.jobs() if job.state == "running"], "the job runs", 240)
        client.set_strategy(0, ASP())
        end(workers, tmp_path)
        job = client.job(0)
        assert (job.name, sum(job.racks), len(job.racks)) == ("example", WORKERS, racks)
    ended = [
        re.search(r"worker (\d): loss (\S+), sum of the parameters (-?\d+\.\d{9})", text) for text in said(tmp_path)
    ]
    assert sorted(found[1] for found in ended if found) == ["0", "1", "2", "3"]
    assert len({found[3] for found in ended if found}) == 1
    assert all(float(found[2]) < 0.9 for found in ended if found), "it learns nothing"
