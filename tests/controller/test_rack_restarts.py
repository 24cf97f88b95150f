"""What is left behind when the controller dies in the middle of a swap over racks, or when a leaf or the root is
restarted: the next controller goes on, or the job does, in a new session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from controller.coordinator import Coordinator
from controller.settings import settings
from controller.switch.tree import Tree as Fabric
from serene.client import Client, Update
from serene.racks import Racks
from serene.strategy import ASP, BSP, SSP
from serene.wire import ReadMode
from tests.controller.processes import until
from tests.controller.test_racks import train
from tests.controller.trees import Tree, controller

T = TypeVar("T")
SIZES = (2, 1)
VALUES = 700
WORKERS = sum(SIZES)


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Tree]:
    made = Tree(tmp_path, SIZES)
    yield made
    made.stop()


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


@pytest.mark.parametrize("restarted", [0, 1, 2], ids=["root", "leaf1", "leaf2"])
def test_a_restarted_switch_costs_the_session_and_nothing_else(tree: Tree, tmp_path: Path, restarted: int) -> None:
    racks, steps = Racks(SIZES), 400
    daemon = controller(tree, tmp_path / "controller.log")
    client = daemon.client
    client.create_job(WORKERS, BSP(), racks=SIZES)
    with ThreadPoolExecutor(WORKERS) as pool:
        members = [tree.client(*racks.place(number), VALUES) for number in range(WORKERS)]
        training = [pool.submit(train, member, number, steps) for number, member in enumerate(members)]
        until(lambda: min(worker.iteration for worker in client.job(0).workers) > 20, "they train")
        session = client.job(0).session
        tree.switches[restarted].restart()
        until(lambda: client.job(0).session > session, "a new session")
        totals = [each.result(100) for each in training]
    for total in totals:
        assert (total == steps * sum(range(1, WORKERS + 1))).all()
    done = client.job(0)
    assert [done.lost_sessions, done.state.value] == [1, "finished"]
    assert all((worker.report or {})["iterations_repeated"] == 0 for worker in done.workers)
    assert daemon.stop() == 0
    assert "Traceback" not in daemon.log.read_text()
