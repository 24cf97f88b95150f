"""A tree of three real BMv2 switches: two racks of two workers, and a root."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack

import numpy as np
import pytest

from serene.racks import LeafPolicy
from serene.strategy import PolicyFields
from serene.wire import Op, ReadMode
from tests.controller.processes import PORTS, SwitchProcess, missing, own_network
from tests.frames import request
from tests.model import Answer
from tests.programs import LEAF, ROOT
from tests.tree.model import Down, Grant, Up
from tests.tree.switches import JOB, LeafSwitch, OnBmv2, RootSwitch

RACKS, HERE, SESSION = 2, 2, 7
Packet = Up | Down | Grant


class Tree:
    """Workers are (rack, id in it). ``answers``: what each was told, by rack and worker."""

    def __init__(self, leaves: list[LeafSwitch], root: RootSwitch) -> None:
        self.leaves, self.root = leaves, root
        self.answers: dict[tuple[int, int], list[Answer]] = {}
        self.packets = 0  # between switches

    def swap(self, epoch: int, staleness: int, read_mode: ReadMode) -> None:
        """Of all workers; prepared at the leaves, then in force."""
        everybody = 2**HERE - 1
        told = PolicyFields(everybody, everybody, staleness, RACKS * HERE, read_mode)
        for leaf in self.leaves:
            leaf.prepare(SESSION, epoch, LeafPolicy(told, HERE, by_arrivals=False, flush_mask=3))
            if epoch == 1:
                leaf.tell(SESSION, 1, LeafPolicy(told, HERE, by_arrivals=False))
        racks = 2**RACKS - 1
        self.root.set_policy(SESSION, epoch, PolicyFields(racks, racks, staleness, 0, read_mode))

    def send(self, rack: int, worker: int, op: Op, seq: int, epoch: int, round_: int, values: np.ndarray) -> None:
        payload = request(op, worker, values=values, job=JOB, session=SESSION, epoch=epoch, round=round_, seq=seq)
        under_way = deque[tuple[int, Packet, int]]()
        self._told(rack, self.leaves[rack].send(worker, payload), under_way, worker + 1)
        while under_way:
            which, packet, port = under_way.popleft()
            self.packets += 1
            if isinstance(packet, Up):
                said = self.root.send(which, 0, packet, port if packet.echo else 0)
                under_way.extend((each.leaf, each, port) for each in said)
            else:
                echoed = isinstance(packet, Down) and packet.echo
                self._told(which, self.leaves[which].hear(0, packet, port if echoed else 0), under_way, port)

    def _told(self, rack: int, said: list[Answer | Up], under_way: deque[tuple[int, Packet, int]], port: int) -> None:
        for each in said:
            if isinstance(each, Up):
                under_way.append((rack, each, port))
            else:
                self.answers.setdefault((rack, each.worker), []).append(each)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tree]:
    lacking = missing("bmv2")
    if lacking:
        pytest.skip(f"needs {lacking}")
    with ExitStack() as stack:
        stack.enter_context(own_network(RACKS + 1))
        planes = []
        for number, program in enumerate([LEAF] * RACKS + [ROOT]):
            log = tmp_path_factory.mktemp("switch") / f"{number}.log"
            process = SwitchProcess("bmv2", log, number * PORTS, unix=True)
            stack.callback(process.stop)
            planes.append(OnBmv2(process, program))
            stack.callback(planes[-1].close)
        leaves = [LeafSwitch(planes[rack], rack, range(HERE), 1, RACKS * HERE) for rack in range(RACKS)]
        yield Tree(leaves, RootSwitch(planes[RACKS], RACKS, 1))


@pytest.mark.bmv2
def test_bsp_then_a_live_swap_then_stale_reads(tree: Tree) -> None:
    numbers, lanes = np.random.default_rng(1), LEAF.lanes
    total = np.zeros(lanes, np.int32)
    workers = [(rack, worker) for rack in range(RACKS) for worker in range(HERE)]
    tree.swap(1, 0, ReadMode.SNAPSHOT)

    seq = 0
    for round_ in range(4):
        seq += 1
        for rack, worker in workers:
            values = numbers.integers(-(2**31), 2**31, lanes).astype(np.int32)
            total = total + values
            tree.send(rack, worker, Op.PUSH, seq, 1, round_, values)
        read = {where: tree.answers.pop(where)[-1] for where in workers}
        assert {answer.values for answer in read.values()} == {tuple(total.tolist())}  # the bits of one sum
        assert {answer.total for answer in read.values()} == {RACKS * HERE * seq}
        assert {answer.base for answer in read.values()} == {round_ + 1}

    tree.swap(2, 1, ReadMode.LATEST)
    for rack, worker in workers:  # of the epoch before: accepted, and told of the new one through the root
        values = numbers.integers(-(2**31), 2**31, lanes).astype(np.int32)
        total = total + values
        tree.send(rack, worker, Op.PUSH, seq + 1, 1, 4, values)
    assert {tree.answers[where][-1].epoch for where in workers} == {2}
    seq += 1
    for round_ in range(3):
        seq += 1
        tree.answers.clear()
        for rack, worker in workers:
            values = numbers.integers(-(2**31), 2**31, lanes).astype(np.int32)
            total = total + values
            tree.send(rack, worker, Op.PUSH, seq, 2, round_, values)
    assert set(tree.answers) == set(workers)

    for rack, worker in workers * 2:  # the first brings the rack's sum to the root
        tree.send(rack, worker, Op.PULL, 2**31 + 1, 0, 0, np.zeros(lanes))
    for where in workers:
        last = tree.answers[where][-1]
        assert (last.total, last.values) == (RACKS * HERE * seq, tuple(total.tolist()))
    assert [plane.dropped() for plane in (*(leaf.plane for leaf in tree.leaves), tree.root.plane)] == [{}] * 3
