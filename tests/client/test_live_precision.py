"""`serenectl precision` as a pool sees it: 32 -> 8 -> 16 -> 32 bits while it works, with every value accounted for.

An epoch begins in the middle of a collective, and packets are lost, repeated and late. The switch is the P4 program on
the embedded switch and on BMv2. (The protocol's rules in Python, in random runs: tests/client/test_pool_rules.py.)
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from itertools import groupby
from typing import Protocol

import numpy as np
import pytest

from serene.client import Pool
from serene.client.allreduce.blocks import Layout
from serene.client.compiled.fastpath import library
from serene.experiments.correctness.virtual.switch import P4Switch, VirtualSwitch
from serene.faults import Faults
from serene.program import Program
from serene.strategy import BSP
from tests.embedded.bmv2 import why_not
from tests.support.bmv2_switch import Bmv2Switch
from tests.support.numbers import right, same
from tests.support.pools import PoolRun, lossy
from tests.support.threaded_pools import Run

CHANGES = {2: 8, 7: 16, 12: 32}  # by collective, in the middle of which an epoch begins
EPOCHS = {number: epoch for epoch, number in enumerate(CHANGES, 2)}
COLLECTIVES = 18
MOST_LATER = 3  # collectives: one in which some learn of it, one in which all do, one in which all vote for it
WORKERS = 3


class Counting(VirtualSwitch, Protocol):
    def count(self, counter: str, worker: int) -> int: ...


@pytest.fixture(scope="module", params=["embedded", pytest.param("bmv2", marks=pytest.mark.bmv2)])
def switch(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Counting]:
    if request.param == "embedded":
        yield P4Switch(Program.load("serene"))
    else:
        if lacking := why_not():
            pytest.skip(lacking)
        bmv2 = Bmv2Switch(tmp_path_factory.mktemp("bmv2"))
        yield bmv2
        bmv2.close()


def vectors(lanes: int, pieces: int) -> list[list[np.ndarray]]:
    """By collective and worker."""
    rng = np.random.default_rng(1)
    length = pieces * lanes + 3
    return [[rng.normal(size=length).astype(np.float32) for _ in range(WORKERS)] for _ in range(COLLECTIVES)]


class Collectives:
    """The formats and results of each worker's collectives."""

    def __init__(self, given: list[list[np.ndarray]], limit: float | None = None) -> None:
        self.given, self.limit = given, limit  # limit: of a fixed scale
        self.results = [[vector.copy() for vector in of] for of in given]
        self.bits: list[list[int]] = [[] for _ in range(WORKERS)]

    def all_reduce(self, pool: Pool, worker: int, number: int) -> None:
        self.bits[worker].append(pool.precision)
        unit = None if self.limit is None else pool.unit_of(self.limit, pool.precision)
        pool.all_reduce(self.results[number][worker], bits=pool.precision, unit=unit)

    def check(self, lanes: int) -> None:
        """All workers alike, right in each format, and no change takes more than a few collectives."""
        assert all(bits == self.bits[0] for bits in self.bits)
        assert [bits for bits, _ in groupby(self.bits[0])] == [32, *CHANGES.values()]
        for begun, bits in CHANGES.items():
            assert bits in self.bits[0][begun + 1 : begun + 1 + MOST_LATER]
        for bits, given, results in zip(self.bits[0], self.given, self.results, strict=True):
            assert all(same(result, results[0]) for result in results)
            unit = None if self.limit is None else Layout(WORKERS, lanes, bits).with_limit(self.limit).unit
            assert right(results[0], given, lanes, bits, unit)


@pytest.mark.parametrize(("faults", "limit"), [(lossy(3), None), (lossy(4), 1.5)], ids=["voted scale", "fixed scale"])
def test_live_precision_changes_keep_every_value_accounted(
    switch: Counting, faults: Faults, limit: float | None
) -> None:
    """Under the fixed scale some values are beyond its limit."""
    run, collectives = PoolRun(switch, WORKERS, 4, faults), Collectives(vectors(switch.lanes, 6), limit)
    before = [switch.count("contributions", worker) for worker in range(WORKERS)]

    def live(worker: int, pool: Pool) -> None:
        for number in range(COLLECTIVES):
            if worker == 0 and number in CHANGES:
                run.at(0.0007, partial(run.put_policy, BSP(), EPOCHS[number], precision=CHANGES[number]))
            collectives.all_reduce(pool, worker, number)

    run.play(live)
    assert not run.errors
    collectives.check(switch.lanes)
    counted = [switch.count("contributions", worker) - first for worker, first in enumerate(before)]
    assert counted == [pool.telemetry()["contributions_sent"] for pool in run.pools]
    assert {pool.telemetry()["epoch"] for pool in run.pools} == {1 + len(CHANGES)}


@pytest.mark.skipif(library() is None, reason="the fast path needs a C compiler")
@pytest.mark.parametrize("plain", [(), (1,)], ids=["C", "C and Python"])
def test_live_precision_changes_in_c_keep_every_value_accounted(plain: tuple[int, ...]) -> None:
    """Over sockets. The change begins while no worker waits for others; workers learn of it at different times."""
    embedded = P4Switch(Program.load("serene"))
    run, collectives = Run(embedded, WORKERS, 16, lossy(5, 0.01), plain), Collectives(vectors(embedded.lanes, 200))
    begun = {
        number: threading.Barrier(WORKERS, partial(run.network.swap, BSP(), EPOCHS[number], bits))
        for number, bits in CHANGES.items()
    }

    def live(worker: int, pool: Pool) -> None:
        for number in range(COLLECTIVES):
            if number in begun:
                begun[number].wait(60)
            collectives.all_reduce(pool, worker, number)

    assert run.play(live) == [None] * WORKERS
    collectives.check(embedded.lanes)
    sent = [pool.telemetry()["contributions_sent"] for pool in run.pools]
    assert [embedded.count("contributions", worker) for worker in range(WORKERS)] == sent
