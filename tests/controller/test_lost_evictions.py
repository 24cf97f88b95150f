"""A worker that was evicted before a switch lost its state stays evicted, and votes if it comes in time."""

from __future__ import annotations

import pytest

from serene.controller.jobs.job import RETURN_S, WorkerState
from serene.controller.jobs.jobs import Jobs
from serene.controller.jobs.plans import Readmission, Start, Waiting
from serene.strategy import BSP, SSP, Strategy
from tests.controller.planning import NOW, at, evict, running

OUT = 2  # the evicted one of three workers


def lost(strategy: Strategy = BSP(), heard: bool = True) -> Jobs:
    """Returns a job whose worker OUT was evicted before the session was lost. heard: whether OUT was heard recently."""
    jobs = running(3, strategy)
    evict(jobs, OUT)
    jobs.switch_has_only([], NOW, lambda _: [OUT] if heard else [])
    return jobs


def hello(jobs: Jobs, worker: int, now: float = NOW, incarnation: int = 7) -> object:
    plan = jobs.hello(0, worker, at(worker + 1, incarnation=incarnation), 5, now)
    if isinstance(plan, Start):
        jobs.started(plan, now)
    elif isinstance(plan, Readmission):
        jobs.readmitted(plan, now)
    return plan


def begun_without(jobs: Jobs) -> None:
    hello(jobs, 0)
    assert isinstance(hello(jobs, 1, NOW + RETURN_S), Start)
    assert (jobs[0].members(), jobs[0].evicted(), jobs[0].restorers()) == ([0, 1], [OUT], [0, 1])


def test_clock_set_back_delays_no_restart_of_a_session() -> None:
    jobs = lost()
    hello(jobs, 0)
    assert isinstance(hello(jobs, 1, NOW - 3600), Start)


@pytest.mark.parametrize("strategy", [BSP(), SSP(2)])
def test_evicted_worker_heard_recently_is_awaited_and_votes(strategy: Strategy) -> None:
    jobs = lost(strategy)
    assert hello(jobs, 0) == Waiting(0, (1,))
    assert hello(jobs, 1) == Waiting(0, (OUT,))
    start = hello(jobs, OUT)
    assert isinstance(start, Start)
    assert start.policy.fields == BSP().compile([0, 1, OUT])
    job = jobs[0]
    assert (job.members(), job.evicted(), job.restorers()) == ([0, 1], [OUT], [0, 1, OUT])
    swap = jobs.plan_restored(0)
    assert swap is not None and swap.policy.fields == strategy.compile([0, 1])


def test_silent_evicted_worker_is_not_waited_for() -> None:
    jobs = lost(heard=False)
    hello(jobs, 0)
    assert isinstance(hello(jobs, 1), Start)


def test_late_evicted_worker_waits_for_sums_to_be_restored() -> None:
    """If the restoration began again with it, alternating evictions and readmissions would never let it end."""
    jobs = lost()
    begun_without(jobs)
    spent = jobs[0].epochs_spent
    assert hello(jobs, OUT) == Waiting(0) and jobs[0].epochs_spent == spent
    jobs.restored(0, jobs.plan_restored(0), NOW)
    back = hello(jobs, OUT)
    assert isinstance(back, Readmission) and back.swap.policy.fields == BSP().compile([0, 1])
    assert (jobs[0].members(), jobs[0].evicted(), jobs[0].restorers()) == ([0, 1], [OUT], [0, 1, OUT])


def test_late_evicted_worker_is_awaited_after_next_session_loss() -> None:
    jobs = lost()
    begun_without(jobs)
    hello(jobs, OUT)
    jobs.switch_has_only([], NOW)
    hello(jobs, 0)
    assert hello(jobs, 1) == Waiting(0, (OUT,))
    assert isinstance(hello(jobs, OUT), Start)


def test_evicted_worker_that_missed_a_session_is_not_awaited() -> None:
    jobs = lost()
    begun_without(jobs)
    jobs.switch_has_only([], NOW)
    plans = [hello(jobs, worker) for worker in (0, 1)]
    assert isinstance(plans[1], Start)
    jobs.switch_has_only([], NOW)
    for worker in (OUT, 0, 1):
        hello(jobs, worker)
    assert (jobs[0].members(), jobs[0].evicted(), jobs[0].restorers()) == ([0, 1], [OUT], [0, 1, OUT])


def test_new_process_in_an_evicted_workers_place_is_a_member() -> None:
    jobs = lost()
    hello(jobs, OUT, incarnation=8)
    hello(jobs, 0)
    hello(jobs, 1)
    assert (jobs[0].members(), jobs[0].evicted()) == ([0, 1, OUT], [])


def test_worker_readmitted_while_absent_becomes_member_on_hello() -> None:
    """Until then no worker waits for it."""
    jobs = lost()
    begun_without(jobs)
    jobs.restored(0, jobs.plan_restored(0), NOW)
    evict(jobs)
    assert (jobs[0].members(), jobs[0].workers[OUT].state) == ([0, 1], WorkerState.LEFT)
    hello(jobs, OUT)
    assert jobs[0].members() == [0, 1, OUT]


def test_leave_during_restoration_swaps_the_worker_out() -> None:
    """The barrier waits for its vote: a swap must remove it, or a new session must begin without it."""
    jobs = lost()
    for worker in (0, 1, OUT):
        hello(jobs, worker)
    leave = jobs.plan_leave(0, OUT, at(OUT + 1), None)
    assert leave.swap is not None and leave.swap.policy.fields == BSP().compile([0, 1])
