"""The coordinator without HTTP: concurrent commands in one event loop, and reads while a job changes."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from threading import Event, Thread, current_thread

import pytest

from serene.controller.automatic import Automatic, Decision, Observation, Terms, sight
from serene.controller.automatic import runner as runners
from serene.controller.automatic.runner import AutomaticRunner, RunningStrategy
from serene.controller.coordinator import Coordinator
from serene.controller.events import Events
from serene.controller.jobs.errors import Conflict
from serene.controller.jobs.job import JobEpoch, JobState, WorkerState
from serene.controller.jobs.jobs import Jobs
from serene.controller.settings import settings
from serene.controller.switch.connection import SwitchError
from serene.controller.switch.counters import STALENESS_CLASSES, Counters
from serene.controller.switch.telemetry import Telemetry
from serene.strategy import ASP, BSP, SSP, Strategy
from tests.controller.coordinating import commanding, join_all, played, until
from tests.controller.hosts import Host
from tests.controller.planning import NOW, at, running, started
from tests.controller.processes import SwitchProcess
from tests.ports import some_port

ROUNDS = 15

ASKS_THE_SWITCH = True  # in this process: at a Unix socket, which the command line does not take


@asynccontextmanager
async def job_of_three(switch: SwitchProcess, hosts: list[Host]) -> AsyncIterator[Coordinator]:
    """A coordinator of its own, with a running job of three workers."""
    async with commanding(switch.grpc) as coordinator:
        await coordinator.create_job(3, BSP())
        await join_all(coordinator, hosts)
        yield coordinator
        await coordinator.delete_job(0)


@played
async def test_concurrent_commands_all_take_effect(switch: SwitchProcess, hosts: list[Host]) -> None:
    async with job_of_three(switch, hosts) as coordinator:
        job = coordinator.jobs[0]
        for round_ in range(ROUNDS):
            strategy: Strategy = SSP(1 + round_ % 9)
            epoch = job.epoch
            await asyncio.gather(
                coordinator.set_evicted(0, 0, True),
                coordinator.set_evicted(0, 1, True),
                coordinator.set_strategy(0, strategy),
            )
            assert (job.evicted(), job.strategy, job.epoch) == ([0, 1], strategy, epoch + 3)
            await asyncio.gather(coordinator.set_strategy(0, ASP()), *(
                coordinator.set_evicted(0, worker, False) for worker in (0, 1)
            ))  # fmt: skip
            assert (job.evicted(), job.strategy, job.epoch) == ([], ASP(), epoch + 6)

        seen = JobEpoch.of(job)
        await coordinator.set_evicted(0, 1, True)
        assert not await coordinator._enact(seen, BSP(), "deciding"), "a decision about an earlier epoch"
        assert (job.members(), job.evicted(), job.strategy) == ([0, 2], [1], ASP())
        assert await coordinator._enact(JobEpoch.of(job), Decision(BSP(), reason="it rains"), "deciding")
        assert (job.evicted(), job.strategy) == ([1], BSP()), "who gives a reason readmits nobody"
        evictions = (coordinator.set_evicted(0, worker, True) for worker in (0, 2))
        ended = await asyncio.gather(*evictions, return_exceptions=True)
        assert [str(end) for end in ended if isinstance(end, Conflict)] == ["job 0: the last member cannot be evicted"]
        assert len(job.members()) == 1

        async def make_and_delete() -> None:
            await coordinator.delete_job((await coordinator.create_job(1, ASP())).job)

        made = [asyncio.ensure_future(coordinator.create_job(1, BSP())) for _ in range(3)]
        await asyncio.gather(*made, *(make_and_delete() for _ in range(3)))
        kept = {each.result().job for each in made}
        assert len(kept) == 3, "each id is used once"
        assert {job.id for job in coordinator.jobs} == {0, *kept}
        await asyncio.gather(*(coordinator.delete_job(job) for job in kept))


@played
async def test_automatic_strategy_is_set_only_for_the_requested_job(
    switch: SwitchProcess, hosts: list[Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While its file is loaded, the job is deleted and a new one takes its id."""
    async with job_of_three(switch, hosts) as coordinator:

        async def replaced(*_: object) -> RunningStrategy:
            await coordinator.delete_job(0)
            await coordinator.create_job(3, BSP(), job=0)
            return strategy_of(Deciding())

        monkeypatch.setattr(coordinator.automatic, "prepare", replaced)
        with pytest.raises(Conflict, match="job 0 was replaced by another job meanwhile: nothing was changed"):
            await coordinator.set_automatic(0, "deciding", {})
        assert coordinator.automatic.status(0) is None


