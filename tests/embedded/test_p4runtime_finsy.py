"""The controller library that Serene's own controller uses, against both switches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any

import finsy as fy
import pytest

from tests.embedded.conftest import Target
from tests.embedded.p4rt_controller import new_election_id
from tests.embedded.p4rt_probe import JSON, P4INFO

PATIENCE_S = 120.0


def switch(target: Target, name: str = "s1", **options: Any) -> fy.Switch:
    settings = {"initial_election_id": new_election_id()} | options
    return fy.Switch(
        name,
        target.address,
        fy.SwitchOptions(p4info=P4INFO, p4blob=JSON, device_id=target.device_id, p4force=True, **settings),
    )


_loop = asyncio.new_event_loop()  # one for all: gRPC complains about each further one


def run(work: Coroutine[Any, Any, None]) -> None:
    _loop.run_until_complete(asyncio.wait_for(work, PATIENCE_S))


def entities(sw: fy.Switch, wanted: Any) -> AsyncIterator[Any]:
    """What a request finds."""
    found: Any = sw.read([wanted])  # finsy's overloads say, wrongly, that it is awaited first
    return found  # type: ignore[no-any-return]


async def read(sw: fy.Switch, wanted: Any) -> Any:
    """The one entity that a request finds."""
    (found,) = [entity async for entity in entities(sw, wanted)]
    return found


def test_finsy_reads_registers_and_deletes_all_entries(embedded: Target) -> None:
    """simple_switch_grpc has no registers, and cannot read everything in a program with initial entries."""

    async def work() -> None:
        async with switch(embedded) as sw:
            await sw.modify([fy.P4RegisterEntry("last_source", index=2, data=0xABCDEF)])
            found = [entry async for entry in entities(sw, fy.P4RegisterEntry("last_source"))]
            assert [(entry.index, entry.data) for entry in found] == [(0, 0), (1, 0), (2, 0xABCDEF), (3, 0)]

            scoped = fy.P4TableEntry("by_scoped", match=fy.Match(a=1), action=fy.Action("found_scoped", value=7))
            await sw.insert([scoped, fy.P4DigestEntry("learned_t", max_list_size=1)])
            await sw.modify([fy.P4TableEntry("by_keyless", is_default_action=True, action=fy.Action("NoAction"))])
            await sw.delete_all()
            left = [entity async for entity in entities(sw, fy.P4TableEntry())]
            assert {entity.table_id for entity in left} == {"by_constant"}
            default = await read(sw, fy.P4TableEntry("by_keyless", is_default_action=True))
            assert default.action == fy.Action("found_keyless", value=31)

    run(work())


def test_finsy_reports_which_update_failed(target: Target) -> None:
    async def work() -> None:
        async with switch(target) as sw:
            entry = fy.P4TableEntry("by_scoped", match=fy.Match(a=1), action=fy.Action("found_scoped", value=7))
            await sw.insert([entry])
            with pytest.raises(fy.P4ClientError) as refused:
                await sw.insert([fy.P4TableEntry("by_idle", match=fy.Match(a=1), action=fy.Action("NoAction")), entry])
            assert refused.value.code == fy.GRPCStatusCode.UNKNOWN
            ((index, detail),) = refused.value.details.items()
            assert (index, detail.canonical_code) == (1, fy.GRPCStatusCode.ALREADY_EXISTS)
            with pytest.raises(fy.P4ClientError) as refused:
                await sw.delete([fy.P4TableEntry("by_scoped", match=fy.Match(a=9))])
            assert refused.value.is_not_found_only

    run(work())


def test_second_finsy_becomes_backup_and_takes_over(target: Target) -> None:
    """finsy finds "election id ... used" in the error, and lowers its own."""
    election_id = new_election_id()

    async def until(condition: Callable[[], bool]) -> None:
        while not condition():
            await asyncio.sleep(0.01)

    async def watch(sw: fy.Switch, stop: asyncio.Event, ready: Callable[[fy.Switch], Awaitable[None]]) -> None:
        async with sw:
            await ready(sw)
            await stop.wait()

    async def work() -> None:
        first = switch(target, "first", initial_election_id=election_id)
        second = switch(target, "second", initial_election_id=election_id)
        stop_first, stop_second, waits = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def is_primary(sw: fy.Switch) -> None:
            await until(lambda: sw.is_primary)

        async def is_backup(sw: fy.Switch) -> None:
            await until(lambda: sw.election_id == election_id - 1 and sw.is_up)
            assert not sw.is_primary
            waits.set()

        holder = asyncio.ensure_future(watch(first, stop_first, is_primary))
        await until(lambda: first.is_primary)
        heir = asyncio.ensure_future(watch(second, stop_second, is_backup))
        await waits.wait()  # or the first one might be gone before the second one is looked at
        stop_first.set()
        await holder
        await until(lambda: second.is_primary)
        stop_second.set()
        await heir

    run(work())
