"""The coordinator without HTTP: concurrent commands in one event loop, and reads while a job changes."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from threading import Event, Thread, current_thread

import pytest

from serene.controller.automatic import Automatic, Observation, Terms, sight
from serene.controller.automatic import runner as runners
from serene.controller.automatic.runner import AutomaticRunner, RunningStrategy
from serene.controller.coordinator import Coordinator
from serene.controller.events import Events
from serene.controller.jobs.job import JobState, WorkerState
from serene.controller.jobs.jobs import Jobs
from serene.controller.settings import settings
from serene.controller.switch.counters import STALENESS_CLASSES, Counters
from serene.controller.switch.telemetry import Telemetry
from serene.strategy import ASP, BSP, SSP, Strategy
from tests.controller.coordinating import commanding, played
from tests.controller.hosts import Host, join
from tests.controller.planning import NOW, running, started
from tests.controller.processes import SwitchProcess
from tests.ports import some_port

ROUNDS = 15

ASKS_THE_SWITCH = True  # in this process: at a Unix socket, which the command line does not take


def with_job(switch: SwitchProcess, hosts: list[Host], scenario: Callable[[Coordinator], Awaitable[None]]) -> None:
    """A coordinator of its own, with a running job of three workers."""

    async def play() -> None:
        async with commanding(switch.grpc) as coordinator:
            await coordinator.create_job(3, BSP())
            await asyncio.get_running_loop().run_in_executor(None, join, hosts, 0)
            await scenario(coordinator)
            await coordinator.delete_job(0)

    asyncio.run(play())


def test_concurrent_commands_all_take_effect(switch: SwitchProcess, hosts: list[Host]) -> None:
    async def scenario(coordinator: Coordinator) -> None:
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

    with_job(switch, hosts, scenario)


def test_telemetry_drops_contribution_counts_of_a_lost_session(switch: SwitchProcess, hosts: list[Host]) -> None:
    """The restoration's end is detected by its counters; and counters just read are not read again."""

    async def scenario(coordinator: Coordinator) -> None:
        job, telemetry = coordinator.jobs[0], coordinator.telemetry
        for worker, host in enumerate(hosts):
            host.push(0, worker, [4], session=job.session, epoch=1, seq=1)
        while not all(telemetry.of(0, worker).contributions for worker in range(3)):
            await coordinator.status()
        await asyncio.to_thread(switch.restart)
        while job.state is not JobState.WAITING:
            await asyncio.sleep(0.01)
        assert not any(telemetry.of(0, worker).contributions for worker in range(3))

    with_job(switch, hosts, scenario)


class SlowSwitch:
    """Counters that are on their way for as long as one likes."""

    drop_reasons: Sequence[str] = ()

    def __init__(self) -> None:
        self.arrive = asyncio.Event()

    async def read_worker_counters(self, members: Mapping[int, Sequence[int]]) -> dict[tuple[int, int], Counters]:
        await self.arrive.wait()
        return {(job, worker): Counters(contributions=99) for job, ids in members.items() for worker in ids}

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


def test_counters_read_for_an_old_session_are_discarded() -> None:
    """The job is deleted and created again, or begins a new session, during the read. A restoration, for example, ends
    when enough contributions are counted."""

    async def scenario(change: Callable[[Jobs], None]) -> int:
        jobs = running(1, BSP())
        slow = SlowSwitch()
        telemetry = Telemetry(slow, jobs)
        reading = asyncio.create_task(telemetry.refresh())
        await asyncio.sleep(0)
        change(jobs)
        slow.arrive.set()
        await reading
        assert jobs[0].workers[0].state is WorkerState.RUNNING
        return int(telemetry.of(0, 0).contributions)

    def made_again(jobs: Jobs) -> None:
        jobs.delete(0)
        jobs.create(1, BSP())
        started(jobs)

    def lost(jobs: Jobs) -> None:
        jobs.switch_has_only([])
        started(jobs)

    assert asyncio.run(scenario(lambda jobs: None)) == 99
    assert asyncio.run(scenario(made_again)) == 0
    assert asyncio.run(scenario(lost)) == 0


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


def test_stopped_strategys_late_decision_is_not_enacted() -> None:
    async def scenario() -> list[object]:
        enacted: list[object] = []

        async def enact(*decision: object) -> bool:
            enacted.append(decision)
            return True

        runner, deciding = runner_of(running(1, BSP()), enact), Deciding()
        strategy = strategy_of(deciding)
        runner.start(0, strategy)
        assert strategy.task is not None
        while deciding.thread is None:
            await asyncio.sleep(0)
        deciding.go.set()
        deciding.thread.join()  # the loop has been handed the decision, and does not look at it before it is stopped
        asyncio.get_running_loop().call_soon(runner.stop, 0)
        await asyncio.wait([strategy.task], timeout=60)
        assert strategy.task.done()
        return enacted

    assert asyncio.run(scenario()) == []


def test_clock_change_does_not_affect_automatic_strategies() -> None:
    """A strategy that lets a swap take effect would otherwise wait for as long as the clock was set back."""

    async def scenario() -> None:
        before = time.monotonic()
        runner, deciding = runner_of(running(1, BSP())), Deciding()  # which began at some other time of day
        deciding.go.set()
        runner.start(0, strategy_of(deciding))
        while deciding.seen is None:
            await asyncio.sleep(0.01)
        runner.stop(0)
        assert 0 <= deciding.seen.since_swap_s <= deciding.seen.t <= time.monotonic() - before

    asyncio.run(scenario())


def test_strategy_without_telemetry_is_reported_blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """First no worker reports; then only some report, then all."""
    monkeypatch.setattr(sight, "BLIND_AFTER_S", 0.0)
    monkeypatch.setattr(sight, "BLIND_AFTER_ROUNDS", 0)

    async def scenario() -> None:
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

    asyncio.run(asyncio.wait_for(scenario(), 120))


def test_user_code_that_never_returns_is_abandoned_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread cannot be ended: after a number of such calls no more are started, and all else continues."""
    monkeypatch.setattr(runners, "DECISION_TIMEOUT_S", 0.2)

    async def scenario() -> None:
        code, go, called = runners.UserCode(), Event(), "calls of automatic strategies never returned"
        calls = [code.call(go.wait) for _ in range(24)]
        said = [str(error) for error in await asyncio.gather(*calls, return_exceptions=True)]
        assert said.count("no answer within 0.2 s") == runners.MOST_CALLS
        assert sum(called in text for text in said) == 24 - runners.MOST_CALLS
        go.set()
        while called in str((await asyncio.gather(code.call(lambda: 7), return_exceptions=True))[0]):
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(scenario(), 120))


def test_strategy_that_never_returns_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runners, "DECISION_TIMEOUT_S", 0.2)

    async def scenario() -> None:
        deciding = Deciding()
        strategy = strategy_of(deciding)
        runner_of(running(1, BSP())).start(0, strategy)
        assert strategy.task is not None
        await strategy.task
        assert strategy.trouble == "no answer within 0.2 s"
        deciding.go.set()

    asyncio.run(asyncio.wait_for(scenario(), 120))


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
    told = (await coordinator.status()).jobs[0]
    assert (len(told.history), told.epochs_begun) == (20, 1100)
