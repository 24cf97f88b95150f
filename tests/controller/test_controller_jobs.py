"""The jobs' state machine without a switch: plans, refusals and remembered facts."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serene.controller.jobs.errors import BadRequest, Conflict, InTheWay, NoSuchJob
from serene.controller.jobs.job import JobState, WorkerState
from serene.controller.jobs.plans import Readmission, Refusal, Start, Swap, Waiting
from serene.controller.jobs.slots import SlotRange, first_fit, free_ranges
from serene.entries import Endpoint
from serene.errors import SereneError
from serene.strategy import ASP, BSP, SSP, Mixed, PolicyFields, Quorum
from serene.wire import UNBOUNDED, ReadMode
from tests.controller.planning import NOW, at, left, new_jobs, reason, running, started, with_job


class TestStart:
    def test_job_waits_until_all_workers_have_joined(self) -> None:
        jobs = with_job(3, BSP())
        assert jobs.hello(0, 2, at(3), 700, NOW) == Waiting(0, (0, 1))
        assert jobs.hello(0, 0, at(1), 700, NOW) == Waiting(0, (1,))
        assert jobs.hello(0, 0, at(1), 700, NOW) == Waiting(0, (1,)), "a repeated HELLO is nothing new"
        assert [worker.state.value for worker in jobs[0].workers] == ["joined", "expected", "joined"]
        plan = jobs.hello(0, 1, at(2), 700, NOW)
        assert isinstance(plan, Start)
        assert plan.slots == SlotRange(0, 3)
        assert plan.members == {0: at(1), 1: at(2), 2: at(3)}
        assert (plan.policy.session, plan.policy.epoch) == (int(NOW), 1)
        assert plan.policy.fields == BSP().compile(range(3))

    def test_start_is_planned_again_after_a_failed_write(self) -> None:
        jobs = with_job(1, BSP())
        first = jobs.hello(0, 0, at(1), 5, NOW)
        again = jobs.hello(0, 0, at(1), 5, NOW)
        assert isinstance(first, Start)
        assert isinstance(again, Start)
        assert jobs[0].state is JobState.WAITING
        assert again.policy.session > first.policy.session, "nobody knows whether the first one arrived"

    def test_committed_start_makes_the_job_run(self) -> None:
        jobs = with_job(2, SSP(3))
        start = started(jobs)
        assert jobs[0].state is JobState.RUNNING
        assert jobs[0].members() == [0, 1]
        assert (jobs[0].session, jobs[0].epoch) == (start.policy.session, 1)
        assert jobs.hello(0, 1, at(2), 5, NOW) is None, "a HELLO that was on its way"


class TestRefusals:
    def test_hello_for_an_unknown_job_is_refused(self) -> None:
        jobs = new_jobs()
        assert reason(jobs.hello(3, 0, at(1), 5, NOW)) == (
            "there is no job 3 (there are no jobs; create one with 'serenectl jobs create --workers N')"
        )
        jobs.create(1, BSP())
        jobs.create(1, BSP(), job=4)
        assert reason(jobs.hello(3, 0, at(1), 5, NOW)) == "there is no job 3 (jobs: 0, 4)"

    def test_hello_with_another_vector_length_is_refused(self) -> None:
        jobs = with_job(2, BSP())
        assert reason(jobs.hello(0, 0, at(1), 0, NOW)) == "vector_length 0: expected at least 1"
        jobs.hello(0, 0, at(1), 5, NOW)
        said = "vector_length 6: expected 5, which the other workers of job 0 have"
        assert reason(jobs.hello(0, 1, at(2), 6, NOW)) == said
        assert reason(jobs.hello(0, 2, at(2), 5, NOW)) == "job 0 has no worker 2: expected 0 to 1"

    def test_single_joined_worker_may_change_the_vector_length(self) -> None:
        jobs = with_job(2, BSP())
        jobs.hello(0, 0, at(1), 5, NOW)
        assert jobs.hello(0, 0, at(1), 700, NOW) == Waiting(0, (1,))
        plan = jobs.hello(0, 1, at(2), 700, NOW)
        assert isinstance(plan, Start)
        assert plan.slots.count == 3

    def test_hello_from_another_address_for_a_taken_place_is_refused(self) -> None:
        jobs = with_job(2, BSP())
        jobs.hello(0, 0, at(1), 5, NOW)
        assert reason(jobs.hello(0, 0, at(2), 5, NOW)) == (
            "worker 0 of job 0 is at port 1 (02:00:00:00:00:01, 10.0.0.1:4000), "
            "not at port 2 (02:00:00:00:00:02, 10.0.0.2:4000)"
        )
        started(jobs)
        for thief in (at(3), Endpoint(1, at(3).mac, at(1).ip, 4000, 7), Endpoint(1, at(1).mac, at(3).ip, 4000, 7)):
            assert "is at port 1" in reason(jobs.hello(0, 0, thief, 5, NOW))

    def test_hello_for_a_finished_job_is_refused(self) -> None:
        jobs = running(1, BSP())
        left(jobs, 0)
        session = jobs[0].session
        text = "job 0 has finished; create a new one with 'serenectl jobs create --job 0 --workers 1'"
        assert jobs.hello(0, 0, at(1, 5000), 5, NOW) == Refusal(text)
        assert jobs.hello(0, 0, at(1), 5, NOW, session + 1) == Refusal(text)
        assert jobs.hello(0, 0, at(1), 5, NOW, session) == Refusal(text, has_left=True)

    def test_start_without_enough_free_slots_is_refused(self) -> None:
        jobs = new_jobs(slots=10)
        jobs.create(1, BSP())
        jobs.create(1, BSP())
        started(jobs, 0, vector_length=320 * 6)
        assert reason(jobs.hello(1, 0, at(2), 320 * 5, NOW)) == (
            "vector_length 1600 needs 5 slots of 320 values: the longest free range has 4 of 10 slots; "
            "'serenectl up --slots N' provides more"
        )
        jobs.delete(0)
        assert isinstance(jobs.hello(1, 0, at(2), 320 * 5, NOW), Start)


class TestReadmission:
    def test_restarted_process_is_readmitted_in_a_new_epoch(self) -> None:
        jobs = running(2, BSP())
        plan = jobs.hello(0, 1, at(2, 5000), 5, NOW)
        assert isinstance(plan, Readmission)
        assert (plan.old, plan.new) == (at(2), at(2, 5000))
        assert (plan.swap.policy.epoch, plan.swap.policy.fields) == (2, BSP().compile([0, 1]))
        jobs.readmitted(plan, NOW)
        assert jobs[0].workers[1].endpoint == at(2, 5000)
        assert jobs.hello(0, 1, at(2, 5000), 5, NOW) is None

    def test_worker_that_left_is_readmitted_as_a_member(self) -> None:
        jobs = running(3, Quorum(3))
        swap = left(jobs, 1).swap
        assert swap is not None
        assert swap.policy.fields == Quorum(2).compile([0, 2])
        plan = jobs.hello(0, 1, at(2, 5000), 5, NOW)
        assert isinstance(plan, Readmission)
        assert plan.swap.policy.fields == Quorum(3).compile([0, 1, 2]), "the quorum asked for comes back"


class TestSwap:
    def test_swaps_advance_the_epoch_and_the_history(self) -> None:
        jobs = with_job(2, BSP())
        session = started(jobs).policy.session
        for epoch, strategy in enumerate([SSP(3), ASP(), BSP()], start=2):
            plan = jobs.plan_swap(0, strategy)
            assert isinstance(plan, Swap)
            assert (plan.policy.session, plan.policy.epoch) == (session, epoch)
            jobs.swapped(plan, NOW + epoch)
        assert [(past.t, past.epoch, str(past.strategy)) for past in jobs[0].history] == [
            (NOW, 1, "BSP"),
            (NOW + 2, 2, "SSP(3)"),
            (NOW + 3, 3, "ASP"),
            (NOW + 4, 4, "BSP"),
        ]

    def test_failed_write_uses_up_its_epoch(self) -> None:
        jobs = running(2, BSP())
        jobs.plan_swap(0, ASP())
        assert (jobs[0].epoch, jobs[0].strategy) == (1, BSP())
        plan = jobs.plan_swap(0, SSP(2))
        assert isinstance(plan, Swap)
        assert plan.policy.epoch == 3

    def test_strategy_in_force_needs_no_swap(self) -> None:
        jobs = with_job(3, Quorum(3))
        assert not jobs.has_already(0, Quorum(3)), "a job that waits has a choice"
        started(jobs)
        assert jobs.has_already(0, Quorum(3)) and not jobs.has_already(0, Quorum(2))
        jobs.plan_swap(0, ASP())
        assert not jobs.has_already(0, Quorum(3)), "the write may have arrived, though it failed"
        plan = jobs.plan_swap(0, Quorum(3))
        assert isinstance(plan, Swap)
        jobs.swapped(plan, NOW)
        assert jobs.has_already(0, Quorum(3))
        left(jobs, 1)
        assert not jobs.has_already(0, Quorum(3)), "it does not fit the two that remain"

    def test_swap_of_a_waiting_job_only_changes_its_choice(self) -> None:
        jobs = with_job(2, BSP())
        assert jobs.plan_swap(0, Quorum(1)) is None
        jobs.choose(0, Quorum(1))
        assert started(jobs).policy.fields == Quorum(1).compile([0, 1])

    @pytest.mark.parametrize("strategy", [Quorum(3), Mixed((2,))])
    def test_strategy_that_does_not_fit_is_refused_without_an_epoch(self, strategy: Quorum | Mixed) -> None:
        jobs = new_jobs()
        with pytest.raises(SereneError):
            jobs.create(2, strategy)
        jobs.create(2, BSP())
        with pytest.raises(SereneError):
            jobs.plan_swap(0, strategy)
        started(jobs)
        with pytest.raises(SereneError):
            jobs.plan_swap(0, strategy)
        assert jobs[0].epochs_spent == 1, "no epoch is spent on nonsense"

    def test_swap_of_a_finished_or_unknown_job_is_refused(self) -> None:
        jobs = new_jobs()
        with pytest.raises(NoSuchJob):
            jobs.plan_swap(0, BSP())
        jobs.create(1, BSP())
        started(jobs)
        left(jobs, 0)
        with pytest.raises(Conflict, match="job 0 has finished"):
            jobs.plan_swap(0, ASP())


class TestLeave:
    def test_leave_swaps_policy_to_remaining_members(self) -> None:
        jobs = running(3, BSP())
        plan = jobs.plan_leave(0, 1, at(2), 17)
        assert plan.swap is not None
        assert (plan.swap.policy.epoch, plan.swap.policy.fields) == (2, BSP().compile([0, 2]))
        assert not plan.job_over
        jobs.left(plan, NOW)
        assert jobs[0].workers[1].contributions_sent == 17
        again = jobs.plan_leave(0, 1, at(2), 17)
        assert (again.swap, again.job_over) == (None, False)

    def test_leave_of_the_last_member_ends_the_job(self) -> None:
        jobs = running(2, SSP(3))
        left(jobs, 0)
        last = left(jobs, 1)
        assert last.job_over and last.swap is not None
        assert (last.swap.policy.epoch, last.swap.policy.fields) == (3, ASP().compile([])), "nobody takes part"
        assert jobs[0].state is JobState.FINISHED
        assert [str(past.strategy) for past in jobs[0].history] == ["SSP(3)"] * 3
        again = left(jobs, 0)
        assert (again.swap, again.job_over) == (None, True), "who left first hears it, too"
        assert jobs.due(NOW, 5) == jobs.due(NOW + 4.9, 5) == []
        for answers in (10, 20):  # somebody still reads a long vector
            jobs[0].note_reads(answers, NOW + 4.9)
        assert jobs.due(NOW + 9.8, 5) == []
        jobs[0].note_reads(20, NOW + 9.8)
        assert jobs.due(NOW + 9.9, 5) == [0]
        jobs.cleared(0)
        assert jobs.due(NOW + 9.9, 5) == []
        assert jobs[0].over

    @pytest.mark.parametrize(
        ("strategy", "gone", "fields"),
        [
            (Quorum(3), [0], PolicyFields(0b1110, 0b1110, 0, 3, ReadMode.SNAPSHOT)),
            (Quorum(3), [0, 1], PolicyFields(0b1100, 0b1100, 0, 2, ReadMode.SNAPSHOT)),
            (Mixed((3,)), [0], PolicyFields(0b1110, 0b0110, 0, 2, ReadMode.SNAPSHOT)),
            (Mixed((3,)), [3], PolicyFields(0b0111, 0b0111, 0, 3, ReadMode.SNAPSHOT)),
            (Mixed((2, 3), 4), [3], PolicyFields(0b0111, 0b0011, 4, 2, ReadMode.LATEST)),
            (SSP(4), [1], PolicyFields(0b1101, 0b1101, 4, 3, ReadMode.LATEST)),
        ],
    )
    def test_leave_shrinks_every_strategy_to_the_remaining_members(
        self, strategy: Quorum | Mixed | SSP, gone: list[int], fields: PolicyFields
    ) -> None:
        jobs = running(4, strategy)
        for worker in gone:
            plan = left(jobs, worker)
        assert plan.swap is not None
        assert plan.swap.policy.fields == fields
        assert jobs[0].strategy == strategy, "it is still the strategy that was asked for"

    def test_mixed_job_with_only_asynchronous_members_is_unbounded(self) -> None:
        jobs = running(3, Mixed((1, 2)))
        swap = left(jobs, 0).swap
        assert swap is not None
        assert (swap.policy.fields.sync_mask, swap.policy.fields.staleness) == (0, UNBOUNDED)


LARGEST_SCALE = (2**31 - 1) // (8 * 32)


class TestCreate:
    def test_largest_scale_is_accepted(self) -> None:
        new_jobs().create(32, BSP(), scale=LARGEST_SCALE)

    def test_limit_is_written_to_the_switch_in_units(self) -> None:
        jobs = new_jobs()
        assert jobs.create(1, BSP(), scale=1000, limit=0.0126).limit == 0.0126
        start = started(jobs)
        assert (start.limit, start.scale) == (13, 1000)

    def test_job_ids_are_reused_after_their_job_is_cleared(self) -> None:
        jobs = new_jobs()
        assert [jobs.create(1, BSP()).id for _ in range(8)] == list(range(8))
        with pytest.raises(Conflict, match="all 8 job ids"):
            jobs.create(1, BSP())
        started(jobs, 3)
        left(jobs, 0, job=3)
        jobs.cleared(3)
        assert jobs.create(1, BSP()).id == 3
        assert jobs[3].state is JobState.WAITING

    def test_finished_jobs_free_their_ids_in_order(self) -> None:
        """First a job without entries in the switch, then a pool, then the job that finished first."""
        jobs = new_jobs()
        for job in range(8):
            jobs.create(1, BSP(), pool_slots=1 if job == 5 else None)
        for job, now in [(6, NOW), (2, NOW + 1), (5, NOW + 2), (7, NOW + 3)]:
            started(jobs, job, vector_length=jobs.lanes)
            left(jobs, 0, job=job)
            jobs.due(now, 5)
        assert jobs.due(NOW + 3, 5) == [5], "a pool has no last reads"
        jobs.cleared(7)
        assert jobs.create(1, BSP()).id == 7
        for job in (5, 6, 2):
            with pytest.raises(InTheWay) as finished:
                jobs.create(1, BSP())
            assert finished.value.job is jobs[job]
            jobs.delete(job)
            assert jobs.create(1, BSP()).id == job
        with pytest.raises(Conflict, match=r"all 8 job ids are in use: .*'serenectl jobs delete --job N'"):
            jobs.create(1, BSP())

    def test_rejected_create_request_deletes_no_existing_job(self) -> None:
        jobs = with_job(1, BSP(), pool_slots=1)
        started(jobs, vector_length=jobs.lanes)
        left(jobs, 0)
        with pytest.raises(BadRequest, match="a pool runs under BSP only"):
            jobs.create(1, ASP(), job=0, pool_slots=1)
        with pytest.raises(BadRequest, match="4 bits"):
            jobs.create(1, BSP(), job=0, pool_slots=1, precision=4)
        with pytest.raises(InTheWay):
            jobs.create(1, BSP(), job=0, pool_slots=1)

    def test_slots_of_a_finished_job_are_waited_for(self) -> None:
        jobs = with_job(1, BSP())
        jobs.create(1, BSP())
        started(jobs, vector_length=jobs.lanes * (jobs.total_slots - 1))
        assert "needs 2 slots" in reason(jobs.hello(1, 0, at(2), 2 * jobs.lanes, NOW)), "that job runs"
        left(jobs, 0)
        for asking in (
            lambda: jobs.hello(1, 0, at(2), 2 * jobs.lanes, NOW),
            lambda: jobs.create(1, BSP(), pool_slots=2),
        ):
            with pytest.raises(InTheWay, match="job 0 has finished, but keeps its slots") as finished:
                asking()
            assert finished.value.job is jobs[0]
        assert "needs 101 slots" in reason(jobs.hello(1, 0, at(2), 101 * jobs.lanes, NOW)), "more than there are"
        jobs.cleared(0)
        assert isinstance(jobs.hello(1, 0, at(2), 2 * jobs.lanes, NOW), Start)


class TestSwitchLost:
    def test_running_jobs_wait_again_after_the_switch_lost_them(self) -> None:
        jobs = new_jobs()
        for _ in range(3):
            jobs.create(1, BSP())
        first = started(jobs, 0)
        started(jobs, 1)
        left(jobs, 0, job=1)
        assert jobs.switch_has_only([]) == [0]
        assert jobs[0].state is JobState.WAITING
        assert jobs[0].workers[0].state is WorkerState.EXPECTED
        assert jobs[1].over
        assert started(jobs, 0).policy.session > first.policy.session

    def test_jobs_still_on_the_switch_keep_running(self) -> None:
        jobs = running(1, BSP())
        assert jobs.switch_has_only([0]) == []
        assert jobs[0].state is JobState.RUNNING


class TestSlots:
    @given(st.lists(st.tuples(st.integers(1, 30), st.booleans()), max_size=30))
    def test_slot_allocation_never_overlaps_or_wastes(self, requests: Iterable[tuple[int, bool]]) -> None:
        """Ranges are allocated and freed at random: they stay disjoint, and a request fails only without a gap that is
        long enough."""
        taken: list[SlotRange] = []
        for count, free_one in requests:
            if free_one and taken:
                taken.pop(len(taken) // 2)
            longest = max((gap.count for gap in free_ranges(100, taken)), default=0)
            found = first_fit(100, taken, count)
            assert (found is None) == (longest < count)
            if found is not None:
                taken.append(found)
            used = [slot for a in taken for slot in range(a.first, a.end)]
            assert len(used) == len(set(used))
            assert all(0 <= slot < 100 for slot in used)
            assert len(used) + sum(gap.count for gap in free_ranges(100, taken)) == 100

    def test_first_fit_returns_the_first_gap_that_is_long_enough(self) -> None:
        taken = [SlotRange(0, 3), SlotRange(5, 2)]
        assert first_fit(10, taken, 2) == SlotRange(3, 2)
        assert first_fit(10, taken, 3) == SlotRange(7, 3)
        assert first_fit(10, taken, 4) is None


def test_finished_job_needed_least_gives_up_its_slots_first() -> None:
    """A pool, whose workers read nothing any more, then the job that finished first."""
    jobs = new_jobs()
    for job, pool_slots in enumerate([None, 20, None]):
        jobs.create(1, BSP(), pool_slots=pool_slots)
        started(jobs, job, vector_length=jobs[job].vector_length or 40 * jobs.lanes)
    for job, now in [(2, NOW), (0, NOW + 1), (1, NOW + 2)]:
        left(jobs, 0, job=job)
        jobs.due(now, 5)
    for job in (1, 2, 0):
        with pytest.raises(InTheWay) as finished:
            jobs.create(1, BSP(), pool_slots=100)
        assert finished.value.job is jobs[job]
        jobs.delete(job)
    assert jobs.create(1, BSP(), pool_slots=100).slots == SlotRange(0, 100)
