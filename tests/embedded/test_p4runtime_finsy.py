"""The controller library that Serene's own controller uses, against both switches."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import finsy as fy
import pytest

from serene.program import Program
from tests.controller.processes import SwitchProcess
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


ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-shell" / "bin" / "python"

SESSION = """
import json, sys
import p4runtime_sh.shell as sh
from p4runtime_sh.p4runtime import P4RuntimeWriteException
address, p4info, program = sys.argv[1:]
sh.setup(device_id=0, grpc_addr=address, election_id=(0, 1), config=sh.FwdPipeConfig(p4info, program))
try:
    said = {}
    entry = sh.TableEntry("SereneIngress.admission.policy")(action="SereneIngress.admission.set_policy")
    entry.match["job"] = "3"
    policy = dict(session=7, epoch=2, member_mask=15, sync_mask=15, staleness=3, quorum=4, read_mode=0, members=4)
    for name, value in policy.items():
        entry.action[name] = str(value)
    entry.insert()
    entry.action["epoch"] = "3"
    entry.modify()
    read = []
    sh.TableEntry("SereneIngress.admission.policy").read(lambda e: read.append(e))
    number = lambda data: int.from_bytes(data, "big")
    said["entries"] = [[number(e.match["job"].exact.value), number(e.action["epoch"].value)] for e in read]
    try:
        entry.insert()
    except P4RuntimeWriteException as error:
        said["twice"] = str(error)
    group = sh.MulticastGroupEntry(group_id=16)
    group.add(1, 1).add(2, 2).insert()
    found = next(iter(sh.MulticastGroupEntry(group_id=16).read()))
    said["replicas"] = [(r.port, r.instance) for r in found.replicas]
    counter = sh.CounterEntry("SereneIngress.barrier.contributions")
    counter.index = 5
    counter.read(lambda c: said.update(packets=c.data.packet_count))
    entry.delete()
finally:
    sh.teardown()  # its stream's thread would keep the process
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def shell() -> Path:
    """The environment, made by the script behind `make shell`."""
    made = subprocess.run(
        [ROOT / "scripts" / "shell", "--help"], capture_output=True, text=True, check=False, timeout=240
    )
    if made.returncode:
        pytest.skip(f"p4runtime-shell cannot be installed here: {made.stderr.strip().splitlines()[-1:]}")
    return PYTHON


def test_p4runtime_shell_drives_the_embedded_switch(shell: Path, tmp_path: Path) -> None:
    program = Program.load()
    switch = SwitchProcess("embedded", tmp_path / "switch.log")
    try:
        run = subprocess.run(
            [shell, "-c", SESSION, switch.grpc, program.p4info_path, program.config_path],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
    finally:
        switch.stop()
    assert run.returncode == 0, run.stderr
    said = json.loads(run.stdout.splitlines()[-1])
    assert said["entries"] == [[3, 3]]
    assert "ALREADY_EXISTS" in said["twice"]
    assert [tuple(replica) for replica in said["replicas"]] == [(1, 1), (2, 2)]
    assert said["packets"] == 0
