"""Jobs of process groups: a controller takes them over with their precision, and ends those that nobody joins. How they
end otherwise: test_upkeep.py."""

from __future__ import annotations

import re

import pytest

from serene.controller.http.client import Rejected
from serene.controller.jobs.job import JobState
from serene.strategy import ASP, BSP
from tests.controller.hosts import LANES, Host, join
from tests.controller.processes import Start, serenectl, until


def test_pool_is_taken_over_with_its_precision(hosts: list[Host], start: Start) -> None:
    """Before any worker has reported."""
    first = start()
    first.client.create_job(2, BSP(), pool_slots=2, precision=16)
    join(hosts[:2], 0, 2 * LANES)
    done = serenectl("precision", "8", "--job", "0", controller=first.url)
    assert re.fullmatch(r"job 0: 16 -> 8 bits, epoch 2 \(\d+ ms\)\n", done.stdout), done
    done = serenectl("precision", "8", "--job", "0", controller=first.url)
    assert done.stdout == "job 0: already 8 bits, no change\n"
    assert "BSP in 8 bits, epoch 2" in serenectl("status", controller=first.url).stdout
    first.kill()

    client = start().client
    (job,) = client.jobs()
    assert (job.precision, job.epoch, job.strategy, job.pool, job.state) == (8, 2, BSP(), True, JobState.RUNNING)
    with pytest.raises(Rejected, match="belongs to a process group"):
        client.set_strategy(0, ASP())
    assert client.set_precision(0, 32).epoch == 3


@pytest.mark.targets("embedded")
def test_pool_that_nobody_joins_is_over_after_the_given_time(start: Start) -> None:
    controller = start("--gone-after", "1")
    client = controller.client
    client.create_job(2, BSP(), pool_slots=1)
    client.create_job(2, BSP())
    until(lambda: [job.job for job in client.jobs()] == [1], "the pool is gone, and nothing else")
    assert "job 0 is over: nobody has joined for 1 s" in controller.log.read_text()
