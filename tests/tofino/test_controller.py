"""The controller's own switch object drives the Tofino program: what it would write over P4Runtime, by the P4Info
that the Tofino compiler made, goes into the program's tables. There is no Tofino switch here, so only the wire is left
out.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import finsy as fy
import numpy as np
import pytest
from finsy.p4entity import decode_entity, encode_entities, encode_updates
from finsy.proto import p4r

from serene.controller.jobs.plans import Policy, Readmission, Start, Swap
from serene.controller.jobs.slots import SlotRange
from serene.controller.switch.connection import Connection
from serene.controller.switch.encoding import decoded, encoded, encoded_updates
from serene.controller.switch.switch import P4Runtime, Switch, SwitchOptions
from serene.entries import Cell, Endpoint, Entity, Entry, Group, SwitchAddress, Updates
from serene.program import Program
from serene.strategy import ASP, BSP, SSP, Strategy
from serene.wire import ENCAPSULATION_BYTES, HEADER, MEMBERSHIP, SWITCH_IP, SWITCH_MAC, Op
from tests.frames import UDP_PORT, frame, ip, mac, request, said
from tests.tofino.plane import Build, TofinoDataPlane

PORTS, SESSION, FIRST_SLOT, JOB = range(1, 4), 9, 5, 1
WORKERS = len(PORTS)


class InProcess:
    """A connection whose other end is the program itself: P4Runtime's messages, encoded and understood by P4Info."""

    election_id = 1
    unsettled = False

    def __init__(self, schema: fy.P4Schema, plane: TofinoDataPlane) -> None:
        self._schema, self._plane, self._machine = schema, plane, plane.machine
        self._written: dict[tuple[str, tuple[int, ...]], p4r.Entity] = {}

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def install_program(self) -> bool:
        assert self._schema.get_pipeline_config().p4_device_config == b"for the chip"
        return True

    async def write(self, updates: Updates, *, missing_ok: bool = False) -> None:
        for update in encode_updates(encoded_updates(updates), self._schema):
            assert isinstance(update, p4r.Update)
            self._apply(update.type, update.entity)

    async def put(self, entity: Entity) -> None:
        for one in encode_entities([encoded(entity)], self._schema):
            self._apply(p4r.Update.UNSPECIFIED, one)

    def _apply(self, kind: int, entity: p4r.Entity) -> None:
        what = entity.WhichOneof("entity")
        if what == "table_entry":
            table = self._schema.tables[entity.table_entry.table_id]
            names = {info.id: info.name for info in table.match_fields}
            assert [each.field_id for each in entity.table_entry.match] == sorted(names)
            match = {names[each.field_id]: int.from_bytes(each.exact.value, "big") for each in entity.table_entry.match}
            place = Entry(table.alias, match).key
            if kind == p4r.Update.DELETE:
                self._plane.delete(Entry(table.alias, match))
                del self._written[place]
                return
            assert kind == p4r.Update.UNSPECIFIED or (place in self._written) == (kind == p4r.Update.MODIFY)
            self._written[place] = entity
            (entry,) = decoded([decode_entity(entity, self._schema)])
            assert entry.key == place
            self._plane.insert(entry)
        elif what == "packet_replication_engine_entry":
            group = entity.packet_replication_engine_entry.multicast_group_entry
            replicas = tuple((replica.egress_port, replica.instance) for replica in group.replicas)
            self._plane.group(Group(group.multicast_group_id, replicas))
        elif what == "counter_entry":
            counter = self._schema.counters[entity.counter_entry.counter_id]
            self._machine.counters[counter.alias, entity.counter_entry.index.index] = 0
        else:
            assert what == "digest_entry"

    async def entries(self) -> list[Entry]:
        return decoded(decode_entity(written, self._schema) for written in self._written.values())

    async def packets(self, cells: Sequence[Cell]) -> dict[Cell, int]:
        assert all(cell.index < self._schema.counters[cell.counter].size for cell in cells)
        return {cell: self._machine.counters[cell.counter, cell.index] for cell in cells}

    async def send(self, port: int, frame: bytes) -> None:
        raise NotImplementedError

    async def acknowledge(self, acks: Sequence[object]) -> None:
        raise NotImplementedError

    async def messages(self) -> AsyncIterator[Any]:
        """None ever comes: the tests ask the plane for what the program sends to the controller."""
        await asyncio.Event().wait()
        yield  # what makes this an iterator


@pytest.fixture
def switch(build: Build, tofino: TofinoDataPlane, tmp_path: Path) -> Switch:
    """The controller's, with a program as one has it for a chip: what the switch is given, and P4Info beside it."""
    (tmp_path / "serene.bin").write_bytes(b"for the chip")
    shutil.copy(build.directory / "serene.p4info.txtpb", tmp_path)
    program = Program.load(tmp_path / "serene.bin")

    class Reach(P4Runtime):
        def connection(self, election_id: int) -> Connection:
            return InProcess(self._schema, tofino)

    async def set_up() -> None:
        await made.set_up()

    options = SwitchOptions("nowhere:1", 1, 1, list(PORTS), SwitchAddress(SWITCH_IP, SWITCH_MAC))
    made = Switch(options, program, on_packet=lambda port, frame: None, on_connected=set_up, reach=Reach)
    return made


