"""Connections to a switch that has died: a writer gets an error, and does not wait."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import finsy as fy
import pytest

from serene.controller.switch.connection import IdInUse, P4RuntimeConnection, SwitchError, Unanswered, Unreachable
from serene.controller.switch.switch import Switch, SwitchOptions
from serene.entries import SwitchAddress
from serene.program import Program
from serene.strategy import ASP, BSP, SSP
from serene.wire import SWITCH_IP, SWITCH_MAC
from tests.controller.coordinating import commanding, played, until
from tests.controller.hosts import Host, join
from tests.controller.processes import SwitchProcess

PATIENCE_S = 120.0
ASKS_THE_SWITCH = True  # the tests themselves are clients of the switch


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


def test_packet_of_a_closed_stream_is_not_sent_on_the_next(switch: SwitchProcess) -> None:
    """The controller has not become primary on the next stream yet; and a sender on a stream closed before it began
    would wait for ever."""

    async def play() -> None:
        program = Program.load("serene")
        connection = P4RuntimeConnection(switch.grpc, 0, 1, fy.P4Schema(program.p4info_path, program.config_path))
        await connection.open()
        await connection.install_program()
        switch.kill()
        with pytest.raises(Unreachable):  # it is known that the switch is gone, though nobody reads the stream
            while True:
                await connection.entries()
        sending = asyncio.create_task(connection.send(1, b"anything"))
        await asyncio.sleep(0)
        await connection.close()
        with pytest.raises(Unreachable):
            await asyncio.wait_for(sending, PATIENCE_S)

    try:
        asyncio.run(play())
    finally:
        switch.restart()


@played
async def test_stopped_switch_that_takes_no_packets_is_disconnected(
    switch: SwitchProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """gRPC buffers some MB that the switch does not read, and then blocks the sender."""
    monkeypatch.setattr("serene.controller.switch.connection.SEND_TIMEOUT_S", 0.5)

    program = Program.load("serene")
    connection = P4RuntimeConnection(switch.grpc, 0, 1, fy.P4Schema(program.p4info_path, program.config_path))
    await connection.open()
    await connection.install_program()

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


@played
async def test_election_id_of_a_living_controller_is_refused(
    switch: SwitchProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serene.controller.switch.switch.ID_BECOMES_FREE_S", 0.0)
    async with commanding(switch.grpc, election_id=5):
        with pytest.raises(IdInUse, match=r"another controller \(election id 5\) is primary for the switch"):
            async with commanding(switch.grpc, election_id=5):
                pass


@played
async def test_stopped_switch_does_not_block_the_status(
    switch: SwitchProcess, hosts: list[Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its counters are outdated then. Without a bound each request would wait for the timeouts of all before it.
    Requests sent meanwhile may take effect when the switch continues, or not: the controller reports which."""
    async with commanding(switch.grpc) as coordinator:
        await coordinator.create_job(2, BSP())
        await asyncio.to_thread(join, hosts[:2], 0)
        before = (await coordinator.status()).switch.election_id
        switch.pause()
        try:
            monkeypatch.setattr("serene.controller.coordinator.COUNTERS_TIMEOUT_S", 0.5)
            monkeypatch.setattr("finsy.p4client._DEFAULT_RPC_TIMEOUT", 5.0)
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
