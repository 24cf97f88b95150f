"""A packet that completes a round passes twice. In between it may be lost, late, or overtaken by a swap.

The loop is a queue here whose packets are delivered, or lost, whenever a test does it.
"""

from __future__ import annotations

import random
from collections import deque

import numpy as np
import pytest

from serene import entries
from serene.entries import Entry
from serene.sim.hosts import Host
from serene.strategy import BSP, SSP, Mixed, Quorum, Strategy
from serene.wire import UNBOUNDED, Op, ReadMode
from tests.dataplane.conftest import WORKERS
from tests.frames import Packet, dissect, frame, request
from tests.tofino.plane import Build, TofinoDataPlane

SESSION = 7


class Looping:
    def __init__(self, build: Build, strategy: Strategy, seed: int = 0) -> None:
        self.plane = TofinoDataPlane(build, seed)
        self.plane.start_job(strategy, session=SESSION)
        self.loop: deque[bytes] = deque()

    def push(self, worker: int, **fields: int) -> list[Packet]:
        values = np.full(self.plane.lanes, 10 * fields["seq"] + worker)
        lanes = self.plane.lanes
        return self._pass(worker + 1, frame(request(Op.PUSH, worker, values=values, lanes=lanes, **fields), worker))

    def deliver(self) -> list[Packet]:
        return self._pass(self.plane.machine.loop_port, self.loop.popleft())

    def total(self) -> tuple[int, int]:
        """The sum, and how many contributions it holds."""
        pull = frame(request(Op.PULL, 0, lanes=self.plane.lanes), 0)
        (answer,) = self._pass(1, pull)
        return answer.values[0], answer.total

    def _pass(self, port: int, data: bytes) -> list[Packet]:
        out = self.plane.machine.one_pass(port, data)
        self.loop.extend(packet for to_port, packet in out if to_port == self.plane.machine.loop_port)
        return [dissect(to_port, packet) for to_port, packet in out if to_port != self.plane.machine.loop_port]


def opened(build: Build, strategy: Strategy, seed: int = 0) -> Looping:
    """With the first packet behind us, which only opens the slot."""
    network = Looping(build, strategy, seed)
    assert [item.op for item in network.push(0, seq=1)] == [Op.NUDGE]
    return network


@pytest.mark.parametrize("again", range(WORKERS))
def test_repeat_completes_a_round_after_a_lost_completion(build: Build, again: int) -> None:
    network = opened(build, BSP())
    assert [network.push(worker, seq=1) for worker in range(WORKERS)] == [[], [], []]
    network.loop.clear()
    assert network.push(again, seq=1) == []
    answers = network.deliver()
    assert [(item.worker, item.seq, item.base, item.total, item.values[0]) for item in answers] == [
        (worker, worker == again, 1, 3, 33) for worker in range(WORKERS)
    ]


def test_second_completion_of_a_round_changes_nothing(build: Build) -> None:
    """Two completions are in the loop: the second finds the round complete."""
    network = opened(build, BSP())
    for worker in (0, 1, 2, 0):
        assert network.push(worker, seq=1) == []
    assert len(network.loop) == 2
    assert len(network.deliver()) == 3
    assert network.deliver() == []
    assert [item.base for item in network.push(1, seq=1)] == [1]


def test_completion_after_a_swap_releases_nobody(build: Build) -> None:
    """The round's epoch has ended: no worker is answered under it, all get a NUDGE."""
    network = opened(build, BSP())
    for worker in range(WORKERS):
        network.push(worker, seq=1)
    network.plane.swap(BSP(), 2, session=SESSION)
    assert network.deliver() == []
    assert [item.op for item in network.push(0, seq=1, epoch=2)] == [Op.NUDGE] * 3
    assert [item.values[0] for item in network.push(2, seq=1, epoch=1)] == [33]