def start(strategy: Strategy) -> Start:
    members = {worker: Endpoint(worker + 1, mac(worker), ip(worker), UDP_PORT, 1) for worker in range(WORKERS)}
    policy = Policy(SESSION, 1, strategy, strategy.compile(range(WORKERS)))
    return Start(JOB, SlotRange(FIRST_SLOT, 2), 64, 2**20, 2**23, members, 0, policy)


def test_tofino_program_sizes_match_its_p4info(switch: Switch, tofino: TofinoDataPlane) -> None:
    program = switch.program
    assert (program.lanes, program.max_workers, program.max_jobs) == (tofino.lanes, 16, 8)
    assert program.slots == tofino.machine.registers["base_of"].size


def test_controller_runs_a_job_on_the_tofino_program(switch: Switch, tofino: TofinoDataPlane) -> None:
    """A BSP round, a live swap, counters and the job's end, all through the controller's operations."""

    def push(worker: int, **fields: int) -> list[Any]:
        values = np.full(tofino.lanes, worker + 1)
        packet = request(Op.PUSH, worker, values=values, lanes=tofino.lanes, job=JOB, session=SESSION, **fields)
        return [said(*item) for item in tofino.send(worker + 1, frame(packet, worker))]

    async def play() -> None:
        await switch.bring_up(1)
        await switch.start(start(BSP()))
        found = (await switch.read_entries()).jobs[JOB]
        assert (found.slots, found.limit, found.members) == (SlotRange(FIRST_SLOT, 2), 2**23, start(BSP()).members)
        assert found.fields == BSP().compile(range(WORKERS))
        first = push(0)
        assert [answer.op for answer in first] == [Op.NUDGE]  # it opened the slot
        assert push(0) == push(1) == []
        released = push(2)
        assert sorted(answer.worker for answer in released) == [0, 1, 2]
        assert all(answer.values[0] == 1 + 2 + 3 for answer in released)

        policy = Policy(SESSION, 2, SSP(1), SSP(1).compile(range(WORKERS)))
        await switch.swap(Swap(JOB, policy, "a test"))
        assert [answer.op for answer in push(0, epoch=2, seq=2)] == [Op.NUDGE]
        (answer,) = push(0, epoch=2, seq=2)
        assert (answer.op, answer.epoch) == (Op.ANSWER, 2)

        counts = await switch.read_worker_counters({JOB: range(WORKERS)})
        assert [counts[JOB, worker].contributions for worker in range(WORKERS)] == [2, 1, 1]
        staleness = await switch.read_staleness({JOB: range(WORKERS)})
        assert [sum(staleness[JOB, worker]) for worker in range(WORKERS)] == [2, 1, 1]

        await switch.remove(JOB)
        assert push(1, epoch=2, seq=2) == []
        assert await switch.read_drops() == {**dict.fromkeys(switch.drop_reasons, 0), "stranger": 1}
        found = (await switch.read_entries()).jobs[JOB]
        assert found.record and (found.session, found.epoch) == (SESSION, 2)

    asyncio.run(play())


def test_controller_readmits_a_restarted_worker_on_tofino(switch: Switch, tofino: TofinoDataPlane) -> None:
    """The new process takes the place; packets of the old one are a stranger's from then on."""
    plan = start(ASP())
    old, new = plan.members[0], replace(plan.members[0], incarnation=2)

    def send(op: Op, incarnation: int, epoch: int = 1) -> list[tuple[int, bytes]]:
        payload = request(op, 0, lanes=tofino.lanes, job=JOB, session=SESSION, epoch=epoch, incarnation=incarnation)
        return tofino.send(1, frame(payload, 0))

    async def play() -> None:
        await switch.bring_up(1)
        await switch.start(plan)
        assert len(send(Op.PUSH, 1)) == 1
        assert send(Op.HELLO, 2) == [] and tofino.punted() is not None
        swap = Swap(JOB, Policy(SESSION, 2, ASP(), ASP().compile(range(WORKERS))), "a test")
        await switch.readmit(Readmission(JOB, 0, old, new, {**plan.members, 0: new}, swap))
        assert send(Op.PUSH, 1, epoch=2) == []
        assert (await switch.read_drops())["stranger"] == 1
        ((_, welcome),) = send(Op.HELLO, 2)
        header = np.frombuffer(welcome, HEADER, 1, ENCAPSULATION_BYTES)[0]
        assert [int(header[name]) for name in ("op", "epoch", "members", "incarnation")] == [Op.WELCOME, 2, WORKERS, 2]
        told = np.frombuffer(welcome, MEMBERSHIP, 1, ENCAPSULATION_BYTES + HEADER.itemsize)[0]
        assert [int(told[name]) for name in ("scale", "limit", "workers", "lost_sessions")] == [
            2**20,
            2**23,
            WORKERS,
            0,
        ]
        assert len(send(Op.PUSH, 2, epoch=2)) == 1

    asyncio.run(play())
