"""The rule that names the slow worker, on the seeded runs of `serene.experiments.correctness.slow_ranks`."""

from __future__ import annotations

import base64
import struct
from dataclasses import replace

import numpy as np
import pytest

from serene.controller.jobs.job import Job, JobState, WorkerState
from serene.controller.status.slow import HISTORY, REMEMBERED, SlowWorkers, slow_one
from serene.experiments.correctness.slow_ranks import KINDS, Plan, is_right, play
from serene.report import Facts
from serene.steps import LONGEST, MOST, REPORTED, SHORTEST_S, StepTimes, steps_in
from serene.strategy import ASP, BSP, Strategy


@pytest.mark.parametrize("kind", [*KINDS, "nobody", "in turn"])
def test_slow_worker_is_named_and_no_other(kind: str) -> None:
    wrong = []
    for seed in range(8):
        plan = Plan.of(kind, seed)
        if not is_right(plan, named := play(plan, 60)):
            wrong.append(f"{plan}: {named}")
    assert wrong == []


def test_lateness_of_two_deviations_suffices_in_ten_steps() -> None:
    """In some of the steps it is less than 1.5 deviations."""
    plan = Plan.of("computing", 414)
    assert is_right(plan, named := play(plan, 60)), named


@pytest.mark.parametrize(("share", "named"), [(0.02, None), (0.04, 1)])
def test_worker_is_slow_from_three_per_cent_of_a_step_on(share: float, named: int | None) -> None:
    """However surely it is the last: worker 1 in each step."""
    late = 0.1 * share
    steps = np.tile([[0.05, 0.05, late], [0.05 + late, 0.05 - late, 0.0]], (HISTORY, 1, 1))
    found = slow_one(steps)
    assert (found and found.index) == named


def test_slow_worker_is_found_although_another_is_later_in_some_steps() -> None:
    """Of seven others one is passed over: in two steps of five one of them, another each time, is later by chance."""
    late = np.zeros((HISTORY, 8))
    late[:, 7] = 0.01
    for step in range(HISTORY):
        if step % 5 < 2:
            late[step, step % 7] = 0.02
    waiting = late.max(axis=1, keepdims=True) - late
    found = slow_one(np.stack([0.05 + late, 0.05 + waiting, waiting], axis=2))
    assert found is not None and found.index == 7


def test_short_steps_are_compared_by_their_means() -> None:
    plan = replace(Plan.of("computing", 3), compute_s=0.004, way_s=0.0001, begins=0)
    named = play(plan, 500)
    assert named is not None and (named.worker, named.where) == (plan.slow, "computing")


def test_report_contains_the_latest_steps() -> None:
    times = StepTimes()
    assert times.text() is None
    for number in range(100):
        times.add(number, 0.1 * SHORTEST_S, 0.2 * SHORTEST_S, 0.01 * number * SHORTEST_S, epoch=3)
    text = times.text()
    assert text is not None and len(text) <= 100
    steps = steps_in(text)
    assert steps is not None and (steps.epoch, steps.first, steps.each, len(steps.times)) == (3, 68, 4, MOST)
    means = [0.01 * (68 + 4 * row + 1.5) * SHORTEST_S for row in range(MOST)]
    np.testing.assert_allclose(steps.times[:, 2], means, rtol=1e-3)
    times.add(100, 0.1 * SHORTEST_S, 0.2 * SHORTEST_S, 0.0, epoch=3)
    steps = steps_in(times.text())
    assert steps is not None and (steps.first, len(steps.times)) == (68, MOST), "of whole averages alone"
    times.add(0, 70.0, 0.0, 0.0, epoch=4)
    steps = steps_in(times.text())
    assert steps is not None and (steps.epoch, steps.first, steps.each) == (4, 0, 1)


@pytest.mark.parametrize(
    "reported",
    [
        None,
        7,
        "é",
        "AAAA",
        base64.b64encode(bytes(10)).decode(),
        base64.b64encode(bytes(16)).decode(),
        base64.b64encode(b"\0\0\0\0\1\0\0\0\2\0" + bytes(6)).decode(),
        base64.b64encode(bytes(8) + (2 * LONGEST).to_bytes(2, "little") + bytes(6)).decode(),
        base64.b64encode(bytes(8) + b"\1\0" + b"\0\x7c" * 3).decode(),
        base64.b64encode(bytes(8) + b"\1\0" + bytes(6 * (MOST + 1))).decode(),
    ],
    ids=[
        "nothing", "number", "no base64", "short", "no steps", "each is 0", "odd start", "too many", "infinite", "long",
    ],
)  # fmt: skip
def test_bad_step_reports_are_ignored(reported: object) -> None:
    assert steps_in(reported) is None


