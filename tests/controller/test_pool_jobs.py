"""Jobs of process groups: slots at creation, BSP only, no replacement of workers, over when a worker is silent."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from serene.controller.http.client import Rejected
from serene.controller.jobs.errors import BadRequest, Conflict
from serene.controller.jobs.job import JobState
from serene.controller.jobs.jobs import Jobs
from serene.controller.jobs.plans import Start, Waiting
from serene.controller.jobs.slots import SlotRange
from serene.strategy import ASP, BSP, SSP, Quorum, Strategy
from serene.wire import Op
from tests.controller.hosts import Host, join
from tests.controller.planning import NOW, at, new_jobs, reason, running, with_job
from tests.controller.processes import Start as StartController
from tests.controller.processes import SwitchProcess, serenectl, until

LANES = 320


def test_pool_job_reserves_its_slots_at_creation() -> None:
    jobs = new_jobs()
    pool = jobs.create(2, BSP(), pool_slots=3)
    assert (pool.pool, pool.slots, pool.vector_length) == (True, SlotRange(0, 3), 3 * jobs.lanes)
    assert reason(jobs.hello(0, 0, at(1), 2 * jobs.lanes, NOW)).startswith(f"vector_length {2 * jobs.lanes}: expected")
    assert jobs.hello(0, 0, at(1), 3 * jobs.lanes, NOW) == Waiting(0, (1,))
    start = jobs.hello(0, 1, at(2), 3 * jobs.lanes, NOW)
    assert isinstance(start, Start)
    assert start.slots == SlotRange(0, 3)


def test_pool_job_without_free_slots_is_refused() -> None:
    jobs = new_jobs()
    taken = jobs.total_slots - 2
    jobs.create(2, BSP(), pool_slots=taken)
    with pytest.raises(Conflict, match=r"the longest free range has 2 of \d+ slots"):
        jobs.create(2, BSP(), pool_slots=3)
    assert [job.id for job in jobs] == [0]
    for slots in (0, -1, jobs.total_slots + 1):
        with pytest.raises(BadRequest, match=f"pool_slots {slots}: expected 1 to {jobs.total_slots}"):
            jobs.create(2, BSP(), pool_slots=slots)


@pytest.mark.parametrize("strategy", [ASP(), SSP(2)])
def test_pool_job_refuses_other_strategies_and_names_the_way_out(strategy: ASP | SSP) -> None:
    jobs = new_jobs()
    with pytest.raises(
        BadRequest, match=r"a pool runs under BSP only, not .* use DistributedOptimizer in docs/pytorch\.md"
    ):
        jobs.create(2, strategy, pool_slots=3)
    jobs.create(2, BSP(), pool_slots=3)
    with pytest.raises(Conflict, match=r"it stays under BSP .* DistributedOptimizer in docs/pytorch\.md"):
        jobs.plan_swap(0, strategy)


def pool(workers: int = 2, precision: int = 32, slots: int = 3) -> Jobs:
    """That runs."""
    return running(workers, BSP(), pool_slots=slots, precision=precision)


def test_pool_job_rejects_restarts_and_evictions() -> None:
    jobs = pool()
    restarted = at(1, incarnation=77)
    assert reason(jobs.hello(0, 0, restarted, 3 * jobs.lanes, NOW)).endswith("restart all ranks")
    with pytest.raises(Conflict, match="belongs to a process group"):
        jobs.taking_part(0, {1})


def test_precision_change_begins_an_epoch_of_the_same_strategy() -> None:
    jobs = pool(precision=16)
    plan = jobs.plan_precision(0, 8)
    assert plan is not None
    assert (plan.policy.epoch, plan.policy.strategy, plan.reason) == (2, BSP(), "precision 8")
    assert plan.policy.fields == replace(BSP().compile([0, 1]), precision=8)
    assert jobs[0].precision == 16  # until the switch has taken it
    jobs.swapped(plan, NOW)
    assert (jobs[0].precision, jobs[0].epoch) == (8, 2)
    assert jobs.plan_precision(0, 8) is None


def test_precision_is_written_again_after_a_failed_write() -> None:
    """It is unknown whether that write took effect."""
    jobs = pool()
    assert jobs.plan_precision(0, 8) is not None
    again = jobs.plan_precision(0, 32)
    assert again is not None and again.policy.epoch == 3


def test_leave_keeps_the_precision_of_a_pool_job() -> None:
    jobs = pool(precision=8)
    leave = jobs.plan_leave(0, 1, at(2), None)
    assert leave.swap is not None and leave.swap.policy.fields.precision == 8
    jobs.left(leave, NOW)
    with pytest.raises(Conflict, match="job 0 is ending: a worker has left"):
        jobs.plan_precision(0, 32)


def test_leave_with_death_reports_removes_only_the_leaver() -> None:
    """The others stay members until they are silent too."""
    jobs = pool(3)
    jobs.left(jobs.plan_leave(0, 0, at(1), None, died=[1, 2, 3, -1, 2**60]), NOW)
    assert (jobs[0].state, jobs[0].members(), jobs[0].died) == (JobState.RUNNING, [1, 2], {1, 2})


@pytest.mark.parametrize("bits", [0, 4, 64])
def test_other_numbers_of_bits_are_refused_with_valid_ones(bits: int) -> None:
    with pytest.raises(BadRequest, match=f"{bits} bits: expected 32, 16 or 8"):
        pool().plan_precision(0, bits)
    with pytest.raises(BadRequest, match=f"{bits} bits: expected 32, 16 or 8"):
        new_jobs().create(2, BSP(), pool_slots=3, precision=bits)


def test_precision_without_enough_lanes_is_refused() -> None:
    jobs = Jobs(slots=64, lanes=32, max_jobs=8, max_workers=32)
    jobs.create(8, BSP(), pool_slots=2, precision=16)
    with pytest.raises(BadRequest, match="32 lanes per slot are too few for 8 workers and 8 bits"):
        jobs.create(8, BSP(), pool_slots=2, precision=8)
    assert [job.id for job in jobs] == [0]


@pytest.mark.parametrize(
    ("strategy", "why"),
    [
        (BSP(), r"under BSP a read may sum 4 contributions, which leaves 31 levels with 8 bits"),
        (SSP(3), r"under SSP\(3\) a read may sum 28 contributions, which leaves 4 levels with 8 bits"),
        (ASP(), r"under ASP a read may sum any number of contributions"),
        (Quorum(3), r"under 3-of-n a read may sum any number of contributions"),
    ],
    ids=str,
)
def test_jobs_that_are_no_pools_keep_32_bits(strategy: Strategy, why: str) -> None:
    jobs = with_job(4, strategy)
    with pytest.raises(Conflict, match=f"job 0 needs 32 bits, .* one scale and {why}. .*'The process group'"):
        jobs.plan_precision(0, 8)
    with pytest.raises(Conflict, match="job 1 needs 32 bits"):
        jobs.create(4, strategy, precision=8)
    assert jobs.plan_precision(0, 32) is None  # it has them


def test_waiting_or_one_slot_job_cannot_change_precision() -> None:
    jobs = with_job(2, BSP(), pool_slots=3)
    with pytest.raises(Conflict, match="job 0 is waiting: precision can change only while a job runs"):
        jobs.plan_precision(0, 8)
    with pytest.raises(Conflict, match="has one slot: a change of precision needs 2 or more"):
        pool(slots=1).plan_precision(0, 8)


def test_takeover_reads_the_precision_from_the_switch(
    switch: SwitchProcess, hosts: list[Host], start: StartController
) -> None:
    """Before any worker has reported, and also if none ever will."""
    first = start()
    first.client.create_job(2, BSP(), pool_slots=2, precision=16)
    first.client.create_job(1, BSP())
    join(hosts[:2], 0, 2 * LANES)
    join(hosts[2:3], 1, LANES)
    said = serenectl("precision", "8", "--job", "0", controller=first.url)
    assert re.fullmatch(r"job 0: 16 -> 8 bits, epoch 2 \(\d+ ms\)\n", said.stdout), said
    said = serenectl("precision", "8", "--job", "0", controller=first.url)
    assert said.stdout == "job 0: already 8 bits, no change\n"
    assert "BSP in 8 bits, epoch 2" in serenectl("status", controller=first.url).stdout
    first.kill()
    client = start("--gone-after", "4").client
    job, other = client.jobs()
    assert (job.precision, job.epoch, job.strategy, job.pool, job.state) == (8, 2, BSP(), True, JobState.RUNNING)
    assert (other.pool, other.state) == (False, JobState.RUNNING)
    with pytest.raises(Rejected, match="belongs to a process group"):
        client.set_strategy(0, ASP())
    assert client.set_precision(0, 32).epoch == 3
    until(lambda: [job.job for job in client.jobs()] == [1], "the pool is gone, and nothing else")


def test_silent_worker_ends_pool_and_others_are_refused(
    switch: SwitchProcess, hosts: list[Host], start: StartController
) -> None:
    client = start("--gone-after", "1").client
    client.create_job(2, BSP(), pool_slots=1)
    join(hosts[:2], 0, LANES)
    until(lambda: client.job(0).state is JobState.RUNNING, "the job runs")
    told = hosts[0].ask(lambda: hosts[0].report(0, 0, state="computing"), Op.REFUSED)
    assert told.text.startswith("job 0 is over: worker")
    assert told.text.endswith("silent for 1 s")
    client.create_job(2, BSP(), pool_slots=1, job=3)  # which nobody joins
    client.create_job(2, BSP(), job=4)
    until(lambda: [job.job for job in client.jobs()] == [4], "the pools are gone, and nothing else")


def test_switch_restart_ends_its_pools(switch: SwitchProcess, hosts: list[Host], start: StartController) -> None:
    client = start().client
    client.create_job(2, BSP(), pool_slots=1)
    join(hosts[:2], 0, LANES)
    until(lambda: client.job(0).state is JobState.RUNNING, "the job runs")
    switch.restart()
    until(lambda: client.status().switch.connected and client.jobs() == [], "the job is gone")
