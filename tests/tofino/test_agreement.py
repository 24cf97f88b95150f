"""The v1model program and the Tofino program play the same packets: workers receive the same packets.

Workers here follow the protocol over a network that loses, repeats and delays; the strategy is swapped, sessions
begin anew, once in a while with one older than the slots have seen, and workers' processes are restarted. Every packet
goes to the v1model program in the embedded switch and to the Tofino program as p4c prints it.
Where docs/tofino.md names a difference, the test names it:

- the first packet of an epoch or a session at a slot is answered by a NUDGE and sent again, at once here;
- `base` is only compared where a worker relies on it, in answers to contributions of the slot's epoch;
- what a packet lost in the loop does to the answers is the subject of test_loop.py.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pytest

from serene.sim.hosts import Host
from serene.strategy import ASP, BSP, SSP, Mixed, Quorum, Strategy
from serene.wire import ENCAPSULATION_BYTES, HEADER, Op
from tests.dataplane.conftest import WORKERS, DataPlane, EmbeddedDataPlane
from tests.frames import Packet, dissect, frame, request
from tests.tofino.plane import TofinoDataPlane

SLOTS, JOBS = 2, 2
STRATEGIES: list[Strategy] = [
    BSP(), SSP(0), SSP(1), SSP(3), SSP(15), ASP(), Quorum(1), Quorum(2), Quorum(3), Mixed((0,)), Mixed((0, 2)),
    Mixed((1,), 2),
]  # fmt: skip


@dataclass
class Place:
    """A worker at a slot: its own view, as docs/protocol.md has it."""

    session: int
    epoch: int
    round: int = 0
    seq: int = 1
    total: int = 0
    heard: bool = False  # an answer to seq


class Both:
    """Both programs, whose known differences are removed from their answers."""

    def __init__(self, v1model: EmbeddedDataPlane, tofino: TofinoDataPlane) -> None:
        self.planes: list[DataPlane] = [v1model, tofino]
        self.v1model, self.tofino = v1model, tofino
        for plane in self.planes:
            plane.clear()
        self.opened: Counter[tuple[int, int]] = Counter()  # how often a worker's packet opened a slot, to be sent again

    def start(self, strategy: Strategy, job: int) -> None:
        for plane in self.planes:
            plane.start_job(strategy, job=job, slots=SLOTS, first_slot=SLOTS * job, session=1)

    def swap(self, strategy: Strategy, epoch: int, job: int, session: int) -> None:
        for plane in self.planes:
            plane.swap(strategy, epoch, job=job, session=session)

    def restart(self, worker: int, job: int, incarnation: int) -> None:
        for plane in self.planes:
            plane.readmit(worker, replace(Host.of(worker), incarnation=incarnation), job)

    def send(self, op: Op, worker: int, values: np.ndarray, **fields: int) -> list[Packet]:
        lanes = self.tofino.lanes
        wide = np.zeros(320, np.int64)
        wide[:lanes] = values
        expected = self.v1model.send(worker + 1, frame(request(op, worker, values=wide, **fields), worker))
        narrow = frame(request(op, worker, values=values, lanes=lanes, **fields), worker)
        got = self.tofino.send(worker + 1, narrow)
        to_be_sent_again = [item for item in got if self.is_nudge(worker, *item)]
        if to_be_sent_again:
            self.opened[fields["job"], worker] += 1
            got = [item for item in got if item not in to_be_sent_again] + self.tofino.send(worker + 1, narrow)
        assert sorted(self.comparable(*item) for item in got) == sorted(self.comparable(*item) for item in expected)
        return [dissect(*item) for item in expected]

    @staticmethod
    def is_nudge(worker: int, port: int, data: bytes) -> bool:
        return port == worker + 1 and dissect(port, data).op is Op.NUDGE

    def comparable(self, port: int, data: bytes) -> tuple[object, ...]:
        """What a worker may rely on. `base` counts in a release; beyond our lanes v1model's are zero, and the values
        that the Tofino program leaves behind a nudge are beyond its length."""
        payload = data[ENCAPSULATION_BYTES:]
        header = np.frombuffer(payload, HEADER, 1)[0]
        numbers = {name: int(header[name]) for name in HEADER.names or ()}
        nudge = numbers["op"] == Op.NUDGE
        if numbers["op"] != Op.ANSWER or numbers["seq"]:
            numbers["round"] = 0
        if nudge:
            numbers["seen"] = numbers["incarnation"] = 0  # of the sender, who is not the receiver
        lengths = [int.from_bytes(data[at : at + 2], "big") for at in (16, 38)]
        values = [] if nudge else np.frombuffer(payload[HEADER.itemsize :], ">i4").tolist()
        assert nudge or lengths == [len(data) - 14, len(data) - 34]
        assert not any(values[self.tofino.lanes :])
        addresses = data[:14] + data[26:38]
        return (port, addresses, lengths if nudge else [], list(numbers.items()), values[: self.tofino.lanes])

    def counters(self) -> list[dict[tuple[str, int], int]]:
        """Of each program, the counters of all workers, by name and index."""
        names = ("contributions", "repeats", "blocked", "answers", "releases", "nudges")
        who = [32 * job + worker for job in range(JOBS) for worker in range(WORKERS)]
        wanted = [(name, number) for name in names for number in who]
        wanted += [("staleness", 16 * number + rounds) for number in who for rounds in range(16)]
        return [{each: plane.counter(*each) for each in wanted} for plane in self.planes]


def play(both: Both, seed: int, steps: int) -> Counter[str]:
    """Random traffic of workers that follow the protocol. Returns how often each thing happened."""
    rng = random.Random(seed)
    happened: Counter[str] = Counter()
    sessions, newest, epochs = [1] * JOBS, [1] * JOBS, [1] * JOBS
    incarnations = {(job, worker): 1 for job in range(JOBS) for worker in range(WORKERS)}
    for job in range(JOBS):
        both.start(rng.choice(STRATEGIES), job)
    places = {(j, w, s): Place(1, 1) for j in range(JOBS) for w in range(WORKERS) for s in range(SLOTS)}
    late: list[tuple[int, Op, int, np.ndarray, dict[str, int]]] = []  # packets that the network still holds

    def hear(answers: list[Packet], job: int) -> None:
        for item in answers:
            place = places[job, item.worker, item.slot]
            if rng.random() < 0.1:
                happened["lost answer"] += 1
                continue
            # A release is believed under staleness 0 only: fewer rounds than may be, never more.
            released = item.seq == 0 and item.epoch == place.epoch and place.round < item.base
            if item.op is Op.ANSWER and item.session == place.session and (item.seq == place.seq or released):
                place.heard, place.total = True, item.total
                happened["release" if item.seq == 0 else "answer"] += 1

    for _ in range(steps):
        job, worker, slot = rng.randrange(JOBS), rng.randrange(WORKERS), rng.randrange(SLOTS)
        place = places[job, worker, slot]
        chance = rng.random()
        if chance < 0.02:
            epochs[job] += 1
            happened["swap"] += 1
            both.swap(rng.choice(STRATEGIES), epochs[job], job, sessions[job])
            continue
        if chance < 0.035:
            old = newest[job] > 1 and rng.random() < 0.4
            sessions[job] = rng.randrange(1, newest[job]) if old else newest[job] + rng.randint(1, 3)
            newest[job], epochs[job] = max(newest[job], sessions[job]), 1
            happened["old session" if old else "session"] += 1
            both.swap(rng.choice(STRATEGIES), 1, job, sessions[job])
            continue
        if chance < 0.045:
            both.restart(worker, job, incarnations[job, worker])
            incarnations[job, worker] += 1
            happened["restart"] += 1
            continue
        if chance < 0.07:
            happened["pull"] += 1
            incarnation = incarnations[job, worker] - (rng.random() < 0.1)
            fields = dict(
                job=job, session=sessions[job], seq=rng.randint(1, 99), slot=slot, incarnation=incarnation,
            )  # fmt: skip
            both.send(Op.PULL, worker, np.ones(both.tofino.lanes), **fields)
            continue
        if chance < 0.17 and late:
            happened["late packet"] += 1
            number, op, sender, values, fields = late.pop(rng.randrange(len(late)))
            hear(both.send(op, sender, values, **fields), number)
            continue
        if place.session != sessions[job]:
            place = places[job, worker, slot] = Place(sessions[job], 1)
        if place.heard:
            place.seq, place.heard = place.seq + 1, False
            place.round += 1
            if place.epoch != epochs[job] and rng.random() < 0.7:  # it may not have heard of the swap yet
                place.epoch, place.round = epochs[job], 0
        values = np.random.default_rng(1000 * place.seq + 10 * worker + slot).integers(
            -(2**31), 2**31, both.tofino.lanes
        )
        fields = dict(
            job=job, session=place.session, epoch=place.epoch, round=place.round, seq=place.seq, slot=slot,
            total=place.total, incarnation=incarnations[job, worker],
        )  # fmt: skip
        if rng.random() < 0.03:
            happened["round from nowhere"] += 1
            both.send(Op.PUSH, worker, values, **{**fields, "round": place.round + 1000, "seq": place.seq + 1})
        if rng.random() < 0.1:
            late.append((job, Op.PUSH, worker, values, fields))
        if rng.random() < 0.1:
            happened["lost packet"] += 1
            continue
        hear(both.send(Op.PUSH, worker, values, **fields), job)
    return happened


@pytest.mark.parametrize("seed", range(8))
def test_v1model_and_tofino_send_workers_the_same_packets(
    v1model: EmbeddedDataPlane, tofino: TofinoDataPlane, seed: int
) -> None:
    both = Both(v1model, tofino)
    happened = play(both, seed, 800)
    for what in (
        "swap", "session", "old session", "restart", "pull", "late packet", "lost answer", "answer", "release",
        "round from nowhere",
    ):  # fmt: skip
        assert happened[what] > 0, what
    drops = both.v1model.drops()
    assert drops == both.tofino.drops()
    assert {"stranger", "wrong_session", "wrong_round", "old_session"} <= drops.keys()
    ours, theirs = both.counters()
    for (name, number), count in ours.items():
        more = both.opened[divmod(number, 32)] if name == "nudges" else 0
        assert theirs[name, number] == count + more, (name, number)
