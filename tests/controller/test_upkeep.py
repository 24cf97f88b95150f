"""The coordinator in this process, on a real switch: what it does for jobs by itself, and when the switch dies."""

from __future__ import annotations

import asyncio
import json
import time
from functools import partial

import pytest

from serene.controller import upkeep
from serene.controller.admission import admission
from serene.controller.jobs.job import Job, JobState, WorkerState
from serene.controller.jobs.named import Asks
from serene.controller.switch.connection import SwitchError
from serene.controller.switch.switch import Switch
from serene.entries import Endpoint, Entry
from serene.strategy import ASP, BSP, SSP
from serene.wire import Op
from tests.controller.coordinating import commanding, join_all, played, until
from tests.controller.hosts import LANES, Host
from tests.controller.processes import SwitchProcess, leave_until_over

ASKS_THE_SWITCH = True  # in this process: at a Unix socket, which the command line does not take


@played
async def test_job_that_cannot_be_cleared_does_not_block_others(
    switch: SwitchProcess, hosts: list[Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the other order the later job would wait."""
    remove = Switch.remove

    async def not_the_first(self: Switch, job: int) -> None:
        if job == 0:
            raise SwitchError("not now")
        await remove(self, job)

    async with commanding(switch.grpc, grace_s=0) as coordinator:
        for job in (0, 1):
            await coordinator.create_job(1, BSP())
            await join_all(coordinator, hosts[job : job + 1], job)
        with monkeypatch.context() as patched:
            patched.setattr(Switch, "remove", not_the_first)
            for job in (0, 1):
                await asyncio.to_thread(hosts[job].ask, lambda job=job: hosts[job].leave(job, 0), Op.BYE)  # type: ignore[misc]
            await until(lambda: coordinator.jobs[1].over, "the second job's slots are free")
            assert not coordinator.jobs[0].over
        await until(lambda: coordinator.jobs[0].over, "now the first one's are")


@played
async def test_finished_job_is_recreated_before_grace_period_ends(switch: SwitchProcess, hosts: list[Host]) -> None:
    """By the command that its next worker receives; a worker that needs its slots meanwhile waits."""

    async with commanding(switch.grpc, grace_s=3600) as coordinator:
        whole = coordinator.jobs.total_slots * coordinator.jobs.lanes
        await coordinator.create_job(1, BSP())
        await coordinator.create_job(1, BSP())
        session = await join_all(coordinator, hosts[:1], 0, whole)
        await asyncio.to_thread(hosts[0].ask, lambda: hosts[0].leave(0, 0), Op.BYE)
        hosts[0].incarnation += 1
        refused = await asyncio.to_thread(hosts[0].ask, lambda: hosts[0].hello(0, 0, 5), Op.REFUSED)
        assert refused.text.endswith("create a new one with 'serenectl jobs create --job 0 --workers 1'")
        waits = await asyncio.to_thread(hosts[1].ask, lambda: hosts[1].hello(1, 0, 5), Op.WAIT)
        assert waits.text.startswith("job 0 has finished, but keeps its slots")
        await coordinator.create_job(1, BSP(), job=0)
        hosts[0].forget()
        assert await join_all(coordinator, hosts[:1]) > session
        await asyncio.to_thread(hosts[1].ask, lambda: hosts[1].hello(1, 0, 5), Op.WELCOME)
        for job in (0, 1):
            await coordinator.delete_job(job)


@pytest.mark.parametrize("removed", ["half", "all"])
@played
async def test_partly_removed_job_begins_a_new_session(
    switch: SwitchProcess, hosts: list[Host], monkeypatch: pytest.MonkeyPatch, removed: str
) -> None:
    """A removal failed half-way, or was not answered. Otherwise the job would only seem to run, and its workers would
    get no answer, or would be notified that another controller ended it."""
    remove = Switch.remove

    async def failing(self: Switch, job: int) -> None:
        if removed == "all":
            await remove(self, job)
        else:
            await self.write([-Entry("job", {"job": job})])
        raise SwitchError("not now")

    async with commanding(switch.grpc) as coordinator:
        await coordinator.create_job(2, BSP())
        session = await join_all(coordinator, hosts[:2])
        job = coordinator.jobs[0]
        with monkeypatch.context() as patched:
            patched.setattr(Switch, "remove", failing)
            with pytest.raises(SwitchError, match="not now"):
                await coordinator.delete_job(0)
        await until(lambda: job.state is JobState.WAITING, "its workers may join again")
        for host in hosts[:2]:
            host.forget()
        assert await join_all(coordinator, hosts[:2]) > session
        assert job.lost_sessions == 1
        await coordinator.delete_job(0)


@played
async def test_job_ended_by_another_controller_is_over(switch: SwitchProcess, hosts: list[Host]) -> None:
    """It is not treated as lost: the workers that the other controller has dismissed would be waited for."""

    async with commanding(switch.grpc) as first:
        await first.create_job(2, BSP())
        await join_all(first, hosts[:2])
        async with commanding(switch.grpc, election_id=7) as second:
            assert second.jobs[0].state is JobState.RUNNING
            await second.delete_job(0)
            await until(lambda: not first.switch.connected, "the first notices the second")
        await until(lambda: first.jobs.get(0) is None, "the first, which commands the switch again, sees the end")
        hello = partial(hosts[1].hello, 0, 1, 5)  # the second's word to the running job's workers may still come
        refused = await asyncio.to_thread(hosts[1].ask, hello, Op.REFUSED, Op.WAIT, echoing=0)
        assert refused.op is Op.REFUSED and "there is no job 0" in refused.text


@played
async def test_job_ends_when_remaining_workers_are_reported_dead(
    switch: SwitchProcess, hosts: list[Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leaving worker reports the deaths; workers that are still heard keep the job alive."""

    async with commanding(switch.grpc, gone_after=3600.0) as coordinator:
        await coordinator.create_job(3, BSP(), pool_slots=1)
        await join_all(coordinator, hosts[:3], vector_length=LANES)
        job = coordinator.jobs[0]
        monkeypatch.setattr(upkeep, "GONE_S", 1800.0)
        body = json.dumps({"contributions_sent": 0, "died": [1, 2, "3", None, [4]]}).encode()
        await asyncio.to_thread(hosts[0].ask, lambda: hosts[0].send(Op.LEAVE, 0, 0, body), Op.BYE)
        assert (job.state, job.members(), job.died) == (JobState.RUNNING, [1, 2], {1, 2})
        assert not await coordinator._upkeep._processes_are_gone(job)
        monkeypatch.setattr(upkeep, "GONE_S", 0.0)
        await until(lambda: coordinator.jobs.get(0) is None, "the job is gone")


@played
async def test_pool_is_over_when_a_worker_is_silent_or_its_switch_restarts(
    switch: SwitchProcess, hosts: list[Host]
) -> None:
    """A pool whose switch is lost cannot be restored, so no session follows. Other jobs stay."""
    async with commanding(switch.grpc, gone_after=3600.0) as coordinator:

        def others_stay() -> bool:
            return [job.id for job in coordinator.jobs] == [1]

        await coordinator.create_job(2, BSP(), pool_slots=1)
        await coordinator.create_job(1, BSP())
        await join_all(coordinator, hosts[:2], vector_length=LANES)
        await join_all(coordinator, hosts[2:], 1)
        coordinator._upkeep.gone_after_s = 0.5
        refusal = await asyncio.to_thread(
            hosts[0].ask, lambda: hosts[0].report(0, 0, state="computing", round=time.monotonic()), Op.REFUSED
        )
        assert refusal.text.startswith("job 0 is over: worker") and refusal.text.endswith("silent for 0.5 s")
        await until(others_stay, "the pool is gone")

        coordinator._upkeep.gone_after_s = 3600.0
        await coordinator.create_job(2, BSP(), pool_slots=1)
        await join_all(coordinator, hosts[:2], vector_length=LANES)
        await asyncio.to_thread(switch.restart)
        await until(others_stay, "the second pool is gone, too")
        assert coordinator.jobs[1].state is JobState.WAITING
        await coordinator.delete_job(1)


@pytest.mark.parametrize("restoring", [False, True])
def test_named_job_does_not_end_for_left_workers_while_it_is_restored(restoring: bool) -> None:
    """Otherwise they would read a sum that has votes in place of contributions."""
    job = Job(0, 2, BSP(), 1, 1.0, JobState.RUNNING, name="gpt", restoring=restoring)
    for worker, state in zip(job.workers, (WorkerState.LEFT, WorkerState.RUNNING), strict=True):
        worker.state, worker.endpoint = state, Endpoint(worker.id + 1, "02:00:00:00:00:01", "10.0.0.1", 5000, 1)
    assert upkeep._awaited(job) is not restoring


@played
async def test_silent_evicted_worker_does_not_keep_its_job_running(switch: SwitchProcess, hosts: list[Host]) -> None:
    """Neither under this controller nor under the next one."""
    async with commanding(switch.grpc, gone_after=3600.0) as coordinator:
        await coordinator.create_job(2, BSP())
        await join_all(coordinator, hosts[:2])
        await coordinator.set_evicted(0, 1, True)
        bye = await asyncio.to_thread(hosts[0].ask, lambda: hosts[0].leave(0, 0), Op.BYE)
        assert (bye.text, coordinator.jobs[0].state) == ('{"job_over": false}', JobState.RUNNING)
        coordinator._upkeep.gone_after_s = 0.0
        await asyncio.to_thread(leave_until_over, hosts[0])
        assert coordinator.jobs[0].state is JobState.FINISHED
    async with commanding(switch.grpc) as second:
        assert second.jobs[0].state is JobState.FINISHED
        await second.delete_job(0)


@played
async def test_named_job_with_dead_last_member_finishes_for_leaver(switch: SwitchProcess, hosts: list[Host]) -> None:
    """The job is not deleted while another worker waits for its end. (If its workers come and go:
    tests/dataplane/test_elastic_runs.py.)"""
    async with commanding(switch.grpc, gone_after=3600.0) as coordinator:
        for process in ("a", "b", "a"):  # the job is made when both are there
            await coordinator.find_place("gpt", Asks(process, 2, {}, 1, 1), BSP())
        await join_all(coordinator, hosts[:2])
        await asyncio.to_thread(hosts[0].ask, lambda: hosts[0].leave(0, 0), Op.BYE)
        coordinator._upkeep.gone_after_s = 0.0
        await asyncio.to_thread(leave_until_over, hosts[0])
        assert coordinator.jobs[0].state is JobState.FINISHED
        await coordinator.delete_job(0)


@played
async def test_named_job_waits_without_limit_after_a_lost_session(switch: SwitchProcess) -> None:
    """A job that nobody joins ends; the workers of a lost session still have its sums."""
    async with commanding(switch.grpc) as coordinator:
        await coordinator.create_job(2, BSP())
        job = coordinator.jobs[0]
        job.name, job.asked_at, job.lost_sessions = "gpt", -1e9, 1
        await coordinator._upkeep._look_after(job)
        assert coordinator.jobs.get(0) is job
        job.lost_sessions = 0
        await coordinator._upkeep._look_after(job)
        assert coordinator.jobs.get(0) is None


@played
async def test_next_controller_takes_evicted_worker_for_silent(switch: SwitchProcess, hosts: list[Host]) -> None:
    """Otherwise it would be readmitted, and delay the others although its process has died."""

    async with commanding(switch.grpc) as coordinator:
        await coordinator.create_job(2, BSP(), evict_after=3600.0)
        await join_all(coordinator, hosts[:2])
        await coordinator.set_evicted(0, 1, True)
        assert coordinator.events.after(0.0)[-1].text == "job 0: worker 1 is evicted, epoch 2"
    async with commanding(switch.grpc) as coordinator:
        job = coordinator.jobs[0]
        runs, silent = (coordinator.telemetry.silent_s(0, worker) for worker in job.workers)
        assert (job.members(), job.silenced) == ([0], frozenset({1}))
        assert runs < 3600.0 < silent
        await coordinator.delete_job(0)


@played
async def test_restarts_of_one_host_are_rate_limited(
    switch: SwitchProcess, hosts: list[Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each process that is admitted in a worker's place begins a new epoch for all."""
    host = hosts[1]

    def restarts() -> None:
        for host.incarnation in range(10_000, 10_005):
            host.hello(0, 1, 5)  # with the number that it is asked for
        # A port's requests are served in their order: those before this one have been, or were overlooked.
        host.ask(lambda: host.hello(0, 32, 5), Op.REFUSED)

    async with commanding(switch.grpc) as coordinator:
        await coordinator.create_job(2, ASP())
        await join_all(coordinator, hosts[:2])
        with monkeypatch.context() as patched:
            patched.setattr(admission, "READMISSION_INTERVAL_S", 3600.0)
            await asyncio.to_thread(restarts)
            assert coordinator.jobs[0].epoch <= 2
        host.incarnation = 20_000
        await asyncio.to_thread(host.ask, lambda: host.hello(0, 1, 5), Op.WELCOME)
        worker = coordinator.jobs[0].workers[1]
        await until(lambda: worker.endpoint and worker.endpoint.incarnation == 20_000, "it is readmitted")
        assert coordinator.jobs[0].epoch <= 3
        await coordinator.delete_job(0)


@played
async def test_stopped_switch_does_not_block_the_status(
    switch: SwitchProcess, hosts: list[Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its counters are outdated then. Without a bound each request would wait for the timeouts of all before it.
    Requests sent meanwhile may take effect when the switch continues, or not: the controller reports which."""
    async with commanding(switch.grpc) as coordinator:
        await coordinator.create_job(2, BSP())
        await join_all(coordinator, hosts[:2])
        before = (await coordinator.status()).switch.election_id
        switch.pause()
        try:
            monkeypatch.setattr("serene.controller.coordinator.COUNTERS_TIMEOUT_S", 0.5)
            monkeypatch.setattr("finsy.p4client._DEFAULT_RPC_TIMEOUT", 2.0)
            seen = await asyncio.wait_for(asyncio.gather(*(coordinator.status() for _ in range(4))), 60)
            assert [status.jobs[0].state for status in seen] == ["running"] * 4
            with pytest.raises(SwitchError, match=r"did not answer in time; it may be stopped .*swap_settled reports"):
                await coordinator.set_strategy(0, ASP())
            await until(lambda: "it may be stopped" in str(coordinator.switch.trouble), "the status has the reason")
        finally:
            monkeypatch.undo()
            switch.go_on()
        await until(lambda: coordinator.switch.connected, "the controller finds it again")
        # What comes late of the last connection is refused.
        assert (await coordinator.status()).switch.election_id > before
        (settled,) = [event for event in coordinator.events.after(0.0) if event.event == "swap_settled"]
        job = coordinator.jobs[0]
        assert (settled.epoch, settled.strategy) == (job.epoch, job.strategy)
        assert job.strategy == {1: BSP(), 2: ASP()}[job.epoch]
        assert (await coordinator.set_strategy(0, SSP(1))).epoch == 3
        await coordinator.delete_job(0)
