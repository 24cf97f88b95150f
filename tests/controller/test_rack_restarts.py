"""What is left behind when the controller dies in the middle of a swap over racks, or when a leaf or the root is
restarted: the next controller goes on, or the job does, in a new session."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from serene.client import Client, Session, Update
from serene.controller.coordinator import Coordinator
from serene.controller.jobs.job import JobState
from serene.controller.jobs.plans import Readmission
from serene.controller.settings import settings
from serene.controller.switch.assembling import NOTHING
from serene.controller.switch.connection import SwitchError
from serene.controller.switch.tree import Tree as Fabric
from serene.racks import Racks
from serene.strategy import ASP, BSP, SSP, Quorum
from serene.wire import ReadMode
from tests.controller.processes import ControllerProcess, until
from tests.controller.trees import Tree, adding_to, controller, states

T = TypeVar("T")
SIZES = (2, 1)
VALUES = 700
WORKERS = sum(SIZES)


class Crash(BaseException):
    """The controller dies here."""


async def commanding(tree: Tree) -> tuple[Coordinator, Fabric, asyncio.Task[None]]:
    coordinator = Coordinator(settings(switch=tree.option, ports=f"1-{max(SIZES)}"))
    await coordinator.bring_up()
    assert isinstance(coordinator.switch, Fabric)
    return coordinator, coordinator.switch, asyncio.create_task(coordinator.run())


async def ended(work: asyncio.Task[None]) -> None:
    work.cancel()
    with suppress(asyncio.CancelledError):
        await work


async def at_once(members: list[Client], what: Callable[[Client], T]) -> list[T]:
    """Every worker does the same, each in a thread of its own."""
    return list(await asyncio.gather(*(asyncio.to_thread(what, member) for member in members)))


@pytest.mark.parametrize("dies", ["before the flip", "after the flip"])
def test_a_controller_that_dies_in_the_middle_of_a_swap_is_followed(
    tree: Tree, dies: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    racks, gradient = Racks(SIZES), np.ones(VALUES, np.float32)

    def exchange(member: Client) -> Update:
        return member.exchange(gradient)

    async def die(*_: object, **__: object) -> None:
        raise Crash

    async def play() -> None:
        members = [tree.client(*racks.place(number), VALUES) for number in range(WORKERS)]
        first, fabric, work = await commanding(tree)
        await first.create_job(WORKERS, BSP(), racks=SIZES)
        await at_once(members, Client.join)
        await at_once(members, exchange)
        if dies == "before the flip":
            monkeypatch.setattr(fabric.root, "write", die)
        else:
            monkeypatch.setattr(fabric, "_tell", die)
        with pytest.raises(Crash):
            await first.set_strategy(0, SSP(2))
        session = first.jobs[0].session
        prepared = (await fabric.leaves[0].read_entries()).jobs[0].prepared
        assert set(prepared) == {(session, 1), (session, 2)}
        await ended(work)

        second, fabric, work = await commanding(tree)
        job = second.jobs[0]
        assert [job.session, job.racks, job.members()] == [session, racks, [0, 1, 2]]
        assert [job.epoch, job.strategy] == ([1, BSP()] if dies == "before the flip" else [2, SSP(2)])
        for leaf in fabric.leaves:  # a WELCOME tells of the epoch in force
            assert (await leaf.read_entries()).jobs[0].epoch == job.epoch
        for update in await at_once(members, exchange):
            assert update.epoch in (1, job.epoch)
        swapped = await second.set_strategy(0, ASP())
        assert swapped.epoch == job.epoch == (2 if dies == "before the flip" else 3)
        for leaf in fabric.leaves:
            held = (await leaf.read_entries()).jobs[0].prepared
            assert set(held) == {(session, job.epoch - 1), (session, job.epoch)}
            assert (held[session, job.epoch].staleness, held[session, job.epoch].read_mode) == (255, ReadMode.LATEST)
        await second.delete_job(0)
        for switch in fabric.switches:
            left = (await switch.read_entries()).jobs[0]
            assert left.record and not left.addresses and not left.prepared, switch.options.name
        await ended(work)
        for member in members:
            member.close()

    asyncio.run(play())


def test_who_was_evicted_when_the_controller_died_stays_out(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """The policy is in force, and no leaf tells of it: with worker 2 this one would be of no strategy."""

    async def die(*_: object, **__: object) -> None:
        raise Crash

    async def play() -> None:
        members = [tree.client(*Racks(SIZES).place(number), VALUES) for number in range(WORKERS)]
        first, fabric, work = await commanding(tree)
        await first.create_job(WORKERS, Quorum(1), racks=SIZES)
        await at_once(members, Client.join)
        session = first.jobs[0].session
        monkeypatch.setattr(fabric, "_tell", die)
        with pytest.raises(Crash):
            await first.set_evicted(0, 2, True)
        await ended(work)

        second, fabric, work = await commanding(tree)
        job = second.jobs[0]
        assert [job.session, job.epoch, job.members(), job.evicted()] == [session, 2, [0, 1], [2]]
        assert job.strategy == Quorum(1)
        told = (await fabric.leaves[1].read_entries()).jobs[0]
        assert told.epoch == 2 and told.fields is not None and told.fields.member_mask == 0
        assert (await second.set_evicted(0, 2, False)).epoch == 3
        await ended(work)
        for member in members:
            member.close()

    asyncio.run(play())


def test_swaps_that_fail_leave_nothing_prepared(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(*_: object, **__: object) -> None:
        raise SwitchError("not now")

    async def play() -> None:
        members = [tree.client(*Racks(SIZES).place(number), VALUES) for number in range(WORKERS)]
        coordinator, fabric, work = await commanding(tree)
        await coordinator.create_job(WORKERS, BSP(), racks=SIZES)
        await at_once(members, Client.join)
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
        with monkeypatch.context() as patched:  # a member before its leaf tells of its epoch?
            patched.setattr(fabric.leaves[0], "read_entries", refused)
            with pytest.raises(SwitchError, match="not now"):
                await fabric.readmit(plan)
        assert 0 not in (await fabric.leaves[0].read_entries()).jobs[0].members
        before = await prepared()

        tree.root.kill()
        while fabric.root.connected:
            await asyncio.sleep(0.05)
        with pytest.raises(SwitchError, match="root"):
            await coordinator.set_strategy(0, SSP(3))
        assert await prepared() == before
        await ended(work)
        for member in members:
            member.close()

    asyncio.run(asyncio.wait_for(play(), 100))


def test_a_job_is_deleted_while_a_leaf_is_away(tree: Tree) -> None:
    async def play() -> None:
        members = [tree.client(*Racks(SIZES).place(number), VALUES) for number in range(WORKERS)]
        coordinator, fabric, work = await commanding(tree)
        await coordinator.create_job(WORKERS, BSP(), racks=SIZES)
        await at_once(members, Client.join)
        tree.leaves[1].kill()
        while fabric.leaves[1].connected:
            await asyncio.sleep(0.05)
        await coordinator.delete_job(0)
        assert coordinator.jobs.get(0) is None
        assert (await fabric.leaves[0].read_entries()).jobs[0].bare
        # A leaf that restarts while another is away holds nothing of its jobs, and nobody writes to it before that is
        # seen.
        tree.leaves[0].restart()
        while (trouble := fabric.trouble) is None or "leaf1" in trouble or fabric.leaves[0] not in fabric._uncompared:
            await asyncio.sleep(0.05)
        with pytest.raises(SwitchError, match="leaf1 was connected again, and waits for leaf2"):
            fabric._racks[0] = Racks((2, 0))
            fabric._require(0)
        tree.leaves[1].start()
        while not fabric.connected or fabric._uncompared:
            await asyncio.sleep(0.05)
        await ended(work)
        for member in members:
            member.close()

    asyncio.run(asyncio.wait_for(play(), 100))


def test_a_deletion_that_reaches_no_switch_is_refused(tree: Tree) -> None:
    async def play() -> None:
        members = [tree.client(*Racks(SIZES).place(number), VALUES) for number in range(WORKERS)]
        coordinator, fabric, work = await commanding(tree)
        await coordinator.create_job(WORKERS, BSP(), racks=SIZES)
        await at_once(members, Client.join)
        for switch in tree.switches:
            switch.kill()
        while any(switch.connected for switch in fabric.switches):
            await asyncio.sleep(0.05)
        with pytest.raises(SwitchError, match=r"none of the switches is within reach: root: .*; leaf1: .*; leaf2: "):
            await coordinator.delete_job(0)
        assert coordinator.jobs[0].state is JobState.RUNNING
        await ended(work)
        for member in members:
            member.close()

    asyncio.run(asyncio.wait_for(play(), 100))


@pytest.mark.parametrize("known", [True, False], ids=["known", "to a controller that comes later"])
def test_a_pool_of_which_a_leaf_has_lost_its_part_is_over(tree: Tree, known: bool) -> None:
    """No session follows: its workers, who ask, hear that there is no such job."""

    async def play() -> None:
        coordinator, fabric, work = await commanding(tree)
        slots = 4
        values = slots * coordinator.jobs.lanes
        members = [tree.client(*Racks(SIZES).place(number), values) for number in range(WORKERS)]
        await coordinator.create_job(WORKERS, BSP(), racks=SIZES, pool_slots=slots)
        await at_once(members, Client.join)
        assert coordinator.jobs[0].state is JobState.RUNNING
        if known:
            tree.leaves[0].restart()
            while coordinator.jobs.get(0) is not None:
                await asyncio.sleep(0.05)
        else:
            await ended(work)
            tree.leaves[0].restart()
            coordinator, fabric, work = await commanding(tree)
            assert coordinator.jobs.get(0) is None
        told = [event.event for event in coordinator.events.after(0.0)]
        assert told == (["job_created", "job_started", "job_deleted"] if known else [])
        for switch in fabric.switches:
            assert (await switch.read_entries()).jobs.get(0, NOTHING).bare
        await ended(work)
        for member in members:
            member.close()

    asyncio.run(asyncio.wait_for(play(), 100))


def test_a_pool_is_taken_over_with_its_precision(tree: Tree) -> None:
    async def play() -> None:
        coordinator, _, work = await commanding(tree)
        slots = 4
        values = slots * coordinator.jobs.lanes
        members = [tree.client(*Racks(SIZES).place(number), values) for number in range(WORKERS)]
        await coordinator.create_job(WORKERS, BSP(), racks=SIZES, pool_slots=slots)
        await at_once(members, Client.join)
        assert (await coordinator.set_precision(0, 8)).epoch == 2
        await ended(work)
        second, _, work = await commanding(tree)
        job = second.jobs[0]
        assert (job.pool, job.epoch, job.precision, job.strategy) == (True, 2, 8, BSP())
        await ended(work)
        for member in members:
            member.close()

    asyncio.run(asyncio.wait_for(play(), 100))


def test_a_job_elsewhere_is_looked_after_while_a_leaf_is_away(tree: Tree) -> None:
    """Its counters are read, and its slots are freed when it has finished."""
    gradient = np.ones(VALUES, np.float32)

    async def play() -> None:
        members = [tree.client(0, place, VALUES) for place in range(2)]
        coordinator, fabric, work = await commanding(tree)
        await coordinator.create_job(2, BSP(), racks=[2, 0])
        await at_once(members, Client.join)
        tree.leaves[1].kill()
        while fabric.leaves[1].connected:
            await asyncio.sleep(0.05)
        await at_once(members, lambda member: member.exchange(gradient))
        slots = members[0].membership.slots
        while [coordinator.telemetry.of(0, worker).contributions for worker in range(2)] != [slots, slots]:
            await asyncio.sleep(0.05)
        await at_once(members, lambda member: member.leave_and_wait(60.0))
        while not coordinator.jobs[0].over:
            await asyncio.sleep(0.05)
        assert (await fabric.root.read_entries()).jobs[0].bare
        await ended(work)
        for member in members:
            member.close()

    asyncio.run(asyncio.wait_for(play(), 100))


@pytest.mark.parametrize("how", ["finish", "leave"])
def test_who_leaves_does_not_wait_for_a_root_that_is_gone(tree: Tree, daemon: ControllerProcess, how: str) -> None:
    """For as long as one waits for the others, which here is for ever."""
    daemon.client.create_job(WORKERS, BSP(), racks=SIZES)
    members = [tree.client(*Racks(SIZES).place(number), VALUES) for number in range(WORKERS)]
    with ThreadPoolExecutor(WORKERS) as pool:
        sessions = [Session(member) for member in members]
        list(pool.map(Session.join, sessions))
        list(pool.map(lambda session: session.exchange(np.ones(VALUES, np.float32)), sessions))
        tree.root.kill()
        until(lambda: not daemon.client.status().switch.connected, "the controller notices it")
        if how == "finish":
            assert list(pool.map(lambda session: session.finish(1e6), sessions)) == [False] * WORKERS
        else:
            list(pool.map(Session.leave, sessions))
    assert states(daemon.client) == ["running"] * WORKERS
    assert daemon.stop() == 0
    assert re.search("LEAVE of worker 0 of job 0 from .*: the switch root is out of reach", daemon.log.read_text())
    for member in members:
        member.close()


def test_leaves_in_another_order_are_refused_with_the_right_one(tree: Tree) -> None:
    async def play() -> None:
        members = [tree.client(*Racks(SIZES).place(number), VALUES) for number in range(WORKERS)]
        first, _, work = await commanding(tree)
        await first.create_job(WORKERS, BSP(), racks=SIZES)
        await at_once(members, Client.join)
        await ended(work)
        root, leaf1, leaf2 = tree.option.split(",")
        second = Coordinator(settings(switch=f"{root},{leaf2},{leaf1}", ports="1-2"))
        with pytest.raises(SwitchError, match="expected the leaves in the order leaf1, leaf2"):
            await second.bring_up()
        await second.switch.close()
        third, _, work = await commanding(tree)
        assert third.jobs[0].members() == [0, 1, 2]
        await ended(work)
        for member in members:
            member.close()

    asyncio.run(asyncio.wait_for(play(), 100))


@pytest.mark.parametrize("with_controller", [False, True], ids=["alone", "with the controller"])
@pytest.mark.parametrize("restarted", [0, 1, 2], ids=["root", "leaf1", "leaf2"])
def test_a_restarted_switch_costs_the_session_and_nothing_else(
    tree: Tree,
    daemon: ControllerProcess,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    restarted: int,
    with_controller: bool,
) -> None:
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
            until(lambda: all_past(20), "they train")
            session = client.job(0).session
            if with_controller:
                daemon.kill()
            tree.switches[restarted].restart()
            if with_controller:
                daemon = controller(tree, tmp_path / "second.log")
                request.addfinalizer(daemon.kill)
                client = daemon.client
                assert client.job(0).racks == list(SIZES)
            until(lambda: client.job(0).session > session and all_past(20), "they train in a new session")
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