@played
async def test_nobody_is_readmitted_while_the_sums_are_restored(switch: SwitchProcess, hosts: list[Host]) -> None:
    """Each request would begin the restoration again."""
    async with job_of_three(switch, hosts) as coordinator:
        job = coordinator.jobs[0]
        await coordinator.set_evicted(0, 2, True)
        job.restoring = True
        with pytest.raises(Conflict, match="nobody is readmitted"):
            await coordinator.set_evicted(0, 2, False)
        assert job.evicted() == [2]


@played
async def test_telemetry_drops_contribution_counts_of_a_lost_session(switch: SwitchProcess, hosts: list[Host]) -> None:
    """The restoration's end is detected by its counters; and counters just read are not read again."""
    async with job_of_three(switch, hosts) as coordinator:
        job, telemetry = coordinator.jobs[0], coordinator.telemetry
        for worker, host in enumerate(hosts):
            host.push(0, worker, [4], session=job.session, epoch=1, seq=1)
        while not all(telemetry.of(0, worker).contributions for worker in range(3)):
            await coordinator.status()
        await asyncio.to_thread(switch.restart)
        await until(lambda: job.state is JobState.WAITING, "the loss is noticed")
        assert not any(telemetry.of(0, worker).contributions for worker in range(3))


class SlowSwitch:
    """Counters that are on their way for as long as one likes."""

    drop_reasons: Sequence[str] = ()

    def __init__(self) -> None:
        self.arrive = asyncio.Event()

    async def read_worker_counters(
        self, members: Mapping[int, Sequence[int]], names: Sequence[str]
    ) -> dict[tuple[int, int], Counters]:
        await self.arrive.wait()
        counts = Counters(**dict.fromkeys(names, 99))
        return {(job, worker): counts for job, ids in members.items() for worker in ids}

    async def read_staleness(self, members: Mapping[int, Sequence[int]]) -> dict[tuple[int, int], list[int]]:
        return {(job, worker): [9] * STALENESS_CLASSES for job, ids in members.items() for worker in ids}

    async def read_drops(self) -> dict[str, int]:
        return {}


class Deciding(Automatic):
    """Is at work until it is let go."""

    period_s = 0.05

    def __init__(self) -> None:
        self.thread: Thread | None = None
        self.go = Event()
        self.seen: Observation | None = None

    def decide(self, seen: Observation) -> Strategy:
        self.seen = seen
        self.thread = current_thread()
        self.go.wait()
        return ASP()


@pytest.mark.parametrize("change", ["none", "made again", "lost"])
@played
async def test_counters_read_for_an_old_session_are_discarded(change: str) -> None:
    """The job is deleted and created again, or begins a new session, during the read. A restoration, for example, ends
    when enough contributions are counted."""
    jobs, slow = running(1, BSP()), SlowSwitch()
    telemetry = Telemetry(slow, jobs)
    reading = asyncio.create_task(telemetry.refresh())
    await asyncio.sleep(0)
    if change == "made again":
        jobs.delete(0)
        jobs.create(1, BSP())
    elif change == "lost":
        jobs.switch_has_only([])
    if change != "none":
        started(jobs)
    slow.arrive.set()
    await reading
    assert jobs[0].workers[0].state is WorkerState.RUNNING
    assert telemetry.of(0, 0).contributions == (99 if change == "none" else 0)


@played
async def test_counters_read_for_a_strategy_do_not_pass_for_all_counters() -> None:
    """An automatic strategy reads often, and not the staleness. A status that comes soon after has to read it."""
    jobs, switch = running(1, BSP()), SlowSwitch()
    switch.arrive.set()
    telemetry = Telemetry(switch, jobs)
    await telemetry.refresh(whole=False)
    counts = telemetry.of(0, 0)
    assert (counts.contributions, counts.repeats, counts.blocked, counts.answers) == (99, 99, 99, 0)
    assert not any(telemetry.staleness_of(0, 0))
    await telemetry.refresh(60)
    assert all(telemetry.staleness_of(0, 0)) and telemetry.of(0, 0).answers == 99
    await telemetry.refresh(whole=False)
    assert telemetry.of(0, 0).answers == 99, "what it did not read stays"


async def unchanged(*_: object) -> bool:
    return False


def runner_of(
    jobs: Jobs, enact: Callable[..., Awaitable[bool]] = unchanged, events: Events | None = None
) -> AutomaticRunner:
    counters = SlowSwitch()
    counters.arrive.set()
    return AutomaticRunner(jobs, Telemetry(counters, jobs), events or Events(), enact)


