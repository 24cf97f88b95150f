"""Over racks a switch is stopped, or dies while others are awaited: the reported errors, and the policy in force when
the switch continues."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager

import grpc
import numpy as np
import pytest
from finsy.proto import p4r, p4r_grpc

from serene.client import Client, NoAnswer
from serene.controller import upkeep
from serene.controller.coordinator import Coordinator
from serene.controller.settings import settings
from serene.controller.switch.connection import SwitchError
from serene.strategy import ASP, BSP, SSP, Strategy
from tests.controller.coordinating import played, rejoin
from tests.controller.coordinating import until as comes_true
from tests.controller.processes import ControllerProcess, until
from tests.controller.relay import Relay
from tests.controller.trees import VALUES, Tree, at_once, give_up_soon, job_over

SIZES = (2, 1)
WORKERS = sum(SIZES)
GRADIENT = np.ones(VALUES, np.float32)


@pytest.fixture
def to_root(tree: Tree) -> Iterator[Relay]:
    relay = Relay(tree.root.grpc)
    yield relay
    relay.close()


def through(relay: Relay, tree: Tree) -> str:
    """The value of ``--switch`` by which the root is reached through the relay."""
    return tree.option.replace(tree.root.grpc, relay.address)


# A swap of which there is no answer


async def settled(coordinator: Coordinator) -> tuple[int, Strategy]:
    """Returns the policy that the controller reports as in force; all switches and the controller must agree."""

    def has_settled() -> bool:
        return any(event.event == "swap_settled" for event in coordinator.events.after(0.0))

    await comes_true(has_settled, "it learns what is in force")
    job, (event,) = coordinator.jobs[0], [e for e in coordinator.events.after(0.0) if e.event == "swap_settled"]
    assert (event.epoch, event.strategy) == (job.epoch, job.strategy)
    assert [(await switch.read_entries()).jobs[0].epoch for switch in coordinator.switch.switches] == [job.epoch] * 3
    return job.epoch, job.strategy


@contextmanager
def shorter_patience() -> Iterator[None]:
    """The controller waits for 2 s for an answer of a switch, not for 10 s."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("finsy.p4client._DEFAULT_RPC_TIMEOUT", 2.0)
        yield


@contextmanager
def unanswered(*words: str) -> Iterator[None]:
    """A request fails as the root does not answer."""
    message = "the switch root at .* did not answer in time.*" + ".*".join(words)
    with shorter_patience(), pytest.raises(SwitchError, match=message):
        yield


async def swap_unanswered(coordinator: Coordinator, strategy: Strategy) -> None:
    before = coordinator.jobs[0].epoch
    with unanswered("swap_settled reports"):
        await coordinator.set_strategy(0, strategy)
    assert coordinator.jobs[0].epoch == before


@played
async def test_unanswered_swap_is_found_in_force(tree: Tree, to_root: Relay) -> None:
    async with job_over(tree, through(to_root, tree)) as (coordinator, _, _):
        to_root.hold(requests=False)
        await swap_unanswered(coordinator, SSP(2))
        assert await settled(coordinator) == (2, SSP(2))
        assert not (await coordinator.set_strategy(0, SSP(2))).changed
        assert (await coordinator.set_strategy(0, ASP())).epoch == 3


@played
async def test_unanswered_eviction_is_not_revoked_by_a_readmit(tree: Tree, to_root: Relay) -> None:
    """The eviction is in force in the switch, so a readmission must be written, too."""
    async with job_over(tree, through(to_root, tree)) as (coordinator, _, _):
        to_root.hold(requests=False)
        with unanswered():
            await coordinator.set_evicted(0, 1, True)
        with pytest.raises(SwitchError, match="the switch root is unreachable"):
            await coordinator.set_evicted(0, 1, False)
        await settled(coordinator)
        assert coordinator.jobs[0].evicted() == [1]
        await coordinator.set_evicted(0, 1, False)
        assert coordinator.jobs[0].members() == [0, 1, 2]


@played
async def test_swap_that_reaches_the_root_late_is_refused_there(tree: Tree, to_root: Relay) -> None:
    """By then the controller has reported its failure."""
    async with job_over(tree, through(to_root, tree)) as (coordinator, _, _):
        to_root.hold(requests=True)
        await swap_unanswered(coordinator, SSP(2))
        assert await settled(coordinator) == (1, BSP())
        to_root.release()
        # gRPC may drop a request that was given up: here it comes once more.
        with grpc.insecure_channel(tree.root.grpc) as channel:
            stub = p4r_grpc.P4RuntimeStub(channel)
            wanted = p4r.ReadRequest(device_id=0, entities=[p4r.Entity(table_entry=p4r.TableEntry())])
            found = [entity for reply in stub.Read(wanted) for entity in reply.entities]
            update = p4r.Update(type=p4r.Update.MODIFY, entity=found[0])
            late = p4r.WriteRequest(device_id=0, election_id=p4r.Uint128(low=1), updates=[update])
            with pytest.raises(grpc.RpcError) as refused:
                stub.Write(late)
            assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
        assert (await coordinator.set_strategy(0, ASP())).epoch == 3


