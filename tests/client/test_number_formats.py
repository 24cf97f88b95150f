"""Block exponents, and values of 16 and 8 bits in lanes of 32 bits, which the switch adds like any other lanes.

The oracle is arithmetic in float64 and Python's integers (tests/support/numbers.py); rounding at random is judged by
what it must not exceed, and in test_given_scales.py by its mean.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from serene.client import Pool
from serene.client.allreduce.blocks import BITS, NONE, Layout, largest_of, noise, quantise, to_levels
from serene.client.allreduce.collective import noise_seed
from serene.experiments.correctness.virtual.switch import P4Switch
from serene.program import Program
from tests.planted import Play, every_fault_is_found, faults
from tests.support.numbers import expected, same, within_levels
from tests.support.pools import PoolRun, lossy

LANES = 320
NARROW = [16, 8]
SIGNATURE = np.array([1, 2], np.uint32)


# -- block exponents -----------------------------------------------------------------------------------------

CLASSES = 64  # of finite values, in 32 bits


def classify(values: np.ndarray) -> tuple[int, bool]:
    largest, not_finite = largest_of(values)
    return Layout(4, LANES).class_of(largest), not_finite


@pytest.mark.parametrize("workers", range(1, 33))
def test_counters_and_largest_values_of_each_class_do_not_overflow(workers: int) -> None:
    """The counters of all workers do not carry; their largest values sum within 31 bits."""
    layout = Layout(workers, LANES)
    for highest in range(CLASSES):
        value = np.array([2.0 ** (4 * highest - 125), np.inf], np.float32)
        assert classify(value) == (highest, True)
        assert layout.classes(workers * layout.count(value))[:2] == [(highest, True), (NONE, False)]
        largest = np.nextafter(np.float32(min(2.0 ** (4 * highest - 123), 2.0**127 * 1.99)), np.float32(0))
        value = np.array([largest, -largest], np.float32)
        shift = layout.shift(classify(value)[0])
        assert np.abs(quantise(value, shift).astype(np.int64) * workers).max() < 2**31
    assert workers == 1 or 1 / (4 * layout.blocks_per_piece) <= 0.011, "one per cent are exponent pieces"


def test_classify_returns_the_class_of_the_largest_magnitude() -> None:
    tiny, huge = np.finfo(np.float32).smallest_subnormal, np.finfo(np.float32).max
    one, _ = classify(np.ones(1, np.float32))
    for values, expected_ in (
        ([0.0, -0.0], (NONE, False)),
        ([0.0, -tiny], (0, False)),
        ([1.0, -huge], (CLASSES - 1, False)),
        ([np.nan, -1.0], (one, True)),
        ([np.inf, 0.0], (NONE, True)),
        ([], (NONE, False)),
    ):
        assert classify(np.array(values, np.float32)) == expected_


# -- numbers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", NARROW)
@pytest.mark.parametrize("workers", range(1, 33))
def test_highest_levels_of_all_workers_fit_their_field(workers: int, bits: int) -> None:
    layout = Layout(workers, 320, bits)
    assert workers * layout.levels < 2 ** (bits - 1)
    for block_class in (0, 1, 127, layout.classes_of_finite - 1):
        top = np.float32(min(layout.levels * layout.level(block_class), float(np.finfo(np.float32).max)))
        largest = np.nextafter(top, np.float32(0)) * np.array([1, -1], np.float32)
        for random in (0, 2**32 - 1):
            found = to_levels(largest, layout.levels_per_unit(block_class), np.full(2, random, np.uint32))
            assert np.abs(found).max() <= layout.levels


def test_rounding_noise_is_uniform_and_uncorrelated() -> None:
    drawn = np.array([noise(noise_seed(SIGNATURE, worker), 0, 100_000) for worker in range(2)])
    counts = np.bincount(drawn.reshape(-1) >> np.uint32(24), minlength=256)
    assert np.abs(counts - counts.mean()).max() < 6 * np.sqrt(counts.mean())
    assert len(np.unique(drawn)) > 0.999 * drawn.size
    for ahead in (0, 1, 2, 320):
        first, second = drawn[0, ahead:] / 2**32, drawn[1, : 100_000 - ahead] / 2**32
        assert abs(np.corrcoef(first, second)[0, 1]) < 0.02
        if ahead:
            assert abs(np.corrcoef(first, drawn[0, :-ahead] / 2**32)[0, 1]) < 0.02
    assert np.array_equal(noise(1, 5, 10), noise(1, 0, 15)[5:])


@pytest.mark.parametrize("index", [0, 1, 2**20, 2**24, 2**31])
def test_rounding_noise_is_uniform_at_each_index(index: int) -> None:
    """Tries the first value of a vector, and indices that are round numbers."""
    drawn = np.array([noise(noise_seed(SIGNATURE + np.uint32(draw), 0), index, 1)[0] for draw in range(20_000)])
    counts = np.bincount(drawn >> np.uint32(28), minlength=16)
    assert np.abs(counts - counts.mean()).max() < 6 * np.sqrt(counts.mean())


# -- through the switch --------------------------------------------------------------------------------------


def test_fewer_bits_send_fewer_packets(switch: P4Switch) -> None:
    sent = {}
    for bits in BITS:
        run = PoolRun(switch, 2, 64)
        run.all_reduce([np.random.default_rng(worker).normal(size=100_000).astype(np.float32) for worker in range(2)],
                       bits=bits)  # fmt: skip
        sent[bits] = run.pools[0].counts.sent
    assert sent[32] >= 313 and sent[16] <= 0.53 * sent[32] and sent[8] <= 0.28 * sent[32]


def test_rounding_is_reproducible_for_the_same_collectives(switch: P4Switch) -> None:
    """A second run rounds alike. The next collective and another worker round differently."""
    given = np.full(5000, 0.3, np.float32)
    given[0] = 1.0
    found: list[list[np.ndarray]] = []
    for _ in range(2):
        run, results = PoolRun(switch, 1, 8), [given.copy() for _ in range(2)]

        def live(worker: int, pool: Pool, results: list[np.ndarray] = results) -> None:
            for values in results:
                pool.all_reduce(values, bits=8)

        run.play(live)
        assert not run.errors
        found.append(results)
    assert same(found[0][0], found[1][0]) and same(found[0][1], found[1][1])
    assert not same(found[0][0], found[0][1])


def test_block_with_infinities_is_sent_in_32_bits(switch: P4Switch) -> None:
    given = [np.random.default_rng(worker).normal(size=40 * LANES).astype(np.float32) for worker in range(2)]
    given[0][5], given[1][5], given[0][17], given[1][29] = np.inf, -np.inf, np.inf, np.nan
    block = 4 * 4 * LANES
    for result in PoolRun(switch, 2, 8, lossy(3)).all_reduce(given, bits=8):
        assert np.isnan(result[[5, 29]]).all() and result[17] == np.inf
        finite = np.isfinite(result[:block])
        exact = given[0][:block].astype(np.float64) + given[1][:block]
        assert np.allclose(result[:block][finite], exact[finite], rtol=2.0**-23, atol=2.0**-23)
        assert within_levels(result[block:], [vector[block:] for vector in given], LANES, 8)


@pytest.mark.parametrize("bits", NARROW)
def test_rounding_largest_values_does_not_overflow(switch: P4Switch, bits: int) -> None:
    """Rounded to a level above them, they would become infinite."""
    largest = np.finfo(np.float32).max
    given = [np.full(5 * LANES, sign * largest, np.float32) for sign in (1, 0)]
    given[0][1::2] = -largest / 3
    for result in PoolRun(switch, 2, 8).all_reduce(given, bits=bits):
        assert np.isfinite(result).all() and np.allclose(result, given[0], rtol=1e-6)


@pytest.mark.parametrize("bits", NARROW)
@pytest.mark.parametrize("value", [1.1e38, 1e-42, 2.0**-149, 5e-39], ids=str)
def test_values_at_the_ends_of_float32_are_sent_in_32_bits(switch: P4Switch, value: float, bits: int) -> None:
    """Three of 1.1e38 add up to less than float32's largest number, but not when each is rounded up; and the levels of
    the lowest class are too far apart for subnormal numbers."""
    given = [np.full(17 * LANES, value if worker < 3 else 0, np.float32) for worker in range(5)]
    for result in PoolRun(switch, 5, 8).all_reduce(given, bits=bits):
        assert same(result, expected(given, LANES))


# -- rules broken on purpose ---------------------------------------------------------------------------------


def hunt(switch: P4Switch, _: int = 0) -> str | None:
    """Returns the first error of runs whose values lie on levels, so that nothing is rounded and sums are exact. The
    highest levels are among them, on all workers at once."""
    for bits, workers in ((8, 4), (16, 4), (8, 32), (8, 1)):
        levels = (2 ** (bits - 1) - 1) // workers - 1  # that highest one would be in the next class
        chosen = np.random.default_rng(bits).integers(-levels, levels + 1, size=(workers, 100 * LANES))
        chosen[:, ::7], chosen[:, 3::7] = levels, -levels
        results = PoolRun(switch, workers, 1).all_reduce(list((chosen * 0.25).astype(np.float32)), bits=bits)
        exact = (chosen.sum(axis=0) * 0.25).astype(np.float32)
        if not all(same(result, exact) for result in results):
            return f"a sum of {workers} workers' values of {bits} bits is wrong"
        power = 2.0 ** (levels + 1).bit_length()  # as large as values may be that are not in the next class
        given = [np.full(20 * LANES, power - 0.01, np.float32) for _ in range(workers)]
        if not within_levels(PoolRun(switch, workers, 1).all_reduce(given, bits=bits)[0], given, LANES, bits):
            return f"{workers} workers' largest values of {bits} bits do not fit"
    return None


def runs() -> Play:
    return partial(hunt, P4Switch(Program.load("serene")))


def test_unmodified_rules_pass_the_planted_fault_search(switch: P4Switch) -> None:
    assert hunt(switch) is None


test_format_runs_find_each_planted_fault = every_fault_is_found(runs, faults("number formats"))
