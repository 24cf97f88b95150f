"""Jobs read back from a switch's entries: each strategy is recognised by its policy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import finsy as fy
import pytest
from finsy.p4entity import decode_entity, encode_updates
from finsy.proto import p4r

from serene import entries
from serene.controller.jobs import notes
from serene.controller.jobs.job import Elastic, Job, JobState
from serene.controller.jobs.jobs import Jobs
from serene.controller.jobs.plans import Policy, Readmission, Start
from serene.controller.jobs.slots import SlotRange
from serene.controller.switch import plan_entries
from serene.controller.switch.encoding import decoded, encoded_updates
from serene.controller.switch.plan_entries import InstalledJob
from serene.controller.switch.takeover import job_from, recognise
from serene.entries import Endpoint, Entry, SwitchAddress, Updates
from serene.errors import SereneError
from serene.program import Program
from serene.strategy import ASP, BSP, SSP, Mixed, PolicyFields, Quorum, Strategy
from serene.wire import SWITCH_IP, SWITCH_MAC, ReadMode
from tests.controller.planning import new_jobs

NOW = 1_800_000_000.0


@pytest.mark.parametrize("strategy", [
    BSP(), SSP(1), SSP(15), ASP(), Quorum(1), Quorum(3), Mixed((3,)), Mixed((0, 2)), Mixed((1,), 4),
], ids=str)  # fmt: skip
def test_takeover_recognises_every_strategy(strategy: Strategy) -> None:
    assert recognise(strategy.compile(range(4)), [0, 1, 2, 3]) == strategy
    assert recognise(Quorum(2).compile([0, 1, 3]), [0, 1, 3]) == Quorum(2), "of the remaining workers"


def found(fields: PolicyFields, at: list[int], *, workers: int = 4, lost_sessions: int = 0) -> InstalledJob:
    """Returns a job as read from a switch, with entries for the workers at these places."""
    endpoints = {worker: Endpoint(worker + 1, f"02:00:00:00:00:{worker:02x}", "10.0.0.1", 4000, 9) for worker in at}
    return InstalledJob(
        SlotRange(0, 1), 5, 1024, 8192, workers, lost_sessions, session=7, epoch=3, fields=fields, members=endpoints
    )


def states(job: Job) -> list[str]:
    return [worker.state.value for worker in job.workers]


@pytest.mark.parametrize("strategy", [BSP(), SSP(2), ASP(), Quorum(2), Mixed((3,)), Mixed((0,), 4)])
def test_takeover_takes_workers_outside_policy_for_evicted(strategy: Strategy) -> None:
    """Under ASP, too, where the sync mask is empty. The next strategy waits for no evicted worker."""
    job = job_from(0, found(strategy.compile([0, 2, 3]), [0, 1, 2, 3]), NOW)
    assert states(job) == ["running", "evicted", "running", "running"]
    assert (job.strategy, job.limit) == (strategy, 8.0)
    jobs = new_jobs()
    jobs.take_over(job)
    plan = jobs.plan_swap(0, BSP())
    assert plan is not None
    assert (plan.policy.epoch, plan.policy.fields) == (4, BSP().compile([0, 2, 3]))


def test_takeover_of_a_job_without_members_finds_it_finished() -> None:
    """Its entries exist for the last reads; no controller waits for workers that have left."""
    jobs = new_jobs()
    jobs.take_over(job_from(0, found(ASP().compile([]), [0, 1], workers=2), NOW))
    assert (jobs[0].state, states(jobs[0])) == (JobState.FINISHED, ["left", "left"])
    assert jobs.plan_leave(0, 0, jobs[0].places()[0], 17).job_over
    assert [jobs.due(NOW + later, 5) for later in (0, 4.9, 5)] == [[], [], [0]]


def test_takeover_keeps_worker_ids_if_one_never_joined() -> None:
    job = job_from(0, found(BSP().compile([0, 2, 3]), [0, 2, 3], workers=3, lost_sessions=1), NOW)
    assert states(job) == ["running", "left", "running", "running"]
    assert job.has_had(6) and job.has_had(7) and not job.has_had(8), "earlier sessions may have been its own"
    assert not job_from(0, found(BSP().compile([0, 1]), [0, 1], workers=2), NOW).has_had(6)


def test_takeover_readmits_a_member_without_an_entry() -> None:
    """The controller ended after it deleted the worker's old place, and before it wrote the new one."""
    jobs = new_jobs()
    jobs.take_over(job_from(0, found(BSP().compile([0, 1]), [0], workers=2), NOW))
    assert states(jobs[0]) == ["running", "running"]
    plan = jobs.hello(0, 1, Endpoint(2, "02:00:00:00:00:01", "10.0.0.2", 4000, 3), 5, NOW)
    assert isinstance(plan, Readmission)
    assert plan.old is None


