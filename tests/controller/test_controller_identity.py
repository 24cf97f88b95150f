"""Identities, without a switch: incarnations of a worker, sessions of a job, and evicted workers."""

from __future__ import annotations

import pytest

from serene.controller.jobs.errors import Conflict
from serene.controller.jobs.job import JobState, WorkerState
from serene.controller.jobs.plans import Readmission, Start, Waiting
from serene.errors import SereneError
from serene.strategy import ASP, BSP, Quorum
from tests.controller.planning import NOW, at, comes_back, evict, left, reason, running, started, with_job


class TestLeaving:
    """A LEAVE belongs to the session in which it was sent."""

    def test_leave_of_another_session_is_answered_only_after_the_end(self) -> None:
        jobs = running(2, BSP())
        other = jobs[0].session - 1
        late = jobs.plan_leave(0, 0, at(1), 5, session=other)
        assert late.swap is None and not late.answered, "a BYE would send away who is waited for"
        jobs.left(late, NOW)
        assert jobs[0].members() == [0, 1] and jobs[0].workers[0].contributions_sent is None
        for worker in (0, 1):
            jobs.left(jobs.plan_leave(0, worker, at(worker + 1), 5, session=jobs[0].session), NOW)
        assert jobs[0].state is JobState.FINISHED
        assert jobs.plan_leave(0, 0, at(1), 5, session=other).answered


class TestEvicted:
    """An evicted worker that is active keeps its job alive."""

    def test_job_finishes_only_after_active_evicted_workers_leave(self) -> None:
        jobs = running(3, BSP())
        evict(jobs, 1, 2)
        last = jobs.plan_leave(0, 0, at(1), None, active={1, 2})
        assert not last.job_over
        assert last.swap is not None
        assert last.swap.policy.fields == ASP().compile([1, 2]), "they wait for nobody, as before"
        jobs.left(last, NOW)
        assert jobs[0].state is JobState.RUNNING
        with pytest.raises(
            Conflict, match="all its workers are evicted; readmit one with 'serenectl readmit --job 0 --worker N'"
        ):
            jobs.plan_swap(0, BSP())
        back = jobs.plan_barrier(0, BSP(), [2], "readmitted")
        assert back is not None
        assert back.policy.fields == BSP().compile([1])
        goodbye = jobs.plan_leave(0, 1, at(2), None, active={1, 2})
        assert goodbye.swap is not None
        assert goodbye.swap.policy.fields == ASP().compile([2])
        jobs.left(goodbye, NOW)
        final = jobs.plan_leave(0, 2, at(3), None, active={2})
        assert final.job_over and final.swap is not None
        assert final.swap.policy.fields == ASP().compile([])
        jobs.left(final, NOW)
        assert jobs[0].state.value == "finished"
        assert jobs.plan_leave(0, 0, at(1), None, active={1, 2}).job_over, "who asks again hears it"

    def test_silent_evicted_worker_does_not_keep_the_job_running(self) -> None:
        jobs = running(2, BSP())
        evict(jobs, 1)
        last = jobs.plan_leave(0, 0, at(1), None, active={0})
        assert last.job_over and last.swap is not None
        assert last.swap.policy.fields == ASP().compile([]), "nobody takes part any more"

    def test_failed_eviction_is_revoked_by_a_write(self) -> None:
        """It is unknown whether the eviction is in force."""
        jobs = running(2, BSP())
        assert jobs.plan_barrier(0, BSP(), [], "readmitted") is None
        assert jobs.plan_barrier(0, BSP(), [1], "evicted") is not None
        back = jobs.plan_barrier(0, BSP(), [], "readmitted")
        assert back is not None
        assert (back.policy.epoch, back.policy.fields) == (3, BSP().compile([0, 1]))
        jobs.swapped(back, NOW)
        assert jobs.plan_barrier(0, BSP(), [], "readmitted") is None

    def test_eviction_of_an_unknown_worker_is_refused(self) -> None:
        with pytest.raises(Conflict, match="worker 7 does not take part in job 0: expected 0, 1 or 2"):
            running(3, BSP()).taking_part(0, {7})

    def test_strategies_apply_to_members_without_evicted_workers(self) -> None:
        jobs = running(3, Quorum(3))
        plan = jobs.plan_barrier(0, Quorum(3), [0], "evicted")
        assert plan is not None and plan.policy.fields == Quorum(2).compile([1, 2])
        jobs.swapped(plan, NOW)
        assert jobs[0].strategy == Quorum(3), "of as many as there are"
        with pytest.raises(SereneError, match="a quorum of 3 of 2 workers"):
            jobs.plan_swap(0, Quorum(3))

    def test_evicted_worker_leaves_without_a_swap(self) -> None:
        jobs = running(3, BSP())
        evict(jobs, 2)
        plan = jobs.plan_leave(0, 2, at(3), None, active={0, 1, 2})
        assert (plan.swap, plan.job_over) == (None, False), "nobody waited for it"


