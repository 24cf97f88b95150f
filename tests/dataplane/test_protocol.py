"""Each rule of docs/protocol.md, on its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from serene import entries
from serene.sim.hosts import Host, job_of
from serene.strategy import ASP, BSP, SSP, Mixed, Quorum
from serene.wire import ENCAPSULATION_BYTES, HEADER, MEMBERSHIP, Op
from tests.dataplane.conftest import WORKERS, DataPlane
from tests.frames import Said, frame, request

LANES = 320


def vector(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-(2**31), 2**31, LANES).astype(np.int32)


def push(plane: DataPlane, worker: int, values: np.ndarray | int, **fields: int) -> list[Said]:
    lanes = np.full(LANES, values, np.int32) if isinstance(values, int) else values
    return plane.ask(worker + 1, frame(request(Op.PUSH, worker, values=lanes, **fields), worker))


def summary(said: list[Said]) -> list[tuple[int, Op, int, int]]:
    """(worker, op, seq, first value) of each packet."""
    return [(item.worker, item.op, item.seq, item.values[0] if item.values else 0) for item in said]


def test_bsp_answers_all_workers_when_the_round_completes(plane: DataPlane) -> None:
    plane.start_job(BSP())
    vectors = [vector(worker) for worker in range(3)]
    assert push(plane, 0, vectors[0]) == []
    assert push(plane, 2, vectors[2]) == []
    said = push(plane, 1, vectors[1])
    expected = (vectors[0].view(np.uint32) + vectors[1].view(np.uint32) + vectors[2].view(np.uint32)).view(np.int32)
    assert [item.port for item in said] == [1, 2, 3]
    for item in said:
        assert item.values == tuple(expected.tolist())
        assert (item.op, item.session, item.epoch, item.base, item.total) == (Op.ANSWER, 7, 1, 1, 3)
    # The sender's answer echoes its seq, the others' are releases.
    assert [item.seq for item in said] == [0, 1, 0]


def test_repeated_push_is_answered_and_added_once(plane: DataPlane) -> None:
    plane.start_job(BSP())
    for worker in (0, 1, 1, 0):
        assert push(plane, worker, 5) == []
    assert len(push(plane, 2, 5)) == 3
    again = push(plane, 0, 5)
    assert summary(again) == [(0, Op.ANSWER, 1, 15)]
    assert [plane.counter("contributions", worker) for worker in range(3)] == [1, 1, 1]
    assert [plane.counter("repeats", worker) for worker in range(3)] == [2, 1, 0]
    assert plane.counter("blocked", 0) == 2


def test_bsp_reads_the_snapshot_during_the_next_round(plane: DataPlane) -> None:
    plane.start_job(BSP())
    for worker in range(3):
        push(plane, worker, 1)
    assert push(plane, 0, 100, seq=2, round=1) == []
    late = push(plane, 1, 1)  # its answer was lost
    assert summary(late) == [(1, Op.ANSWER, 1, 3)]
    assert late[0].total == 3


def test_ssp_reads_the_latest_sum_and_blocks_at_the_bound(plane: DataPlane) -> None:
    plane.start_job(SSP(2))
    assert summary(push(plane, 0, 1, seq=1, round=0)) == [(0, Op.ANSWER, 1, 1)]
    assert summary(push(plane, 0, 1, seq=2, round=1)) == [(0, Op.ANSWER, 2, 2)]
    assert push(plane, 0, 1, seq=3, round=2) == []
    assert summary(push(plane, 1, 10, seq=1, round=0)) == [(1, Op.ANSWER, 1, 13)]
    assert summary(push(plane, 2, 100, seq=1, round=0)) == [(0, Op.ANSWER, 0, 113), (2, Op.ANSWER, 1, 113)]


def test_asp_answers_every_push_at_once(plane: DataPlane) -> None:
    plane.start_job(ASP())
    for seq in range(1, 40):
        assert summary(push(plane, 1, 1, seq=seq, round=seq - 1)) == [(1, Op.ANSWER, seq, seq)]


def test_quorum_completes_a_round(plane: DataPlane) -> None:
    plane.start_job(Quorum(2))
    assert push(plane, 0, 1) == []
    assert summary(push(plane, 2, 10)) == [(0, Op.ANSWER, 0, 11), (2, Op.ANSWER, 1, 11)]
    # The third is late: its gradient counts, it reads the last snapshot and goes on.
    assert summary(push(plane, 1, 100)) == [(1, Op.ANSWER, 1, 11)]
    push(plane, 0, 1, seq=2, round=1)
    assert push(plane, 2, 1, seq=2, round=1)[0].values[0] == 113


def test_mixed_waits_only_for_synchronous_workers(plane: DataPlane) -> None:
    plane.start_job(Mixed((1,)))
    assert push(plane, 0, 1) == []
    for seq in (1, 2, 3):
        assert summary(push(plane, 1, 10, seq=seq, round=seq - 1)) == [(1, Op.ANSWER, seq, 1 + 10 * seq)]
    assert summary(push(plane, 2, 100)) == [(0, Op.ANSWER, 0, 131), (2, Op.ANSWER, 1, 131)]


def test_pull_returns_the_highest_accepted_seq(plane: DataPlane) -> None:
    plane.start_job(ASP())
    for seq in (3, 8, 5):
        push(plane, 1, 1, seq=seq)
    reply = plane.send(2, frame(request(Op.PULL, 1, seq=99), 1))[0][1]
    assert int(np.frombuffer(reply, HEADER, 1, ENCAPSULATION_BYTES)[0]["seen"]) == 8


def test_swap_nudges_blocked_workers_and_accepts_old_epoch(plane: DataPlane) -> None:
    plane.start_job(BSP())
    push(plane, 0, 1)
    push(plane, 1, 10)
    plane.swap(ASP(), 2)
    # The straggler still speaks of the old epoch: it may go on at once, and its gradient counts.
    assert summary(push(plane, 2, 100)) == [(2, Op.ANSWER, 1, 111)]
    # The first packet of the new epoch starts it at this slot.
    said = push(plane, 2, 1000, seq=2, epoch=2, round=0)
    assert summary(said) == [(0, Op.NUDGE, 0, 0), (1, Op.NUDGE, 0, 0), (2, Op.ANSWER, 2, 1111)]
    assert {item.epoch for item in said} == {2}
    # A nudge proves nothing; sent again, the blocked push is recognised and answered.
    assert summary(push(plane, 0, 1)) == [(0, Op.ANSWER, 1, 1111)]
    assert plane.counter("contributions", 0) == 1
    assert plane.counter("nudges", 0) == plane.counter("nudges", 1) == 1


def test_new_epoch_restarts_rounds_at_zero(plane: DataPlane) -> None:
    plane.start_job(BSP())
    for round_ in range(3):
        for worker in range(3):
            said = push(plane, worker, 1, seq=round_ + 1, round=round_)
        assert said[0].base == round_ + 1
    plane.swap(SSP(1), 2)
    said = push(plane, 0, 1, seq=4, epoch=2, round=0)
    assert [(item.base, item.total) for item in said] == [(0, 10)]
    assert push(plane, 0, 1, seq=5, epoch=2, round=1) == []


def test_hello_is_answered_with_all_fields_of_the_job(plane: DataPlane) -> None:
    """All numbers of the job differ, so that no field can pass for another."""
    plane.admit(1, job=3)
    told = {"slots": 5, "vector_length": 1501, "scale": 4096, "workers": 7, "lost_sessions": 9}
    plane.insert(job_of(3, **told, limit=2.5))
    plane.insert(entries.policy(3, 77, 11, SSP(6).compile(range(WORKERS))))
    ((port, reply),) = plane.send(2, frame(request(Op.HELLO, 1, job=3, session=0), 1))
    header = np.frombuffer(reply, HEADER, 1, ENCAPSULATION_BYTES)[0]
    fields = ("op", "worker", "session", "epoch", "staleness", "quorum", "sync_mask", "members", "incarnation")
    assert [port, *(int(header[name]) for name in fields)] == [2, Op.WELCOME, 1, 77, 11, 6, 3, 0b111, 3, 1]
    body = np.frombuffer(reply, MEMBERSHIP, 1, ENCAPSULATION_BYTES + HEADER.itemsize)[0]
    assert {name: int(body[name]) for name in told} == told
    assert (int(body["limit"]), int(body["lanes"])) == (4096 * 5 // 2, plane.lanes)
    assert len(reply) == ENCAPSULATION_BYTES + HEADER.itemsize + MEMBERSHIP.itemsize


@pytest.mark.parametrize("job", [1, 6, 7])
def test_answers_use_the_jobs_own_multicast_group(plane: DataPlane, job: int) -> None:
    plane.start_job(BSP(), job=job)
    for worker in range(WORKERS):
        said = plane.ask(worker + 1, frame(request(Op.PUSH, worker, job=job), worker))
    assert [(item.port, item.worker, item.op) for item in said] == [
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

    def ask(worker: int, seq: int = 1, epoch: int = 1, round: int = 0) -> list[Said]:
        return plane.ask(hosts[worker].port, frame(request(Op.PUSH, worker, seq=seq, epoch=epoch, round=round), worker))

    assert [ask(worker) for worker in everybody[:-1]] == [[]] * 15
    said = sorted(ask(15), key=lambda item: item.worker)
    assert [(item.worker, item.port, item.seq) for item in said] == [
        (worker, hosts[worker].port, worker == 15) for worker in everybody
    ]
    assert [ask(worker, round=1, seq=2) for worker in everybody[:-1]] == [[]] * 15
    plane.modify(entries.policy(0, 7, 2, BSP().compile(everybody)))
    said = sorted(ask(15, epoch=2, seq=2), key=lambda item: item.worker)
    assert [(item.worker, item.op) for item in said] == [(worker, Op.NUDGE) for worker in everybody[:-1]]


@pytest.mark.parametrize("staleness", [1, 15])
def test_arrival_ring_works_for_every_staleness_bound(plane: DataPlane, staleness: int) -> None:
    """One worker reaches the bound, then the others contribute round by round: each round completes exactly once."""
    plane.start_job(SSP(staleness), slots=1)
    for round_ in range(staleness):
        assert len(push(plane, 0, 1, seq=round_ + 1, round=round_)) == 1
    assert push(plane, 0, 1, seq=staleness + 1, round=staleness) == []
    for round_ in range(staleness + 1):
        assert len(push(plane, 1, 1, seq=round_ + 1, round=round_)) == 1
        said = push(plane, 2, 1, seq=round_ + 1, round=round_)
        assert {item.base for item in said} == {round_ + 1}
        assert {item.worker for item in said} == ({0, 2} if round_ == 0 else {2}), "the first round frees who waited"


def test_staleness_histogram_counts_rounds(plane: DataPlane) -> None:
    """Contributions accepted since the sender's last read, divided by three, the number of workers."""
    plane.start_job(ASP())
    for seq in range(1, 8):
        push(plane, 0, 1, seq=seq, total=seq - 1)  # reads its own, and nobody else is there: never stale
    push(plane, 1, 1, total=0)  # has read none of seven: two whole rounds
    push(plane, 2, 1, total=8)  # has read everything
    push(plane, 2, 1, total=8)  # a repeat is no contribution
    for seq in range(8, 60):
        push(plane, 0, 1, seq=seq, total=seq + 1)
    push(plane, 1, 1, seq=2, total=1)  # far behind: the last class
    classes = {
        worker: [plane.counter("staleness", worker * 16 + rounds) for rounds in range(16)] for worker in range(3)
    }
    assert classes[0] == [59, *[0] * 15]
    assert classes[1] == [0, 0, 1, *[0] * 12, 1]
    assert classes[2] == [1, *[0] * 15]