@pytest.mark.parametrize("seed", range(20))
def test_completion_after_the_jobs_end_changes_nothing(build: Build, seed: int) -> None:
    """The policy stays in the switch as the record of its session; the entry that located its slots is gone."""
    network = opened(build, BSP(), seed)
    for worker in range(WORKERS):
        network.push(worker, seq=1)
    plane = network.plane
    for worker in range(WORKERS):
        plane.delete(entries.member(0, worker, Host.of(worker)))
    plane.delete(Entry("job", {"job": 0}))
    before = {name: dict(register.cells) for name, register in plane.machine.registers.items()}
    assert network.deliver() == []
    assert {name: dict(register.cells) for name, register in plane.machine.registers.items()} == before
    assert plane.drops() == {"no_policy": 1}


def test_push_during_completion_is_in_sum_but_not_snapshot(build: Build) -> None:
    network = opened(build, Mixed((2,)))
    network.push(0, seq=1)
    network.push(1, seq=1)
    assert [item.values[0] for item in network.push(2, seq=1)] == [33]
    assert {item.values[0] for item in network.deliver()} == {21}
    assert [item.values[0] for item in network.push(0, seq=1)] == [21]
    assert network.total() == (33, 3)


class Worker:
    """One that follows the protocol at one slot."""

    def __init__(self, number: int) -> None:
        self.number, self.seq, self.round, self.epoch, self.announced = number, 1, 0, 1, 1
        self.read: dict[tuple[int, int], int] = {}

    def hear(self, item: Packet, staleness: int) -> None:
        if item.op is Op.ANSWER:
            own = item.epoch == self.epoch and (staleness == UNBOUNDED or self.round < item.base + staleness)
            if item.seq == self.seq or (item.seq == 0 and own):
                if item.epoch == self.epoch:  # else it was of an older epoch, and read the latest sum
                    self.read[self.epoch, self.round] = item.values[0]
                self.seq += 1
                self.announced = max(self.announced, item.epoch)
                if self.announced > self.epoch:
                    self.epoch, self.round = self.announced, 0
                else:
                    self.round += 1
                return
        self.announced = max(self.announced, item.epoch)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("first", [BSP(), SSP(2), Quorum(2), Mixed((1,)), Mixed((0,), 1)], ids=str)
def test_every_worker_finishes_whatever_the_loop_loses(build: Build, first: Strategy, seed: int) -> None:
    rng = random.Random(seed)
    network = Looping(build, first)
    workers = [Worker(number) for number in range(WORKERS)]
    strategies: list[Strategy] = [first]
    rounds = 12
    lost = 0
    for _ in range(5000):
        if min(worker.seq for worker in workers) > rounds:
            break
        if min(worker.seq for worker in workers) > 5 * len(strategies) and len(strategies) < 2:
            strategies.append(rng.choice([BSP(), SSP(1), Quorum(1)]))
            network.plane.swap(strategies[-1], 2, session=SESSION)
        if network.loop and (rng.random() < 0.3 or len(network.loop) > 3):  # far slower than a loop is
            if rng.random() < 0.4:
                network.loop.popleft()
                lost += 1
                continue
            answers = network.deliver()
        else:
            worker = rng.choice(workers)
            answers = network.push(worker.number, seq=worker.seq, epoch=worker.epoch, round=worker.round)
        for item in answers:
            if rng.random() < 0.9:
                policy = strategies[item.epoch - 1].compile(range(WORKERS))
                workers[item.worker].hear(item, policy.staleness)
    assert min(worker.seq for worker in workers) > rounds, "somebody is stuck"
    assert lost or WORKERS not in [strategy.compile(range(WORKERS)).quorum for strategy in strategies]
    accepted = [network.plane.counter("contributions", number) for number in range(WORKERS)]
    assert all(worker.seq - 1 <= accepted[worker.number] <= worker.seq for worker in workers)
    everything = sum(10 * seq + number for number in range(WORKERS) for seq in range(1, accepted[number] + 1))
    assert network.total() == (everything, sum(accepted))
    for epoch, strategy in enumerate(strategies, 1):
        policy = strategy.compile(range(WORKERS))
        if policy.read_mode is ReadMode.SNAPSHOT and policy.quorum == policy.sync_mask.bit_count():
            counted = [worker for worker in workers if policy.sync_mask >> worker.number & 1]
            for place in {place for worker in counted for place in worker.read if place[0] == epoch}:
                assert len({worker.read[place] for worker in counted if place in worker.read}) == 1, place
