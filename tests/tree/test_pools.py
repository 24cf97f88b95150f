"""Collectives over racks: the same pool as at one switch, and the same bits."""

from __future__ import annotations

import numpy as np
import pytest

from serene import entries
from serene.client import PoolBroken
from serene.controller.switch.plan_entries import installed
from serene.entries import Entry, Group
from serene.experiments.correctness.virtual.switch import P4Switch
from serene.experiments.correctness.virtual.tree import TO_LEAF, TO_ROOT, UPLINK, TreeSwitch
from serene.faults import Direction, Faults
from serene.racks import Racks, policies
from serene.strategy import ASP, BSP, SSP, Mixed, Quorum, Strategy
from serene.wire import ROOT as ROOT_WORKER
from tests.programs import LEAF, ROOT, V1MODEL
from tests.support.numbers import expected, same
from tests.support.pools import FINE, PoolRun, lossy

JOB = 0


class PoolTree(TreeSwitch):
    """With the entries of a job as one switch would have them: the workers have their numbers in the job everywhere."""

    def __init__(self, workers: int) -> None:
        super().__init__(LEAF, ROOT, 4)
        self.racks = Racks.even(workers, 4)
        for rack, leaf in enumerate(self.leaves):
            leaf.put(entries.uplink(JOB, rack, 0, UPLINK))

    def entries(self) -> list[Entry]:
        return []

    def has(self, entry: Entry) -> bool:
        return False

    def delete(self, entry: Entry) -> None:
        raise NotImplementedError

    def put(self, entry: Entry) -> None:
        if entry.table in ("member", "address"):
            self.leaves[self.rack_of(entry.match["worker"] + 1)].put(entry)
        elif entry.table == "policy":
            self._put_in_force(entry)
        else:
            for switch in self.switches:
                switch.put(entry)

    def set_group(self, group: Group) -> None:
        for rack, leaf in enumerate(self.leaves):
            here = [(port, replica) for port, replica in group.replicas if self.rack_of(port) == rack]
            leaf.set_group(Group(group.number, (*here, (UPLINK, ROOT_WORKER + 1))))
        self.root.set_group(entries.root_group(JOB, ((rack, rack + 1) for rack in range(len(self.leaves)))))

    def _put_in_force(self, entry: Entry) -> None:
        job = installed([entry]).jobs[JOB]
        assert job.fields is not None
        leaves, root = policies(job.fields, [self.racks.mask(rack) for rack in range(len(self.leaves))])
        for rack, leaf in enumerate(self.leaves):
            leaf.put(entries.prepared(JOB, job.session, job.epoch, leaves[rack]))
            leaf.put(entry)
            leaf.put(entries.member(JOB, ROOT_WORKER, entries.root_at(UPLINK, job.session)))
            self.root.admit(rack, entries.leaf_at(rack, 0, job.session), JOB)
        self.root.put(entries.policy(JOB, job.session, job.epoch, root))


class TreePoolRun(PoolRun):
    """Links between switches are as bad as workers'."""

    def into_switch(self, port: int, frame: bytes) -> None:
        for out, data in self.switch.process([(port, frame)]):
            worker = self._worker_at.get(out)
            if out >= TO_LEAF:
                direction = Direction.TO_SWITCH if out >= TO_ROOT else Direction.TO_WORKER
                self.carry(out, direction, data, lambda got, out=out: self.into_switch(out, got))  # type: ignore[misc]
            elif worker is None:
                self.punted.append(data)
            else:
                self.carry(worker, Direction.TO_WORKER, data, self.wires[worker].hear)


def vectors(workers: int, length: int) -> list[np.ndarray]:
    draws = [np.random.default_rng([7, worker]).normal(size=length) for worker in range(workers)]
    return [(draw * 10.0 ** (worker - 2)).astype(np.float32) for worker, draw in enumerate(draws)]


@pytest.mark.parametrize("faults", [FINE, lossy(5), lossy(6, 0.2)], ids=["fine", "lossy", "storm"])
@pytest.mark.parametrize("workers", [4, 7])
def test_pool_sum_over_racks_equals_that_of_one_switch(workers: int, faults: Faults) -> None:
    given = vectors(workers, 20 * LEAF.lanes + 3)
    tree = PoolTree(workers)
    over_racks = TreePoolRun(tree, workers, 8, faults).all_reduce(given)
    tree.close()
    star = P4Switch(V1MODEL)
    at_one_switch = PoolRun(star, workers, 8).all_reduce(given)
    star.close()
    for one, other in zip(over_racks, at_one_switch, strict=True):
        assert same(one, other)
        assert same(one, expected(given, LEAF.lanes))


def test_leave_of_a_worker_breaks_the_pool_in_other_racks() -> None:
    tree = PoolTree(4)
    run = TreePoolRun(tree, 4, 4)
    run.at(0.004, lambda: run.put_policy(BSP(), 2, members=[0, 1, 2]))
    given = vectors(4, 60 * LEAF.lanes)
    run.play(lambda worker, pool: pool.all_reduce(given[worker]))
    for worker in range(3):
        assert str(run.errors[worker]).startswith("job 0 has 3 members now, not 4: a worker has left or was evicted")
    tree.close()


@pytest.mark.parametrize("strategy", [ASP(), SSP(1), Quorum(6), Mixed((6,))], ids=str)
def test_rack_job_under_another_strategy_is_no_pool(strategy: Strategy) -> None:
    """Also if a worker's own rack looks as under BSP: in the mixed job all of rack 0 is counted."""
    tree = PoolTree(7)
    run = TreePoolRun(tree, 7, 4, strategy=strategy)
    run.play(lambda worker, pool: pool.all_reduce(np.ones(5000, np.float32)))
    assert sorted(run.errors) == list(range(7))
    for error in run.errors.values():
        assert isinstance(error, PoolBroken)
        assert "no longer waits for this worker" in str(error) or "is not under BSP" in str(error)
    tree.close()