def strategy_of(automatic: Automatic) -> RunningStrategy:
    return RunningStrategy("deciding", {}, automatic, Terms(0.05, ()))


class Asked:
    """A strategy at work on a job of one worker. enacted: the epochs of its decisions."""

    def __init__(self) -> None:
        self.enacted: list[JobEpoch] = []
        self.jobs = running(1, BSP())
        self.runner, self.deciding = runner_of(self.jobs, self._enact), Deciding()
        self.strategy = strategy_of(self.deciding)
        self.runner.start(0, self.strategy)

    async def _enact(self, epoch: JobEpoch, *_: object) -> bool:
        self.enacted.append(epoch)
        return True


@played
async def test_stopped_strategys_late_decision_is_not_enacted() -> None:
    one = Asked()
    await until(lambda: one.deciding.thread, "it is asked")
    assert one.deciding.thread is not None and one.strategy.task is not None
    one.deciding.go.set()
    one.deciding.thread.join()  # the loop has been handed the decision, and does not look at it before it is stopped
    asyncio.get_running_loop().call_soon(one.runner.stop, 0)
    await asyncio.wait([one.strategy.task], timeout=60)
    assert one.strategy.task.done() and not one.enacted


@played
async def test_decision_is_about_the_epoch_in_which_it_was_asked_for() -> None:
    one = Asked()
    await until(lambda: one.deciding.thread, "it is asked")
    seen, swap = JobEpoch.of(one.jobs[0]), one.jobs.plan_swap(0, SSP(2))
    assert swap is not None
    one.jobs.swapped(swap, NOW)
    one.deciding.go.set()
    await until(lambda: one.enacted, "it has decided")
    one.runner.stop(0)
    assert one.enacted[0] == seen != JobEpoch.of(one.jobs[0])


@played
async def test_what_was_observed_in_a_lost_session_is_forgotten() -> None:
    """The iterations of the next one may go on from there, at another pace."""
    one, turns = Asked(), itertools.count(1)
    one.deciding.go.set()

    def compute_s(**more: float) -> float | None:
        one.jobs[0].workers[0].report = {"iteration": next(turns), "network_s": 0.0, "waiting_s": 0.0, **more}
        return one.deciding.seen.workers[0].compute_s if one.deciding.seen is not None else None

    await until(lambda: compute_s(compute_s=5.0) is not None, "it is known")
    one.jobs[0].session += 1
    await until(lambda: compute_s() is None, "it is forgotten")
    one.runner.stop(0)


class Alternating(Automatic):
    """A decision with a reason, then none, and so on."""

    asked = 0

    def decide(self, seen: Observation) -> Decision | None:
        self.asked += 1
        return Decision(ASP(), reason="it rains") if self.asked % 2 else None


@played
async def test_strategy_is_asked_again_after_a_switch_error_and_not_while_sums_are_restored() -> None:
    async def lost(*_: object) -> bool:
        raise SwitchError("connection lost")

    jobs, asked = running(1, BSP()), Alternating()
    jobs[0].restoring = True
    runner, strategy = runner_of(jobs, lost), strategy_of(asked)
    runner.start(0, strategy)
    await asyncio.sleep(0.3)
    assert asked.asked == 0
    jobs[0].restoring = False
    await until(lambda: strategy.decisions >= 4 and strategy.decisions % 2 == 0, "it is asked again")
    assert (strategy.trouble, strategy.reason, strategy.changes) == (None, "it rains", 0)
    runner.close()


@played
async def test_decision_from_before_an_evicted_worker_left_is_dropped() -> None:
    """No epoch begins then. The decision may name that worker, which would end the strategy."""
    coordinator = Coordinator(settings(switch=f"127.0.0.1:{some_port()}"))  # which is never connected
    jobs = coordinator.jobs
    jobs.create(2, BSP())
    started(jobs)
    evicted = jobs.plan_barrier(0, BSP(), {1}, "silent")
    assert evicted is not None
    jobs.swapped(evicted, NOW)
    seen = JobEpoch.of(jobs[0])
    jobs.left(jobs.plan_leave(0, 1, at(2), None), NOW)
    assert jobs[0].epoch == seen.epoch
    assert not await coordinator._enact(seen, Decision(BSP(), frozenset({1})), "evict")


@played
async def test_finished_job_has_no_automatic_strategy_in_its_status() -> None:
    """It decides nothing any more. Its last reason would be shown for ever."""
    jobs = running(1, BSP())
    runner = runner_of(jobs)
    runner.start(0, strategy_of(Deciding()))
    assert runner.status(0) is not None
    jobs.left(jobs.plan_leave(0, 0, at(1), None), NOW)
    assert jobs[0].state is JobState.FINISHED and runner.status(0) is None
    runner.close()