def test_takeover_keeps_job_state_that_the_switch_does_not_hold() -> None:
    jobs = new_jobs()
    fields = BSP().compile([0, 1])
    jobs.take_over(job_from(0, found(fields, [0, 1], workers=2), NOW))
    known = jobs[0]
    jobs.left(jobs.plan_leave(0, 1, known.places()[1], 17), NOW)
    known.workers[0].retired.append(5)
    jobs.take_over(job_from(0, found(BSP().compile([0]), [0, 1], workers=2), NOW))
    again = jobs[0]
    assert again is not known
    assert states(again) == ["running", "left"]
    assert again.workers[1].contributions_sent == 17
    assert list(again.workers[0].retired) == [5]


def test_takeover_remembers_the_jobs_earlier_sessions() -> None:
    """By the entries alone, any session before this one may have been the job's."""
    jobs = new_jobs()
    fields = BSP().compile([0])
    first = replace(found(fields, [0], workers=1, lost_sessions=1), session=7)
    jobs.take_over(job_from(0, first, NOW))
    jobs.switch_has_only([])
    ours = jobs[0]
    assert ours.lost == {7}
    ours.session, second = 9, replace(first, session=9, lost_sessions=2)
    assert job_from(0, second, NOW).has_had(8)
    jobs.take_over(job_from(0, second, NOW))
    assert jobs[0] is not ours
    assert [jobs[0].has_had(session) for session in (6, 7, 8, 9)] == [True, True, False, True]


@pytest.mark.parametrize("elastic", [None, Elastic(6, 2, 3.0)])
def test_takeover_reads_name_settings_and_elastic_from_note(elastic: Elastic | None) -> None:
    job = Job(0, 4, BSP(), 1024, 8.0, name="gpt", settings={"every": 1, "optimizer": "AdamW"}, elastic=elastic)
    places = len(job.workers)
    again = job_from(0, replace(found(BSP().compile([0, 1, 2]), [0, 1, 2, 3], workers=places), note=notes.of(job)), NOW)
    assert (again.name, again.settings, again.elastic) == ("gpt", job.settings, elastic)
    assert (again.workers_expected, len(again.workers)) == (4, places)
    assert again.silenced == (frozenset() if elastic is None else {3})


@pytest.mark.parametrize("note", [
    b"", b"{", b'{"name": 5}', b"\xff", b'{"workers": 0}', b'{"workers": 2, "minimum": 0}',
    b'{"workers": 2, "evict_after": 0.0}', b'{"workers": 2, "evict_after": Infinity}',
])  # fmt: skip
def test_takeover_ignores_a_note_of_another_release(note: bytes) -> None:
    job = job_from(0, replace(found(BSP().compile([0, 1]), [0, 1], workers=2), note=note), NOW)
    assert (job.name, job.elastic, states(job)) == (None, None, ["running", "running"])


def test_takeover_reports_a_workers_second_place_as_stray() -> None:
    policy, twice = plan_entries.policy_entry(0, Policy(7, 1, BSP(), BSP().compile([0]))), []
    for incarnation in (3, 4):
        at = Endpoint(1, "02:00:00:00:00:01", "10.0.0.1", 4000, incarnation)
        twice.append(read_back(entries.member(0, 0, at)))
    read = plan_entries.installed([read_back(policy), *twice]).jobs[0]
    assert [at.incarnation for _, at in [*read.members.items(), *read.strays]] == [3, 4]


