"""Collectives over racks: the pool is the one that one switch serves, and the sums are the same bits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from serene.client import PoolBroken
from serene.experiments.correctness.virtual.switch import P4Switch
from serene.experiments.correctness.virtual.tree import TO_LEAF, TO_ROOT, TreeSwitch
from serene.faults import Direction, Faults
from serene.strategy import ASP, BSP
from tests.programs import LEAF, ROOT, V1MODEL
from tests.support.numbers import expected, same
from tests.support.pools import FINE, PoolRun, lossy


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


@pytest.fixture(scope="module")
def tree() -> Iterator[TreeSwitch]:
    loaded = TreeSwitch(LEAF, ROOT, 4)
    yield loaded
    loaded.close()


def vectors(workers: int, length: int) -> list[np.ndarray]:
    draws = [np.random.default_rng([7, worker]).normal(size=length) for worker in range(workers)]
    return [(draw * 10.0 ** (worker - 2)).astype(np.float32) for worker, draw in enumerate(draws)]


@pytest.mark.parametrize("faults", [FINE, lossy(5), lossy(6, 0.2)], ids=["fine", "lossy", "storm"])
@pytest.mark.parametrize("workers", [4, 7])
def test_the_sum_is_that_of_one_switch(tree: TreeSwitch, workers: int, faults: Faults) -> None:
    given = vectors(workers, 20 * LEAF.lanes + 3)
    over_racks = TreePoolRun(tree, workers, 8, faults).all_reduce(given)
    star = P4Switch(V1MODEL)
    at_one_switch = PoolRun(star, workers, 8).all_reduce(given)
    star.close()
    for one, other in zip(over_racks, at_one_switch, strict=True):
        assert same(one, other)
        assert same(one, expected(given, LEAF.lanes))


def test_a_swap_breaks_the_pool_and_gives_no_wrong_sum(tree: TreeSwitch) -> None:
    run = TreePoolRun(tree, 4, 4, lossy(3))
    run.at(0.004, lambda: run.put_policy(ASP(), 2))
    run.at(0.009, lambda: run.put_policy(BSP(), 3))
    given = vectors(4, 60 * LEAF.lanes)
    with pytest.raises(PoolBroken):
        run.all_reduce(given)
