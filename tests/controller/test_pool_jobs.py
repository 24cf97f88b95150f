"""Jobs of process groups on a real switch: over when a worker is silent, taken over with their precision."""

from __future__ import annotations

import re

import pytest

from serene.controller.http.client import Rejected
from serene.controller.jobs.job import JobState
from serene.strategy import ASP, BSP
from serene.wire import Op
from tests.controller.hosts import LANES, Host, join
from tests.controller.processes import Start, SwitchProcess, serenectl, until


def test_pool_is_taken_over_and_ends_with_a_silent_worker_or_its_switch(
    switch: SwitchProcess, hosts: list[Host], start: Start
) -> None:
    """Taken over with its precision before any worker has reported, and also if none ever will."""
    first = start()
    first.client.create_job(2, BSP(), pool_slots=2, precision=16)
    first.client.create_job(1, BSP())
    join(hosts[:2], 0, 2 * LANES)
    join(hosts[2:3], 1, LANES)
    done = serenectl("precision", "8", "--job", "0", controller=first.url)
    assert re.fullmatch(r"job 0: 16 -> 8 bits, epoch 2 \(\d+ ms\)\n", done.stdout), done
    done = serenectl("precision", "8", "--job", "0", controller=first.url)
    assert done.stdout == "job 0: already 8 bits, no change\n"
    assert "BSP in 8 bits, epoch 2" in serenectl("status", controller=first.url).stdout
    first.kill()

    client = start("--gone-after", "4").client
    job, other = client.jobs()
    assert (job.precision, job.epoch, job.strategy, job.pool, job.state) == (8, 2, BSP(), True, JobState.RUNNING)
    assert (other.pool, other.state) == (False, JobState.RUNNING)
    with pytest.raises(Rejected, match="belongs to a process group"):
        client.set_strategy(0, ASP())
    assert client.set_precision(0, 32).epoch == 3
    client.create_job(2, BSP(), pool_slots=1, job=3)  # which nobody joins
    client.create_job(2, BSP(), job=4)
    refusal = hosts[0].ask(lambda: hosts[0].report(0, 0, state="computing"), Op.REFUSED)
    assert refusal.text.startswith("job 0 is over: worker") and refusal.text.endswith("silent for 4 s")
    until(lambda: [job.job for job in client.jobs()] == [1, 4], "the pools are gone, and nothing else")

    client.create_job(2, BSP(), pool_slots=1, job=0)
    join(hosts[:2], 0, LANES)
    until(lambda: client.job(0).state is JobState.RUNNING, "the job runs")
    switch.restart()
    until(lambda: client.status().switch.connected and [job.job for job in client.jobs()] == [1, 4], "the pool is gone")