@played
async def test_swap_on_paused_root_settles_when_root_resumes(tree: Tree) -> None:
    """Which request the root handles first decides whether the swap is in force; the controller reports the result."""
    async with job_over(tree) as (coordinator, _, _):
        tree.root.pause()
        try:
            await swap_unanswered(coordinator, SSP(2))
            assert "root: the switch root at" in str((await coordinator.status()).switch.trouble)
        finally:
            tree.root.go_on()
        epoch, strategy = await settled(coordinator)
        assert strategy == {1: BSP(), 2: SSP(2)}[epoch]
        assert (await coordinator.set_strategy(0, ASP())).epoch == 3


# Who joins or leaves


def test_rejoining_worker_is_notified_of_an_unreachable_root(tree: Tree, daemon: ControllerProcess) -> None:
    daemon.client.create_job(WORKERS, BSP(), racks=SIZES)
    members = tree.members(VALUES)
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(Client.join, members))
    tree.root.kill()
    until(lambda: not daemon.client.status().switch.connected, "the controller notices it")
    for member in members:
        member.close()
    with tree.client(0, 0, VALUES, lane=1) as again:

        def no_answer() -> str:
            with pytest.raises(NoAnswer) as error:
                again.join(1.0)
            return str(error.value)

        until(lambda: "within 1 s: the switch root is unreachable: " in no_answer(), "the error has the reason")


@played
async def test_leaving_worker_is_notified_of_an_unreachable_root(
    tree: Tree, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_up_soon(monkeypatch)
    async with job_over(tree) as (coordinator, _, members):
        tree.root.pause()
        try:
            with shorter_patience():
                assert not await asyncio.to_thread(members[0].leave_and_wait, 1e6)
        finally:
            tree.root.go_on()
        assert coordinator.jobs[0].members() == [0, 1, 2]
    messages = [text for text in caplog.messages if text.startswith("worker 0 of job 0")]
    assert messages[0].startswith("worker 0 of job 0 waits to leave: ")
    assert messages[-1].startswith("worker 0 of job 0 cannot leave: the switch root is unreachable: ")


@played
async def test_leave_in_stalled_restoration_reports_root_unreachable(
    tree: Tree, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "TICK_S", 1e6)  # or the restoration would end as soon as it can
    give_up_soon(monkeypatch)

    def leave(member: Client) -> None:
        assert not member.leave_and_wait(1e6)

    async with job_over(tree, strategy=SSP(2)) as (coordinator, _, members):
        await at_once(members, lambda member: member.exchange(GRADIENT))
        tree.root.restart()
        await at_once(members, rejoin)
        assert coordinator.jobs[0].restoring
        tree.root.kill()
        await comes_true(lambda: not coordinator.switch.connected, "the loss is noticed")
        await asyncio.to_thread(leave, members[0])
        assert coordinator.jobs[0].restoring
        for member in members:
            member.close()
    assert "worker 0 of job 0 cannot leave: the switch root is unreachable: " in caplog.messages[-1]


# Bringing several switches up


def commander(tree: Tree, wait_s: float) -> Coordinator:
    return Coordinator(settings(switch=tree.option, ports=f"1-{max(SIZES)}", wait=wait_s))


@asynccontextmanager
async def waiting_for_leaf2(tree: Tree, wait_s: float) -> AsyncIterator[tuple[Coordinator, asyncio.Task[None]]]:
    """A coordinator that has connected to the first leaf, and that the second one keeps waiting; and its start."""
    tree.leaves[1].kill()
    coordinator = commander(tree, wait_s)
    starting = asyncio.create_task(coordinator.bring_up())
    try:
        await comes_true(lambda: coordinator.switch.switches[1].connected, "the first leaf is connected")
        yield coordinator, starting
    finally:
        await asyncio.wait([starting])
        await coordinator.switch.close()


@played
async def test_switch_that_dies_while_another_is_awaited_is_named(tree: Tree) -> None:
    leaf1, leaf2 = tree.leaves
    async with waiting_for_leaf2(tree, 6.0) as (_, starting):
        await asyncio.to_thread(leaf1.kill)
        await asyncio.to_thread(leaf2.start)
        with pytest.raises(SwitchError, match="not all switches were connected within 6 s: leaf1: ") as error:
            await starting
    assert leaf1.grpc in str(error.value)
    assert leaf2.grpc not in str(error.value) and tree.root.grpc not in str(error.value)


@played
async def test_failed_bring_up_releases_reachable_switches(tree: Tree) -> None:
    """Otherwise the next controller with the same election id, here of the same process, would find it in use."""
    tree.leaves[1].kill()
    first = commander(tree, 4.0)
    with pytest.raises(SwitchError, match=f"no P4Runtime switch answered at leaf2={tree.leaves[1].grpc} within 4 s"):
        await first.bring_up()
    tasks = [repr(task) for task in asyncio.all_tasks()]
    assert not [task for task in tasks if "controller/switch/" in task]
    tree.leaves[1].start()
    second = commander(tree, 60.0)
    await second.bring_up()
    assert second.switch.connected and not first.switch.connected
    await second.switch.close()


@played
async def test_switch_restarted_while_another_is_awaited_is_set_up_again(tree: Tree) -> None:
    async with waiting_for_leaf2(tree, 60.0) as (coordinator, starting):
        await asyncio.to_thread(tree.leaves[0].restart)
        await asyncio.to_thread(tree.leaves[1].start)
        await starting
        for switch in coordinator.switch.switches:  # which has a program, or could not be read
            assert not (await switch.read_entries()).jobs