class Failing(Automatic):
    """Gives a reason until it is told to fail."""

    fails = False

    def decide(self, seen: Observation) -> Decision:
        if self.fails:
            raise ValueError("no more")
        return Decision(BSP(), reason="it rains")


@played
async def test_status_of_a_failed_strategy_has_the_error_and_no_reason() -> None:
    runner, failing = runner_of(running(1, BSP())), Failing()
    strategy = strategy_of(failing)
    runner.start(0, strategy)
    await until(lambda: strategy.reason == "it rains", "it has decided")
    failing.fails = True
    await until(lambda: strategy.trouble, "it fails")
    status = runner.status(0)
    assert status is not None and (status.reason, status.trouble) == ("", "ValueError('no more')")
    runner.close()


@played
async def test_clock_change_does_not_affect_automatic_strategies() -> None:
    """A strategy that lets a swap take effect would otherwise wait for as long as the clock was set back."""
    before = time.monotonic()
    one = Asked()  # whose job began at some other time of day
    one.deciding.go.set()
    await until(lambda: one.deciding.seen, "it is asked")
    one.runner.stop(0)
    assert one.deciding.seen is not None
    assert 0 <= one.deciding.seen.since_swap_s <= one.deciding.seen.t <= time.monotonic() - before


@played
async def test_strategy_without_telemetry_is_reported_blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """First no worker reports; then only some report, then all."""
    monkeypatch.setattr(sight, "BLIND_AFTER_S", 0.0)
    monkeypatch.setattr(sight, "BLIND_AFTER_ROUNDS", 0)
    jobs, events, turns = running(3, ASP()), Events(), itertools.count(1)
    runner = runner_of(jobs, events=events)
    strategy = await runner.prepare("dssp", {"period": 0.05})
    runner.start(0, strategy)
    for reporting, blind_to in (((), (0, 1, 2)), ((0, 2), (1,)), ((0, 1, 2), ())):
        while strategy.blind_to != blind_to:
            turn = next(turns)
            for worker in reporting:
                spent = {"compute_s": 0.1 * turn, "network_s": 0.0, "waiting_s": 0.0}
                jobs[0].workers[worker].report = {"iteration": turn, "state": "computing", **spent}
            await asyncio.sleep(0.01)
    runner.stop(0)
    assert [event.text.partition(" (")[0] for event in events.after(0.0)] == [
        "job 0: dssp is blind to workers 0, 1 and 2",
        "job 0: dssp is blind to worker 1",
        "job 0: dssp receives every worker's reports again",
    ]


@played
async def test_user_code_that_never_returns_is_abandoned_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread cannot be ended: after a number of such calls no more are started, and all else continues."""
    monkeypatch.setattr(runners, "DECISION_TIMEOUT_S", 0.2)
    code, go, called = runners.UserCode(), Event(), "calls of automatic strategies never returned"
    calls = [code.call(go.wait) for _ in range(24)]
    texts = [str(error) for error in await asyncio.gather(*calls, return_exceptions=True)]
    assert texts.count("no answer within 0.2 s") == runners.MOST_CALLS
    assert sum(called in text for text in texts) == 24 - runners.MOST_CALLS
    go.set()
    while called in str((await asyncio.gather(code.call(lambda: 7), return_exceptions=True))[0]):
        await asyncio.sleep(0.01)


@played
async def test_strategy_that_never_returns_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runners, "DECISION_TIMEOUT_S", 0.2)
    one = Asked()
    assert one.strategy.task is not None
    await one.strategy.task
    assert one.strategy.trouble == "no answer within 0.2 s"
    one.deciding.go.set()


@played
async def test_status_size_does_not_grow_with_the_swaps() -> None:
    coordinator = Coordinator(settings(switch=f"127.0.0.1:{some_port()}"))  # which is never connected
    coordinator.jobs.create(1, BSP())
    started(coordinator.jobs)
    job, sizes = coordinator.jobs[0], []
    for count in (40, 1100):
        while job.epoch < count:
            swap = coordinator.jobs.plan_swap(0, ASP() if job.epoch % 2 else BSP())
            assert swap is not None
            coordinator.jobs.swapped(swap, NOW)
        sizes.append(len((await coordinator.status()).model_dump_json()))
    assert sizes[1] < sizes[0] + 500
    assert len(job.history) == 1000 and job.history[-1].epoch == job.epoch
    status = (await coordinator.status()).jobs[0]
    assert (len(status.history), status.epochs_begun) == (20, 1100)
