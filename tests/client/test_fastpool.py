"""The C path of a pool, over real sockets to the P4 program: the same bits as the path in Python beside it."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from serene.client import Disagreement, NoAnswer, Pool, PoolBroken
from serene.client.allreduce.blocks import SIGNATURE_LANES
from serene.client.compiled.fastpath import library
from serene.experiments.correctness.virtual.switch import P4Switch
from serene.strategy import ASP, SSP, Strategy
from tests.support.numbers import expected, random_values, same
from tests.support.threaded_pools import Run

LANES = 320

pytestmark = pytest.mark.skipif(library() is None, reason="the fast path needs a C compiler")


def mixed(workers: int, length: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [random_values(rng, length, LANES) for _ in range(workers)]


@pytest.mark.parametrize("strategy", [ASP(), SSP(1)], ids=str)
def test_swap_to_another_strategy_breaks_a_fast_pool(switch: P4Switch, strategy: Strategy) -> None:
    run, given = Run(switch, 2, 4), mixed(2, 3000 * LANES)
    begun = threading.Barrier(2, lambda: run.network.swap(strategy, 2))

    def live(worker: int, pool: Pool) -> None:
        pool.all_reduce(given[worker][:10])
        begun.wait(120)
        pool.all_reduce(given[worker])

    for error in run.play(live):
        assert isinstance(error, PoolBroken), error


def test_fast_pool_timeout_counts_the_missing_workers(switch: P4Switch) -> None:
    run, given = Run(switch, 3, 16), mixed(3, 50 * LANES)

    def live(worker: int, pool: Pool) -> None:
        pool.all_reduce(given[worker])
        if worker:
            pool.all_reduce(given[worker], timeout_s=1.0)

    first, *others = run.play(live)
    assert first is None
    for error in others:
        assert isinstance(error, NoAnswer)
        assert str(error) == "the collective did not finish within 1 s: 1 of 3 workers have not contributed"


@pytest.mark.parametrize("other", range(SIGNATURE_LANES))
@pytest.mark.parametrize("plain", [(), (0, 1)], ids=["C", "Python"])
def test_one_differing_signature_hash_is_a_disagreement_after_which_pools_continue(
    switch: P4Switch, monkeypatch: pytest.MonkeyPatch, other: int, plain: tuple[int, ...]
) -> None:
    """The other hashes are equal by chance."""

    def hashes(signature: bytes, *facts: object) -> np.ndarray:
        values = np.arange(1, SIGNATURE_LANES + 1, dtype=np.uint32)
        values[other] += int(signature == b"odd")
        return values

    monkeypatch.setattr("serene.client.allreduce.pool.hashes", hashes)

    def live(worker: int, pool: Pool) -> None:
        values = given[worker].copy()
        with pytest.raises(Disagreement, match="the 2 workers call different collectives"):
            pool.all_reduce(values, b"odd" if worker else b"even")
        assert same(values, given[worker])
        pool.all_reduce(values)
        assert same(values, expected(given, LANES))

    given = mixed(2, 50 * LANES)
    assert Run(switch, 2, 4, plain=plain).play(live) == [None, None]


def test_fast_pool_measures_no_pace_from_pieces_sent_alone(switch: P4Switch) -> None:
    """Each vector has two pieces. The second is sent after the first is answered, so its answer comes a round trip
    later."""
    paces = []

    def live(worker: int, pool: Pool) -> None:
        for _ in range(5):
            pool.all_reduce(np.ones(10, np.float32))
        paces.append(pool._client.protocol.exchange.pace_s)

    assert Run(switch, 3, 16, plain=(0,)).play(live) == [None] * 3
    assert paces == [0.0] * 3
