"""The coordinator without HTTP: what is done at once in one event loop, and what is read while a job changes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from threading import Event, Thread, current_thread

from serene.controller.automatic import Automatic, Observation, Terms
from serene.controller.automatic.runner import AutomaticRunner, RunningStrategy
from serene.controller.coordinator import Coordinator
from serene.controller.events import Events
from serene.controller.jobs.job import JobState, WorkerState
from serene.controller.jobs.jobs import Jobs
from serene.controller.jobs.plans import Start
from serene.controller.switch.counters import STALENESS_CLASSES, Counters
from serene.controller.switch.telemetry import Telemetry
from serene.entries import Endpoint
from serene.strategy import ASP, BSP, SSP, Strategy
from tests.controller.coordinating import commanding
from tests.controller.hosts import Host, join
from tests.controller.processes import SwitchProcess

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


def test_commands_at_once_all_hold(switch: SwitchProcess, hosts: list[Host]) -> None:
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


def test_what_was_counted_in_a_lost_session_restores_nothing(switch: SwitchProcess, hosts: list[Host]) -> None:
    """The end of a restoration is counted; and counters that somebody has just read are not read again."""

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


def begin(jobs: Jobs) -> None:
    start = jobs.hello(0, 0, Endpoint(1, "02:00:00:00:00:01", "10.0.0.1", 4000, 7), 5, 1e9)
    assert isinstance(start, Start)
    jobs.started(start, 1e9)


def test_counters_of_a_session_that_is_over_are_not_the_next_one_s() -> None:
    """They are read while the job is deleted and made again, or begins a new session: a restoration, for one, is over
    when enough has been contributed."""

    async def scenario(change: Callable[[Jobs], None]) -> int:
        jobs = Jobs(slots=8, lanes=320, max_jobs=8, max_workers=32)
        jobs.create(1, BSP())
        begin(jobs)
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
        begin(jobs)

    def lost(jobs: Jobs) -> None:
        jobs.switch_has_only([])
        begin(jobs)

    assert asyncio.run(scenario(lambda jobs: None)) == 99
    assert asyncio.run(scenario(made_again)) == 0
    assert asyncio.run(scenario(lost)) == 0


def test_a_strategy_that_is_stopped_as_its_decision_arrives_decides_no_more() -> None:
    async def scenario() -> list[object]:
        jobs = Jobs(slots=8, lanes=320, max_jobs=8, max_workers=32)
        jobs.create(1, BSP())
        begin(jobs)
        counters = SlowSwitch()
        counters.arrive.set()
        enacted: list[object] = []

        async def enact(*decision: object) -> bool:
            enacted.append(decision)
            return True

        runner = AutomaticRunner(jobs, Telemetry(counters, jobs), Events(), enact)
        deciding = Deciding()
        running = RunningStrategy("deciding", {}, deciding, Terms(deciding.period_s, ()))
        runner.start(0, running)
        assert running.task is not None
        while deciding.thread is None:
            await asyncio.sleep(0)
        deciding.go.set()
        deciding.thread.join()  # the loop has been handed the decision, and does not look at it before it is stopped
        asyncio.get_running_loop().call_soon(runner.stop, 0)
        await asyncio.wait([running.task], timeout=60)
        assert running.task.done()
        return enacted

    assert asyncio.run(scenario()) == []


def test_a_clock_that_is_set_changes_nothing_for_an_automatic_strategy() -> None:
    """One that gives a swap time to show what it does would wait for as long as the clock was set back."""

    async def scenario() -> None:
        before = time.monotonic()
        jobs = Jobs(slots=8, lanes=320, max_jobs=8, max_workers=32)
        jobs.create(1, BSP())
        begin(jobs)  # at some other time of day
        counters = SlowSwitch()
        counters.arrive.set()
        deciding = Deciding()
        deciding.go.set()
        runner = AutomaticRunner(jobs, Telemetry(counters, jobs), Events(), lambda *_: asyncio.sleep(0, False))
        runner.start(0, RunningStrategy("deciding", {}, deciding, Terms(deciding.period_s, ())))
        while deciding.seen is None:
            await asyncio.sleep(0.01)
        runner.stop(0)
        assert 0 <= deciding.seen.since_swap_s <= deciding.seen.t <= time.monotonic() - before

    asyncio.run(scenario())
