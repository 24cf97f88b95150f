"""A coordinator in this process whose switch dies: what its connections do, and members that change while sums are
restored."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import finsy as fy
import numpy as np
import pytest

from serene.client import Client
from serene.controller import upkeep
from serene.controller.switch.connection import IdInUse, P4RuntimeConnection, Unanswered, Unreachable
from serene.controller.switch.switch import Switch, SwitchOptions
from serene.entries import SwitchAddress
from serene.program import Program
from serene.strategy import SSP
from serene.wire import SWITCH_IP, SWITCH_MAC
from tests.controller.coordinating import PATIENCE_S, commanding, played, rejoin, until
from tests.controller.processes import SwitchProcess

ASKS_THE_SWITCH = True  # in this process: at a Unix socket, which the command line does not take


@pytest.mark.parametrize("change", ["evicted", "restarted"])
@played
async def test_membership_change_after_restoration_takes_the_later_epoch(
    switch: SwitchProcess, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """The end of the restoration begins an epoch itself. A change planned before it would write an older epoch over
    that one, or keep the restoration's BSP in force. (A LEAVE: tests/dataplane/test_rules.py.)"""
    monkeypatch.setattr(upkeep, "TICK_S", 1e6)  # the change finds the restoration complete, but not ended

    async with commanding(switch.grpc) as coordinator:
        await coordinator.create_job(3, SSP(2))
        job = coordinator.jobs[0]
        members = [Client(switch.transport(worker), 0, worker, 5, silence_s=0.4) for worker in range(3)]
        await asyncio.gather(*(asyncio.to_thread(member.join) for member in members))
        await asyncio.gather(*(asyncio.to_thread(member.exchange, np.ones(5, np.float32)) for member in members))
        switch.restart()
        await asyncio.gather(*(asyncio.to_thread(rejoin, member) for member in members))
        await until(lambda: job.restoring, "the restoration begins")
        assert job.epoch == 1
        if change == "evicted":
            await coordinator.set_evicted(0, 2, True)
        else:
            members[2].close()
            members[2] = Client(switch.transport(2), 0, 2, 5)
            await asyncio.to_thread(members[2].join)
        # The switch answers the newcomer before the coordinator has recorded the epoch.
        await until(lambda: job.epoch == 3, "the change is recorded")
        assert [begun.epoch for begun in job.history if begun.session == job.session] == [1, 2, 3]
        assert (job.restoring, job.in_force) == (False, SSP(2))
        assert job.members() == ([0, 1, 2] if change == "restarted" else [0, 1])
        for member in members:
            member.close()
        await coordinator.delete_job(0)


@played
async def test_controller_retries_until_its_predecessors_id_is_free(
    switch: SwitchProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A switch may notice the end late; until then it refuses the election id, which the successor uses too."""
    monkeypatch.setattr("serene.controller.switch.switch.ID_BECOMES_FREE_S", PATIENCE_S)
    opening = P4RuntimeConnection.open
    refused = asyncio.Event()

    async def watched(connection: P4RuntimeConnection) -> None:
        try:
            await opening(connection)
        except IdInUse:
            refused.set()
            raise

    async with AsyncExitStack() as successors:
        async with commanding(switch.grpc):
            monkeypatch.setattr(P4RuntimeConnection, "open", watched)
            coming = asyncio.create_task(successors.enter_async_context(commanding(switch.grpc)))
            await asyncio.wait_for(refused.wait(), PATIENCE_S)
        assert (await coming).switch.connected


async def connected(switch: SwitchProcess) -> P4RuntimeConnection:
    """Its switch has the program."""
    program = Program.load("serene")
    connection = P4RuntimeConnection(switch.grpc, 0, 1, fy.P4Schema(program.p4info_path, program.config_path))
    await connection.open()
    await connection.install_program()
    return connection


@played
async def test_packet_of_a_closed_stream_is_not_sent_on_the_next(
    switch: SwitchProcess, request: pytest.FixtureRequest
) -> None:
    """The controller has not become primary on the next stream yet; and a sender on a stream closed before it began
    would wait for ever."""
    connection = await connected(switch)
    request.addfinalizer(switch.restart)
    switch.kill()
    with pytest.raises(Unreachable):  # it is known that the switch is gone, though nobody reads the stream
        while True:
            await connection.entries()
    sending = asyncio.create_task(connection.send(1, b"anything"))
    await asyncio.sleep(0)
    await connection.close()
    with pytest.raises(Unreachable):
        await asyncio.wait_for(sending, PATIENCE_S)


@played
async def test_stopped_switch_that_takes_no_packets_is_disconnected(
    switch: SwitchProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """gRPC buffers some MB that the switch does not read, and then blocks the sender."""
    monkeypatch.setattr("serene.controller.switch.connection.SEND_TIMEOUT_S", 0.5)
    connection = await connected(switch)

    async def send() -> None:
        while True:
            await connection.send(1, bytes(1 << 16))

    switch.pause()
    try:
        with pytest.raises(Unanswered, match="did not answer in time"):
            await asyncio.wait_for(send(), PATIENCE_S)
        with pytest.raises(Unreachable):  # what else is asked of it waits for nothing
            await connection.entries()
    finally:
        switch.go_on()
        await connection.close()


@played
async def test_close_as_switch_reconnects_keeps_no_connection(
    switch: SwitchProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cancellation arrives in the same step of the event loop as the connection."""
    opened, closing = P4RuntimeConnection.open, list[asyncio.Task[None]]()

    async def set_up() -> None:
        await commanded.set_up()

    async def open_and_close(connection: P4RuntimeConnection) -> None:
        await opened(connection)
        closing.append(asyncio.create_task(commanded.close()))

    options = SwitchOptions(switch.grpc, 0, 1, [*switch.udp_ports], SwitchAddress(SWITCH_IP, SWITCH_MAC))
    commanded = Switch(options, Program.load("serene"), on_packet=lambda port, frame: None, on_connected=set_up)
    await commanded.bring_up(PATIENCE_S)
    monkeypatch.setattr(P4RuntimeConnection, "open", open_and_close)
    await asyncio.to_thread(switch.restart)
    while not closing:
        await asyncio.sleep(0.01)
    _, late = await asyncio.wait(closing, timeout=PATIENCE_S)
    assert not late and not commanded.connected
