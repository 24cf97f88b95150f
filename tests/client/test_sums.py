"""The sum that a pool's workers read, in every format: any length, any number of workers and slots, all kinds of
values. In virtual time against the P4 program; by the compiled client, over real sockets, too. Given scales:
test_given_scales.py."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from serene.client import Pool
from serene.client.allreduce.blocks import BITS
from serene.client.compiled.fastpath import library
from serene.experiments.correctness.virtual.switch import P4Switch
from serene.faults import Faults
from serene.program import Program
from tests.support.numbers import expected, random_values, right, same, within_bound
from tests.support.pools import FINE, PoolRun, lossy
from tests.support.threaded_pools import Run, all_reduce

LANES = 320
LENGTHS = (0, 1, LANES - 1, LANES, LANES + 1, 2 * LANES + 1, 4 * LANES + 1, 16 * LANES - 1, 16 * LANES + 1,
           100 * LANES + 7)  # fmt: skip
in_c = pytest.mark.skipif(library() is None, reason="the fast path needs a C compiler")


@pytest.fixture(scope="module")
def switch_of_threads() -> P4Switch:
    """Another one: sessions of both kinds of runs are counted apart, and a switch's must grow."""
    return P4Switch(Program.load("serene"))


def vectors(workers: int, length: int, seed: int = 0) -> list[np.ndarray]:
    """Magnitudes that change from block to block, from 1e-30 to 1e+30; one value in ten is 0."""
    rng = np.random.default_rng([workers, length, seed])
    magnitudes = np.float32(10.0) ** (np.arange(length) // 500 % 61 - 30).astype(np.float32)
    drawn = [rng.normal(size=length).astype(np.float32) * magnitudes for _ in range(workers)]
    return [np.where(rng.random(length) < 0.1, np.float32(0), vector) for vector in drawn]


@pytest.mark.parametrize(
    ("workers", "slots", "faults", "lengths"),
    [
        *((workers, 8, faults, LENGTHS) for workers, faults in ((1, FINE), (2, FINE), (2, lossy(5)), (3, lossy(5)))),
        *((workers, 5, lossy(workers, 0.02), (17 * LANES + 3,)) for workers in (7, 32)),
    ],
)
def test_pool_sums_match_the_oracle_for_any_length_and_format(
    switch: P4Switch, workers: int, slots: int, faults: Faults, lengths: tuple[int, ...]
) -> None:
    """Formats change between collectives. All workers read the same bits, and every contribution is accounted for."""
    calls = list(itertools.product(lengths, BITS))
    random.Random(workers).shuffle(calls)
    given = [vectors(workers, length, number) for number, (length, _) in enumerate(calls)]
    results = [[vector.copy() for vector in of] for of in given]
    run = PoolRun(switch, workers, slots, faults)

    def live(worker: int, pool: Pool) -> None:
        for (_, bits), of in zip(calls, results, strict=True):
            pool.all_reduce(of[worker], bits=bits)

    before = [switch.count("contributions", worker) for worker in range(workers)]
    run.play(live)
    assert not run.errors
    sent = [pool.telemetry()["contributions_sent"] for pool in run.pools]
    assert [switch.count("contributions", worker) - first for worker, first in enumerate(before)] == sent
    for (length, bits), of, vectors_of in zip(calls, results, given, strict=True):
        assert all(same(one, of[0]) for one in of)
        assert right(of[0], vectors_of, LANES, bits), (length, bits)
        assert bits != 32 or within_bound(of[0], vectors_of, LANES)


@pytest.mark.parametrize("unit", [None, -3])
@pytest.mark.parametrize("bits", BITS)
def test_pool_sums_match_the_oracle_for_all_kinds_of_values(switch: P4Switch, bits: int, unit: int | None) -> None:
    given = [random_values(np.random.default_rng(worker), 60 * LANES, LANES) for worker in range(3)]
    results = PoolRun(switch, 3, 5, lossy(2)).all_reduce(given, bits=bits, unit=unit)
    assert all(same(result, results[0]) for result in results)
    if bits == 32 or unit is not None:
        assert right(results[0], given, LANES, bits, unit)


@in_c
@pytest.mark.parametrize(
    ("faults", "feedback", "rows"),
    [(FINE, False, 400), (FINE, True, 200), (lossy(6, 0.03), False, 50)],
    ids=["fine", "feedback", "lossy"],
)
def test_c_and_python_send_and_read_the_same_bits(
    switch_of_threads: P4Switch, faults: Faults, feedback: bool, rows: int
) -> None:
    """Rounding, residuals and counts agree: both in one job, and each in a job of its own. rows: of values; 400 make
    several exponent pieces in each format."""
    workers, rng, most = 3, np.random.default_rng(3), rows * LANES + 5
    calls: list[tuple[int, int | None, int]] = [(32, None, length) for length in LENGTHS[:5]]
    calls += [(bits, None, most) for bits in BITS]
    calls += [(bits, unit, most // 4) for bits in BITS for unit in (-140, -8, 20)]
    given = [[random_values(rng, length, 8 * LANES) for _ in range(workers)] for _, _, length in calls]
    found = []
    for plain in ((), (1,), (0, 1, 2)):
        held, lost = ([np.zeros(most) for _ in range(workers)] for _ in range(2))
        results = [[vector.copy() for vector in of] for of in given]
        run = Run(switch_of_threads, workers, 16, faults, plain)

        def live(worker: int, pool: Pool, held: list[np.ndarray] = held, lost: list[np.ndarray] = lost,
                 results: list[list[np.ndarray]] = results) -> None:  # fmt: skip
            for (bits, unit, length), of in zip(calls, results, strict=True):
                kept = (held[worker][:length], lost[worker][:length]) if feedback else (None, None)
                pool.all_reduce(of[worker], bits=bits, unit=unit, residual=kept[0], lost=kept[1])
            assert pool.collectives == len(calls)
            assert pool.telemetry()["contributions_sent"] == pool._client.contributions_sent

        assert run.play(live) == [None] * workers
        found.append((results, held, lost, [(pool.clipped_values, pool.lost_values) for pool in run.pools]))
    first = found[0]
    for results, held, lost, counts in found:
        for of, of_first in zip(results, first[0], strict=True):
            assert all(same(vector, of_first[0]) for vector in of)
        for one, other in ((held, first[1]), (lost, first[2])):
            assert all(np.array_equal(mine, theirs) for mine, theirs in zip(one, other, strict=True))
        assert counts == first[3]
        assert all(lost_values if feedback else clipped for clipped, lost_values in counts)
    for (bits, unit, _), of, vectors_of in zip(calls, first[0], given, strict=True):
        if not feedback and (unit is not None or bits == 32):
            assert right(of[0], vectors_of, LANES, bits, unit)


@in_c
@pytest.mark.parametrize(("workers", "slots"), [(1, 1), (2, 512), (5, 40), (8, 7)])
def test_fast_pool_sums_match_for_any_workers_and_slots(switch_of_threads: P4Switch, workers: int, slots: int) -> None:
    rng = np.random.default_rng(workers)
    given = [random_values(rng, 300 * LANES + 1, LANES) for _ in range(workers)]
    for result in all_reduce(Run(switch_of_threads, workers, slots, lossy(workers, 0.01)), given):
        assert same(result, expected(given, LANES))


@in_c
def test_fast_pool_sums_match_with_jumbo_frames() -> None:
    program = Program.load("serene_jumbo")
    given = [random_values(np.random.default_rng(worker), 200 * program.lanes + 9, LANES) for worker in range(2)]
    for result in all_reduce(Run(P4Switch(program), 2, 32), given):
        assert same(result, expected(given, program.lanes))