def test_takeover_refuses_unknown_policy_fields() -> None:
    with pytest.raises(SereneError, match=r"the switch's policy .* is no strategy for 2 workers"):
        recognise(PolicyFields(0b11, 0b11, 0, 9, ReadMode.LATEST), [0, 1])


@pytest.mark.parametrize("strategy", [BSP(), Mixed((1,), 2)])
def test_takeover_restores_job_from_written_p4runtime_entries(strategy: Strategy) -> None:
    """Through the P4Runtime encoding of the compiled program, and back."""
    program = Program.load("serene")
    schema = fy.P4Schema(Path(program.p4info_path), Path(program.config_path))
    jobs = Jobs(slots=8192, lanes=program.lanes, max_jobs=8, max_workers=32)
    jobs.create(2, strategy, job=5, scale=4096, limit=0.5)
    members = {
        worker: Endpoint(worker + 1, f"02:00:00:00:00:{worker:02x}", f"10.0.0.{worker}", 40000 + worker, 9 + worker)
        for worker in (0, 1)
    }
    for worker, endpoint in members.items():
        start = jobs.hello(5, worker, endpoint, 700, NOW)
    assert isinstance(start, Start)
    jobs.started(start, NOW)

    updates = encode_updates(encoded_updates(written_by(start)), schema)
    written = [decode_entity(update.entity, schema) for update in updates if update.entity.HasField("table_entry")]
    found = plan_entries.installed(decoded(written)).jobs[5]
    assert found.complete
    job = job_from(5, found, NOW)
    remembered = jobs[5]
    assert job.limit == 0.5
    assert (job.session, job.epoch, job.strategy) == (remembered.session, 1, strategy)
    assert (job.scale, job.slots, job.vector_length) == (4096, remembered.slots, 700)
    assert [worker.endpoint for worker in job.workers] == [members[0], members[1]]
    assert [worker.state for worker in job.workers] == [worker.state for worker in remembered.workers]


def test_takeover_distinguishes_aborted_start_from_removed_job() -> None:
    """A start that ended before its members leaves a policy; a removal leaves the record of the last session."""
    jobs = new_jobs()
    jobs.create(1, BSP())
    start = jobs.hello(0, 0, Endpoint(1, "02:00:00:00:00:01", "10.0.0.1", 40001, 7), 5, NOW)
    assert isinstance(start, Start)
    policy = read_back(plan_entries.policy_entry(0, start.policy))
    record = plan_entries.installed([policy]).jobs[0]
    assert (record.complete, record.record, record.session) == (False, True, start.policy.session)
    begun = plan_entries.installed([policy, read_back(plan_entries.job_entry(start, 1))]).jobs[0]
    assert (begun.complete, begun.record) == (False, False)


def read_back(entry: Entry) -> Entry:
    program = Program.load("serene")
    schema = fy.P4Schema(Path(program.p4info_path), Path(program.config_path))
    (update,) = encode_updates(encoded_updates([+entry]), schema)
    assert isinstance(update, p4r.Update)
    return decoded([decode_entity(update.entity, schema)])[0]


def written_by(start: Start) -> Updates:
    """All that a start writes, in order."""
    first = plan_entries.job_entries(start, SwitchAddress(SWITCH_IP, SWITCH_MAC))
    return [*first, +plan_entries.policy_entry(start.job, start.policy), *plan_entries.members(start)]


def test_epochs_of_failed_writes_stay_spent_after_a_takeover() -> None:
    """One of them, which nobody knew to have arrived, is in force. The later one may yet arrive."""
    jobs = new_jobs()
    jobs.take_over(job_from(0, found(BSP().compile(range(4)), [0, 1, 2, 3]), NOW))
    spent = [plan.policy for plan in (jobs.plan_swap(0, ASP()), jobs.plan_swap(0, SSP(2))) if plan is not None]
    assert [policy.epoch for policy in spent] == [4, 5]
    in_force = replace(found(spent[0].fields, [0, 1, 2, 3]), epoch=spent[0].epoch)
    jobs.take_over(job_from(0, in_force, NOW))
    plan = jobs.plan_swap(0, SSP(3))
    assert plan is not None and plan.policy.epoch == 6