AT_ONCE = 2  # steps in a report
LATE, WAITS = [90.0, 10.0, 0.0], [10.0, 90.0, 80.0]  # ms of a step: computing, exchanging, waiting


def report(epoch: int, first: int, times: list[float]) -> Facts:
    packed = struct.pack("<IIH", epoch, first, 1) + np.array([times] * AT_ONCE, "<f2").tobytes()
    return {REPORTED: base64.b64encode(packed).decode()}


def running_job(workers: int = 2) -> Job:
    job = Job(id=0, workers_expected=workers, strategy=BSP(), scale=1, limit=1.0, state=JobState.RUNNING)
    job.session = job.epoch = 1
    for worker in job.workers:
        worker.state = WorkerState.RUNNING
    return job


def worker_1_is_slow(job: Job, slow: SlowWorkers, others: Facts | None = None) -> None:
    """others: worker 0's report before each of worker 1's."""
    for first in range(0, 20 * AT_ONCE, AT_ONCE):
        if others is not None:
            slow.note(job, 0, others, float(first))
        for worker, times in enumerate((WAITS, LATE)):
            slow.note(job, worker, report(1, first, times), float(first))


@pytest.mark.parametrize("epoch", [0, 2, 2**32 - 1])
def test_step_reports_of_other_epochs_hide_no_slow_worker(epoch: int) -> None:
    """Of an epoch that is over, or has not begun."""
    job, slow = running_job(), SlowWorkers()
    slow.note(job, 1, report(1, 0, LATE), 0.0)
    worker_1_is_slow(job, slow, report(epoch, 0, WAITS))
    found = slow.of(job)
    assert found is not None and (found.worker, found.since) == (1, 0.0)


def test_slow_worker_is_cleared_when_no_longer_late() -> None:
    job, slow, messages = running_job(), SlowWorkers(), list[str | None]()
    worker_1_is_slow(job, slow)
    for first in range(20 * AT_ONCE, 30 * AT_ONCE, AT_ONCE):
        messages += [slow.note(job, worker, report(1, first, [50.0, 50.0, 10.0]), float(first)) for worker in range(2)]
    assert [text for text in messages if text] == ["job 0: worker 1 is no longer slow"]
    assert slow.of(job) is None


def test_slow_worker_stays_named_when_another_member_leaves() -> None:
    """The new epoch has too few steps for a verdict at first."""
    job, slow, messages = running_job(3), SlowWorkers(), list[str | None]()

    def train(epoch: int, each: tuple[list[float], ...]) -> None:
        for first in range(0, 20 * AT_ONCE, AT_ONCE):
            for worker, times in enumerate(each):
                messages.append(slow.note(job, worker, report(epoch, first, times), float(100 * epoch + first)))

    train(1, (WAITS, LATE, WAITS))
    assert [text for text in messages if text] != []
    messages.clear()
    job.workers[2].state, job.epoch = WorkerState.LEFT, 2
    train(2, (WAITS, LATE))
    found = slow.of(job)
    assert not any(messages) and found is not None and (found.worker, found.since) == (1, 100.0)


def test_step_reports_have_bounded_memory() -> None:
    """Also if each report has earlier steps than the last one."""
    job, slow = running_job(), SlowWorkers()
    for report_ in range(4 * REMEMBERED):
        slow.note(job, 0, report(1, 2**31 - AT_ONCE * report_, WAITS), 0.0)
    assert len(slow._jobs[0].reported[0][1]) <= REMEMBERED


@pytest.mark.parametrize(
    ("strategy", "state"), [(ASP(), WorkerState.RUNNING), (BSP(), WorkerState.EVICTED), (BSP(), WorkerState.LEFT)]
)
def test_worker_nobody_waits_for_is_not_reported_slow(strategy: Strategy, state: WorkerState) -> None:
    job, slow = running_job(), SlowWorkers()
    worker_1_is_slow(job, slow)
    assert slow.of(job) is not None
    job.strategy, job.workers[1].state = strategy, state
    assert slow.of(job) is None
    job = running_job()
    job.session = 2
    assert slow.of(job) is None
