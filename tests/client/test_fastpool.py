"""The C path of a pool, over real sockets to the P4 program: the same bits as the path in Python beside it."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from serene.client import Disagreement, NoAnswer, Pool, PoolBroken
from serene.client.blocks import SIGNATURE_LANES
from serene.client.fastpath import library
from serene.experiments.correctness.virtual.switch import P4Switch
from serene.faults import Faults
from serene.program import Program
from serene.strategy import ASP, SSP, Strategy
from tests.support.numbers import expected, random_values, same
from tests.support.pools import FINE, lossy
from tests.support.threaded_pools import Run, all_reduce

LANES = 320

pytestmark = pytest.mark.skipif(library() is None, reason="the fast path needs a C compiler")


@pytest.fixture(scope="module")
def switch() -> P4Switch:
    return P4Switch(Program.load("serene"))


def mixed(workers: int, length: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [random_values(rng, length, LANES) for _ in range(workers)]


@pytest.mark.parametrize("faults", [FINE, lossy(6, 0.03)], ids=["fine", "lossy"])
@pytest.mark.parametrize("length", [0, 1, LANES - 1, LANES, LANES + 1, 700 * LANES + 5])
def test_both_paths_in_one_job_get_the_same_bits(switch: P4Switch, length: int, faults: Faults) -> None:
    given = mixed(3, length)
    for result in all_reduce(Run(switch, 3, 16, faults, plain=(1,)), given):
        assert same(result, expected(given, LANES))


@pytest.mark.parametrize(("workers", "slots"), [(1, 1), (1, 5), (2, 1), (2, 512), (5, 40), (8, 7)])
def test_any_number_of_workers_and_slots(switch: P4Switch, workers: int, slots: int) -> None:
    given = mixed(workers, 300 * LANES + 1, seed=workers)
    for result in all_reduce(Run(switch, workers, slots, lossy(workers, 0.01)), given):
        assert same(result, expected(given, LANES))


def test_a_larger_packet() -> None:
    program = Program.load("serene_jumbo")
    given = mixed(2, 200 * program.lanes + 9)
    for result in all_reduce(Run(P4Switch(program), 2, 32), given):
        assert same(result, expected(given, program.lanes))


@pytest.mark.parametrize("kind", ["nan", "-inf", "both infinities", "all nan", "huge", "subnormal", "zero"])
def test_each_kind_of_values(switch: P4Switch, kind: str) -> None:
    rng = np.random.default_rng(1)
    given = [rng.normal(size=30 * LANES).astype(np.float32) for _ in range(2)]
    if kind == "nan":
        given[0][::97] = np.nan
    elif kind == "-inf":
        given[0][5], given[1][5], given[1][900] = -np.inf, -np.inf, -np.inf
    elif kind == "both infinities":
        given[0][5], given[1][5] = np.inf, -np.inf
    elif kind == "all nan":
        given[1][:] = np.nan
    else:
        scale = {"huge": 1e38, "subnormal": 1e-40, "zero": 0.0}[kind]
        given = [vector * np.float32(scale) for vector in given]
    for result in all_reduce(Run(switch, 2, 8, lossy(2, 0.02), plain=(0,)), given):
        assert same(result, expected(given, LANES))


def test_collective_after_collective(switch: P4Switch) -> None:
    lengths = [1, 5000, 0, 90_000, 320, 41_000]
    given = [mixed(2, length, seed) for seed, length in enumerate(lengths)]
    results = [[vector.copy() for vector in of] for of in given]

    def live(worker: int, pool: Pool) -> None:
        for of in results:
            pool.all_reduce(of[worker])
        assert pool.collectives == len(lengths)
        assert pool.telemetry()["contributions_sent"] == pool._client.contributions_sent > 400

    assert Run(switch, 2, 33, lossy(3, 0.01)).play(live) == [None, None]
    for result, of in zip(results, given, strict=True):
        assert all(same(one, expected(of, LANES)) for one in result)


@pytest.mark.parametrize("strategy", [ASP(), SSP(1)], ids=str)
def test_a_swap_ends_it(switch: P4Switch, strategy: Strategy) -> None:
    run, given = Run(switch, 2, 4), mixed(2, 3000 * LANES)
    begun = threading.Barrier(2, lambda: run.network.swap(strategy, 2))

    def live(worker: int, pool: Pool) -> None:
        pool.all_reduce(given[worker][:10])
        begun.wait(120)
        pool.all_reduce(given[worker])

    for error in run.play(live):
        assert isinstance(error, PoolBroken), error


def test_a_worker_that_ends_is_missing(switch: P4Switch) -> None:
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


def test_a_worker_whose_time_is_up_says_so_or_goes_on(switch: P4Switch) -> None:
    """Its first piece may have been answered: then nothing is under way that somebody could be missing in."""
    values = np.ones(10, np.float32)
    (error,) = Run(switch, 1, 4).play(lambda worker, pool: pool.all_reduce(values, timeout_s=0.0))
    assert isinstance(error, NoAnswer) or (error is None and values.tolist() == [1.0] * 10), error


def test_workers_that_disagree_all_see_it_and_go_on(switch: P4Switch) -> None:
    run, given, seen = Run(switch, 3, 16, plain=(0,)), mixed(3, 50 * LANES), []

    def live(worker: int, pool: Pool) -> None:
        values = given[worker].copy()
        with pytest.raises(Disagreement, match="the 3 workers call different collectives"):
            pool.all_reduce(values[: 1000 if worker == 1 else None])
        assert same(values, given[worker])
        pool.all_reduce(values)
        seen.append(values)

    assert run.play(live) == [None, None, None]
    assert all(same(values, expected(given, LANES)) for values in seen)


@pytest.mark.parametrize("other", range(SIGNATURE_LANES))
@pytest.mark.parametrize("plain", [(), (0, 1)], ids=["C", "Python"])
def test_one_hash_of_a_signature_is_enough_to_disagree(
    switch: P4Switch, monkeypatch: pytest.MonkeyPatch, other: int, plain: tuple[int, ...]
) -> None:
    """The others are the same by chance."""

    def hashes(signature: bytes, *facts: object) -> np.ndarray:
        values = np.arange(1, SIGNATURE_LANES + 1, dtype=np.uint32)
        values[other] += int(signature == b"odd")
        return values

    monkeypatch.setattr("serene.client.pool.hashes", hashes)

    def live(worker: int, pool: Pool) -> None:
        with pytest.raises(Disagreement):
            pool.all_reduce(np.ones(1000, np.float32), b"odd" if worker else b"even")

    assert Run(switch, 2, 4, plain=plain).play(live) == [None, None]
