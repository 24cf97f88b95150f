"""The controller dies during a swap over racks, or a leaf or the root restarts: the next controller continues the swap,
or the job resumes in a new session."""

from __future__ import annotations

import asyncio
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from serene.client import Client, Session, Update
from serene.controller.coordinator import Coordinator
from serene.controller.jobs.job import JobState
from serene.controller.jobs.plans import Readmission, Start
from serene.controller.switch.assembling import NOTHING
from serene.controller.switch.connection import SwitchError
from serene.racks import Racks
from serene.strategy import ASP, BSP, SSP
from serene.wire import ReadMode
from tests.controller.coordinating import commanding, played, until
from tests.controller.processes import ControllerProcess, states
from tests.controller.processes import until as comes_true
from tests.controller.trees import VALUES, Tree, adding_to, at_once, controller, fabric_of, give_up_soon, job_over

SIZES = (2, 1)
WORKERS = sum(SIZES)


class Crash(BaseException):
    """The controller dies here."""


async def die(*_: object, **__: object) -> None:
    raise Crash


async def refused(*_: object, **__: object) -> None:
    raise SwitchError("not now")


@pytest.mark.parametrize("dies", ["before the flip", "after the flip"])
@played
async def test_swap_interrupted_by_a_controllers_death_is_completed(
    tree: Tree, dies: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gradient = np.ones(VALUES, np.float32)

    def exchange(member: Client) -> Update:
        return member.exchange(gradient)

    async with job_over(tree) as (first, fabric, members):
        await at_once(members, exchange)
        if dies == "before the flip":
            monkeypatch.setattr(fabric.root, "write", die)
        else:
            monkeypatch.setattr(fabric, "_notify", die)
        with pytest.raises(Crash):
            await first.set_strategy(0, SSP(2))
        session = first.jobs[0].session
        prepared = (await fabric.leaves[0].read_entries()).jobs[0].prepared
        assert set(prepared) == {(session, 1), (session, 2)}

    async with commanding(tree.option, max(SIZES)) as second:
        job, fabric = second.jobs[0], fabric_of(second)
        assert [job.session, job.racks, job.members()] == [session, Racks(SIZES), [0, 1, 2]]
        assert [job.epoch, job.strategy] == ([1, BSP()] if dies == "before the flip" else [2, SSP(2)])
        for leaf in fabric.leaves:  # a WELCOME names the epoch in force
            assert (await leaf.read_entries()).jobs[0].epoch == job.epoch
        for update in await at_once(members, exchange):
            assert update.epoch in (1, job.epoch)
        swapped = await second.set_strategy(0, ASP())
        assert swapped.epoch == job.epoch == (2 if dies == "before the flip" else 3)
        assert swapped.prepare_ms is not None and swapped.flip_ms is not None
        assert 0 < swapped.prepare_ms + swapped.flip_ms < swapped.write_ms
        for leaf in fabric.leaves:
            held = (await leaf.read_entries()).jobs[0].prepared
            assert set(held) == {(session, job.epoch - 1), (session, job.epoch)}
            assert (held[session, job.epoch].staleness, held[session, job.epoch].read_mode) == (255, ReadMode.LATEST)
        await second.delete_job(0)
        for switch in fabric.switches:
            left = (await switch.read_entries()).jobs[0]
            assert left.record and not left.addresses and not left.prepared, switch.options.name


@played
async def test_failed_swap_leaves_no_prepared_policy(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    async with job_over(tree) as (coordinator, fabric, _):
        job = coordinator.jobs[0]

        async def prepared() -> list[set[int]]:
            return [{epoch for _, epoch in (await leaf.read_entries()).jobs[0].prepared} for leaf in fabric.leaves]

        with monkeypatch.context() as patched:
            patched.setattr(fabric.root, "write", refused)
            with pytest.raises(SwitchError, match="not now"):
                await coordinator.set_strategy(0, SSP(2))
        assert await prepared() == [{1, 2}, {1, 2}]
        await coordinator._on_connected()
        assert await prepared() == [{1}, {1}] and coordinator.jobs[0] is job

        plan = coordinator.jobs.hello(0, 0, replace(job.places()[0], incarnation=77), VALUES, 0.0)
        assert isinstance(plan, Readmission)
        with monkeypatch.context() as patched:  # a member before its leaf names its epoch?
            patched.setattr(fabric.leaves[0], "read_entries", refused)
            with pytest.raises(SwitchError, match="not now"):
                await fabric.readmit(plan)
        assert 0 not in (await fabric.leaves[0].read_entries()).jobs[0].members
        before = await prepared()

        tree.root.kill()
        await until(lambda: not fabric.root.connected, "the loss is noticed")
        with pytest.raises(SwitchError, match="root"):
            await coordinator.set_strategy(0, SSP(3))
        assert await prepared() == before


@played
async def test_job_is_deleted_while_a_leaf_is_away(tree: Tree) -> None:
    async with job_over(tree) as (coordinator, fabric, _):
        tree.leaves[1].kill()
        await until(lambda: not fabric.leaves[1].connected, "the loss is noticed")
        await coordinator.delete_job(0)
        assert coordinator.jobs.get(0) is None
        assert (await fabric.leaves[0].read_entries()).jobs[0].bare
        # A leaf that restarts while another is away holds nothing of its jobs, and nobody writes to it before that is
        # seen.
        tree.leaves[0].restart()

        def waits() -> bool:
            trouble = fabric.trouble
            return trouble is not None and "leaf1" not in trouble and fabric.leaves[0] in fabric._uncompared

        await until(waits, "it is connected again")
        with pytest.raises(SwitchError, match="leaf1 was connected again, and waits for leaf2"):
            fabric._racks[0] = Racks((2, 0))
            fabric._require(0)
        tree.leaves[1].start()
        await until(lambda: fabric.connected and not fabric._uncompared, "all are compared")


@played
async def test_deletion_that_reaches_no_switch_is_refused(tree: Tree) -> None:
    async with job_over(tree) as (coordinator, fabric, _):
        for switch in tree.switches:
            switch.kill()
        await until(lambda: not any(switch.connected for switch in fabric.switches), "the losses are noticed")
        with pytest.raises(SwitchError, match=r"no switch is reachable: root: .*; leaf1: .*; leaf2: "):
            await coordinator.delete_job(0)
        assert coordinator.jobs[0].state is JobState.RUNNING


@pytest.mark.parametrize("known", [True, False], ids=["known", "to a controller that comes later"])
@played
async def test_pool_ends_if_a_leaf_loses_its_part(tree: Tree, known: bool) -> None:
    """No session follows: workers that ask are refused, because the job does not exist."""

    async def is_over(coordinator: Coordinator, events: list[str]) -> None:
        await until(lambda: coordinator.jobs.get(0) is None, "the job is over")
        assert [event.event for event in coordinator.events.after(0.0)] == events
        for switch in fabric_of(coordinator).switches:
            assert (await switch.read_entries()).jobs.get(0, NOTHING).bare

    async with job_over(tree, pool_slots=4) as (coordinator, _, _):
        assert coordinator.jobs[0].state is JobState.RUNNING
        if known:
            tree.leaves[0].restart()
            await is_over(coordinator, ["job_created", "job_started", "job_deleted"])
    if not known:
        tree.leaves[0].restart()
        async with commanding(tree.option, max(SIZES)) as second:
            await is_over(second, [])


@played
async def test_pool_over_racks_is_taken_over_with_its_precision(tree: Tree) -> None:
    async with job_over(tree, pool_slots=4) as (coordinator, _, _):
        assert (await coordinator.set_precision(0, 8)).epoch == 2
    async with commanding(tree.option, max(SIZES)) as second:
        job = second.jobs[0]
        assert (job.pool, job.epoch, job.precision, job.strategy) == (True, 2, 8, BSP())


@played
async def test_job_on_other_leaves_is_maintained_while_a_leaf_is_away(tree: Tree) -> None:
    """Its counters are read, and its slots are freed after it has finished."""
    gradient = np.ones(VALUES, np.float32)
    async with commanding(tree.option, max(SIZES), grace_s=0) as coordinator:
        members, fabric = tree.members(VALUES)[:2], fabric_of(coordinator)
        await coordinator.create_job(2, BSP(), racks=[2, 0])
        await at_once(members, Client.join)
        tree.leaves[1].kill()
        await until(lambda: not fabric.leaves[1].connected, "the loss is noticed")
        await at_once(members, lambda member: member.exchange(gradient))
        slots = members[0].membership.slots

        def counted() -> bool:
            return [coordinator.telemetry.of(0, worker).contributions for worker in range(2)] == [slots, slots]

        await until(counted, "counters are read")
        await at_once(members, lambda member: member.leave_and_wait(60.0))
        await until(lambda: coordinator.jobs[0].over, "its slots are free")
        assert (await fabric.root.read_entries()).jobs[0].bare


@pytest.mark.parametrize("how", ["finish", "leave"])
def test_finish_or_leave_does_not_wait_for_a_dead_root(
    tree: Tree, daemon: ControllerProcess, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """It does not wait as long as for the other workers, which here is for ever."""
    give_up_soon(monkeypatch)
    daemon.client.create_job(WORKERS, BSP(), racks=SIZES)
    members = tree.members(VALUES)
    with ThreadPoolExecutor(WORKERS) as pool:
        sessions = [Session(member) for member in members]
        list(pool.map(Session.join, sessions))
        list(pool.map(lambda session: session.exchange(np.ones(VALUES, np.float32)), sessions))
        tree.root.kill()
        comes_true(lambda: not daemon.client.status().switch.connected, "the controller notices it")
        if how == "finish":
            assert list(pool.map(lambda session: session.finish(1e6), sessions)) == [False] * WORKERS
        else:
            list(pool.map(Session.leave, sessions))
    assert states(daemon.client) == ["running"] * WORKERS
    assert daemon.stop() == 0
    assert re.search("LEAVE of worker 0 of job 0 from .*: the switch root is unreachable", daemon.log.read_text())


@played
async def test_session_that_admits_only_one_rack_is_lost_with_its_sums_restored(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The workers of that rack have joined it, and worker 0 has contributed."""
    failed = threading.Event()
    totals = [np.zeros(VALUES, np.float32) for _ in range(WORKERS)]

    async with commanding(tree.option, max(SIZES)) as coordinator:
        fabric = fabric_of(coordinator)
        await coordinator.create_job(WORKERS, ASP(), racks=SIZES)
        sessions = [
            Session(member, adding_to(total)) for member, total in zip(tree.members(VALUES), totals, strict=True)
        ]
        admit = fabric.admit

        async def in_one_rack(plan: Start) -> None:
            monkeypatch.setattr(fabric, "admit", admit)
            with monkeypatch.context() as patched:
                patched.setattr(fabric.leaves[1], "write", refused)
                with pytest.raises(SwitchError, match="not now"):
                    await admit(plan)
            await until(lambda: sessions[0].iteration and sessions[1].members, "one rack trains")
            failed.set()
            raise SwitchError("not now")

        def train(number: int) -> bool:
            with sessions[number] as session:
                session.join()
                for step in range(3):
                    if number < 2 and step == 1 - number:
                        assert failed.wait(60)
                    session.exchange(np.ones(VALUES, np.float32))
                return session.finish(60.0)

        monkeypatch.setattr(fabric, "admit", in_one_rack)
        assert await asyncio.gather(*(asyncio.to_thread(train, number) for number in range(WORKERS))) == [True] * 3
        assert all((total == 9).all() for total in totals)
        assert coordinator.jobs[0].lost_sessions == 1


@played
async def test_leaves_in_another_order_are_refused_with_the_right_one(tree: Tree) -> None:
    async with job_over(tree):
        pass
    root, leaf1, leaf2 = tree.option.split(",")
    with pytest.raises(SwitchError, match="expected the leaves in the order leaf1, leaf2"):
        async with commanding(f"{root},{leaf2},{leaf1}", max(SIZES)):
            pass
    async with commanding(tree.option, max(SIZES)) as third:
        assert third.jobs[0].members() == [0, 1, 2]


@pytest.mark.parametrize(
    ("restarted", "controllers"), [(1, 1), (0, 2), (2, 2)], ids=["leaf1", "root, 2nd", "leaf2, 2nd"]
)
def test_switch_restart_over_racks_costs_only_the_session(
    tree: Tree,
    daemon: ControllerProcess,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    restarted: int,
    controllers: int,
) -> None:
    """The root alone: test_rack_losses.py."""
    racks, enough = Racks(SIZES), threading.Event()
    client = daemon.client
    client.create_job(WORKERS, BSP(), racks=SIZES)

    def train(number: int) -> tuple[np.ndarray, int]:
        """All that it has read at the end, and its steps; it contributes number + 1 in each."""
        total = np.zeros(VALUES, np.float32)
        with Session(tree.client(*racks.place(number), VALUES), adding_to(total)) as session:
            session.join()
            while not enough.is_set():
                session.exchange(np.full(VALUES, number + 1, np.float32))
            assert session.finish(60.0)
            return total, session.iteration

    def all_past(iteration: int) -> bool:
        return min(worker.iteration for worker in client.job(0).workers) > iteration

    with ThreadPoolExecutor(WORKERS) as pool:
        training = [pool.submit(train, number) for number in range(WORKERS)]
        try:
            comes_true(lambda: all_past(20), "they train")
            session = client.job(0).session
            if controllers == 2:
                daemon.kill()
            tree.switches[restarted].restart()
            if controllers == 2:
                daemon = controller(tree, tmp_path / "second.log")
                request.addfinalizer(daemon.kill)
                client = daemon.client
                assert client.job(0).racks == list(SIZES)
            comes_true(lambda: client.job(0).session > session and all_past(20), "they train in a new session")
        finally:
            enough.set()
        totals, steps = zip(*(each.result(100) for each in training), strict=True)
    for total in totals:
        assert (total == sum((number + 1) * done for number, done in enumerate(steps))).all()
    done = client.job(0)
    assert [done.lost_sessions, done.state.value] == [1, "finished"]
    assert all((worker.report or {})["iterations_repeated"] == 0 for worker in done.workers)
    assert daemon.stop() == 0
    assert "Traceback" not in daemon.log.read_text()
