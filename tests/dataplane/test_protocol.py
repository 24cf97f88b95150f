"""Each rule of docs/protocol.md, on its own: rules.txt has the packets and the answers, written by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from serene import entries
from serene.sim.hosts import Host, job_of
from serene.strategy import ASP, BSP, SSP, parse
from serene.wire import ENCAPSULATION_BYTES, HEADER, MEMBERSHIP, Op
from tests.dataplane.conftest import WORKERS, DataPlane
from tests.frames import Packet, frame, request
from tests.support.golden import rows, section

LANES = 320


TABLE = Path(__file__).with_name("rules.txt")
RULES = list(dict.fromkeys(rule for rule, _, _ in rows(TABLE)))


def push(plane: DataPlane, worker: int, value: int, **fields: int) -> list[Packet]:
    payload = request(Op.PUSH, worker, values=np.full(LANES, value, np.int32), **fields)
    return plane.ask(worker + 1, frame(payload, worker))


def answer(packet: Packet) -> str:
    """WORKER: SUM (EPOCH, SEQ, BASE); of a nudge without a sum."""
    what = packet.values[0] if packet.op is Op.ANSWER else packet.op.name.lower()
    return f"{packet.worker}: {what} ({packet.epoch}, {packet.seq}, {packet.base})"


@pytest.mark.parametrize("rule", RULES)
def test_packets_are_answered_by_each_rule(plane: DataPlane, rule: str) -> None:
    """A section begins with the job's strategy. Its rows: WORKER VALUE FIELD=NUMBER ... is a PUSH, with the answers
    expected; swap STRATEGY; COUNTER INDEX, with the count."""
    (strategy, _), *lines = section(TABLE, rule)
    plane.start_job(parse(strategy))
    epoch = 1
    for line, expected in lines:
        what, argument, *fields = line.split()
        found = "-"
        if what == "swap":
            epoch += 1
            plane.swap(parse(argument), epoch)
        elif what.isdecimal():
            given = {name: int(number) for name, _, number in (field.partition("=") for field in fields)}
            found = ", ".join(map(answer, push(plane, int(what), int(argument), **given))) or found
        else:
            found = str(plane.counter(what, int(argument)))
        assert found == expected, line


def test_pull_returns_the_highest_accepted_seq(plane: DataPlane) -> None:
    plane.start_job(ASP())
    for seq in (3, 8, 5):
        push(plane, 1, 1, seq=seq)
    reply = plane.send(2, frame(request(Op.PULL, 1, seq=99), 1))[0][1]
    assert int(np.frombuffer(reply, HEADER, 1, ENCAPSULATION_BYTES)[0]["seen"]) == 8


def test_hello_is_answered_with_all_fields_of_the_job(plane: DataPlane) -> None:
    """All numbers of the job differ, so that no field can pass for another."""
    plane.admit(1, job=3)
    given = {"slots": 5, "vector_length": 1501, "scale": 4096, "workers": 7, "lost_sessions": 9}
    plane.insert(job_of(3, **given, limit=2.5))
    plane.insert(entries.policy(3, 77, 11, SSP(6).compile(range(WORKERS))))
    ((port, reply),) = plane.send(2, frame(request(Op.HELLO, 1, job=3, session=0), 1))
    header = np.frombuffer(reply, HEADER, 1, ENCAPSULATION_BYTES)[0]
    fields = ("op", "worker", "session", "epoch", "staleness", "quorum", "sync_mask", "members", "incarnation")
    assert [port, *(int(header[name]) for name in fields)] == [2, Op.WELCOME, 1, 77, 11, 6, 3, 0b111, 3, 1]
    body = np.frombuffer(reply, MEMBERSHIP, 1, ENCAPSULATION_BYTES + HEADER.itemsize)[0]
    assert {name: int(body[name]) for name in given} == given
    assert (int(body["limit"]), int(body["lanes"])) == (4096 * 5 // 2, plane.lanes)
    assert len(reply) == ENCAPSULATION_BYTES + HEADER.itemsize + MEMBERSHIP.itemsize


@pytest.mark.parametrize("job", [1, 6, 7])
def test_answers_use_the_jobs_own_multicast_group(plane: DataPlane, job: int) -> None:
    plane.start_job(BSP(), job=job)
    for worker in range(WORKERS):
        packets = plane.ask(worker + 1, frame(request(Op.PUSH, worker, job=job), worker))
    assert [(item.port, item.worker, item.op) for item in packets] == [
        (worker + 1, worker, Op.ANSWER) for worker in range(WORKERS)
    ]


def test_16_workers_on_shared_ports_get_separate_answers(plane: DataPlane) -> None:
    """Several workers are behind each port: each is blocked, released and nudged separately."""
    hosts = [replace(Host.of(worker), port=worker % WORKERS + 1) for worker in range(16)]
    everybody = range(len(hosts))
    for worker, host in enumerate(hosts):
        plane.admit(worker, host=host)
    plane.group(entries.job_group(0, dict(enumerate(hosts))))
    plane.insert(job_of(0, slots=4, vector_length=1280, workers=len(hosts)))
    plane.insert(entries.policy(0, 7, 1, BSP().compile(everybody)))

    def ask(worker: int, seq: int = 1, epoch: int = 1, round: int = 0) -> list[Packet]:
        return plane.ask(hosts[worker].port, frame(request(Op.PUSH, worker, seq=seq, epoch=epoch, round=round), worker))

    assert [ask(worker) for worker in everybody[:-1]] == [[]] * 15
    packets = sorted(ask(15), key=lambda item: item.worker)
    assert [(item.worker, item.port, item.seq) for item in packets] == [
        (worker, hosts[worker].port, worker == 15) for worker in everybody
    ]
    assert [ask(worker, round=1, seq=2) for worker in everybody[:-1]] == [[]] * 15
    plane.modify(entries.policy(0, 7, 2, BSP().compile(everybody)))
    packets = sorted(ask(15, epoch=2, seq=2), key=lambda item: item.worker)
    assert [(item.worker, item.op) for item in packets] == [(worker, Op.NUDGE) for worker in everybody[:-1]]