class TestIncarnations:
    """Several processes, one after the other, as one worker at the same addresses."""

    def test_later_incarnation_is_admitted_and_the_earlier_refused(self) -> None:
        jobs = running(2, BSP())
        plan = comes_back(jobs, 1)
        assert (plan.old, plan.new) == (at(2), at(2, incarnation=8))
        assert jobs[0].history[-1].reason == "worker 1 restarted"
        said = "another process has taken the place of worker 1 of job 0"
        assert reason(jobs.hello(0, 1, at(2), 5, NOW)) == said
        assert reason(jobs.hello(0, 1, at(2, 4001), 5, NOW)) == said, "wherever it asks from"
        assert reason(jobs.hello(0, 1, at(3), 5, NOW)) == said, "the later one may be at another port"
        assert jobs.hello(0, 1, at(2, incarnation=8), 5, NOW) is None

    def test_later_incarnation_takes_the_place_before_the_start(self) -> None:
        jobs = with_job(2, BSP())
        jobs.hello(0, 0, at(1, incarnation=1), 5, NOW)
        assert jobs.hello(0, 0, at(1, incarnation=2), 5, NOW) == Waiting(0, (1,))
        assert "another process" in reason(jobs.hello(0, 0, at(1, incarnation=1), 5, NOW))
        plan = jobs.hello(0, 1, at(2), 5, NOW)
        assert isinstance(plan, Start)
        assert plan.members[0].incarnation == 2

    def test_retired_incarnation_stays_refused_after_a_lost_session(self) -> None:
        jobs = running(1, BSP())
        comes_back(jobs, 0)
        jobs.switch_has_only([])
        assert "another process" in reason(jobs.hello(0, 0, at(1), 5, NOW))
        assert isinstance(jobs.hello(0, 0, at(1, incarnation=8), 5, NOW), Start)

    def test_number_of_retired_incarnations_is_bounded(self) -> None:
        jobs = with_job(2, BSP())
        for incarnation in range(1, 5000):
            jobs.hello(0, 0, at(1, incarnation=incarnation), 5, NOW)
        assert len(jobs[0].workers[0].retired) == 64

    def test_leave_or_report_of_earlier_incarnation_is_rejected(self) -> None:
        """Its LEAVE or REPORT was in transit when the worker restarted, or was duplicated."""
        jobs = running(2, BSP())
        comes_back(jobs, 1)
        with pytest.raises(Conflict, match=r"worker 1 at port 2 .* is not admitted to job 0"):
            jobs.plan_leave(0, 1, at(2), None)
        with pytest.raises(Conflict):
            jobs.report(0, 1, at(2), {"iteration": 1}, 0.0)
        assert jobs[0].members() == [0, 1]

    def test_failed_readmission_is_planned_again_for_either_process(self) -> None:
        jobs = running(1, BSP())
        plan = jobs.hello(0, 0, at(1, incarnation=8), 5, NOW)
        assert isinstance(plan, Readmission)
        jobs.not_readmitted(plan)
        for incarnation in (7, 8):
            again = jobs.hello(0, 0, at(1, incarnation=incarnation), 5, NOW)
            assert isinstance(again, Readmission)
            assert again.old == at(1)

    def test_incarnation_zero_is_refused(self) -> None:
        jobs = with_job(1, BSP())
        assert reason(jobs.hello(0, 0, at(1, incarnation=0), 5, NOW)).startswith("incarnation 0: expected a number")


class TestSessions:
    """To which job a worker that was away belongs."""

    def test_worker_of_a_deleted_job_gets_no_place_in_the_next(self) -> None:
        jobs = with_job(1, BSP())
        session = started(jobs).policy.session
        jobs.delete(0)
        jobs.create(1, BSP())
        said = f"session {session} of job 0 is over; the id belongs to a new job: restart the worker"
        assert reason(jobs.hello(0, 0, at(1), 5, NOW, session)) == said
        assert jobs[0].workers[0].state is WorkerState.EXPECTED
        later = started(jobs).policy.session
        assert reason(jobs.hello(0, 0, at(1, incarnation=8), 5, NOW, session)) == said
        assert isinstance(jobs.hello(0, 0, at(1, incarnation=8), 5, NOW, later), Readmission)

    def test_job_remembers_its_lost_sessions(self) -> None:
        jobs = with_job(1, BSP())
        first = started(jobs).policy.session
        jobs.switch_has_only([])
        start = jobs.hello(0, 0, at(1), 5, NOW, first)
        assert isinstance(start, Start)
        jobs.started(start, NOW)
        assert isinstance(jobs.hello(0, 0, at(1, incarnation=8), 5, NOW, first), Readmission)
        assert "is over" in reason(jobs.hello(0, 0, at(1), 5, NOW, first - 1))

    def test_clock_far_ahead_does_not_use_up_session_numbers(self) -> None:
        jobs = with_job(1, BSP())
        plan = jobs.hello(0, 0, at(1), 5, 1e12)
        assert isinstance(plan, Start)
        assert plan.policy.session < 2**32
        jobs.note_session(2**32 - 1)
        assert "are used up" in reason(jobs.hello(0, 0, at(1), 5, NOW))

    def test_strategy_shrinks_to_the_workers_that_come_back(self) -> None:
        jobs = running(3, Quorum(3))
        left(jobs, 0)
        jobs.switch_has_only([])
        jobs[0].lost_sessions = 0  # no sums to restore: the quorum is in force at once
        jobs.hello(0, 1, at(2), 5, NOW)
        plan = jobs.hello(0, 2, at(3), 5, NOW)
        assert isinstance(plan, Start)
        assert plan.policy.fields == Quorum(2).compile([1, 2])
