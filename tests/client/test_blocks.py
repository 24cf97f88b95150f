"""Block exponents: workers' counters, and the resulting sums, compared with sums in float64."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serene.client.allreduce.blocks import (
    NONE,
    Layout,
    add_specials,
    count_specials,
    dequantise,
    largest_of,
    quantise,
)
from serene.errors import SereneError
from tests.support.numbers import expected, random_values, same, within_bound

LANES = 20
CLASSES = 64  # of finite values, in 32 bits
FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)
ANY = st.floats(width=32)


def reduce(vectors: list[np.ndarray], lanes: int = LANES) -> np.ndarray:
    """Sums as pools do, with addition modulo 2**32 in place of the switch."""
    layout = Layout(len(vectors), lanes)
    result = np.zeros(len(vectors[0]), np.float32)
    group = layout.blocks_per_piece * layout.values_per_block
    for first in range(0, len(result), group):
        counters = sum((layout.count(vector[first : first + group]) for vector in vectors), np.uint32(0))
        for block, (highest, not_finite) in enumerate(layout.classes(counters)):
            part = slice(first + block * layout.values_per_block, first + (block + 1) * layout.values_per_block)
            if highest != NONE:
                shift = layout.shift(highest)
                sums = sum((quantise(vector[part], shift).view(np.uint32) for vector in vectors), np.uint32(0))
                result[part] = dequantise(sums.view(np.int32), shift)
            if not_finite:
                add_specials(result[part], sum((count_specials(vector[part]) for vector in vectors), np.int32(0)))
    return result


def classify(values: np.ndarray) -> tuple[int, bool]:
    largest, not_finite = largest_of(values)
    return Layout(4, 320).class_of(largest), not_finite


def columns(of: st.SearchStrategy[float]) -> st.SearchStrategy[list[list[float]]]:
    sizes = st.tuples(st.integers(1, 32), st.integers(1, 70))
    return sizes.flatmap(
        lambda size: st.lists(st.lists(of, min_size=size[1], max_size=size[1]), min_size=size[0], max_size=size[0])
    )


@settings(max_examples=100, deadline=None)
@given(columns(FINITE))
def test_finite_block_sums_are_within_the_error_bound(rows: list[list[float]]) -> None:
    vectors = [np.array(row, np.float32) for row in rows]
    result = reduce(vectors)
    assert within_bound(result, vectors, LANES)
    assert same(result, expected(vectors, LANES))


@settings(max_examples=100, deadline=None)
@given(columns(ANY))
def test_sums_of_nonfinite_values_follow_ieee_754(rows: list[list[float]]) -> None:
    vectors = [np.array(row, np.float32) for row in rows]
    result = reduce(vectors)
    with np.errstate(all="ignore"):
        exact = np.sum([vector.astype(np.float64) for vector in vectors], axis=0)
    specials = ~np.all([np.isfinite(vector) for vector in vectors], axis=0)
    assert same(result[specials], exact[specials].astype(np.float32))
    assert same(result, expected(vectors, LANES))


@pytest.mark.parametrize("workers", range(1, 33))
def test_block_sums_match_the_oracle_for_mixed_values(workers: int) -> None:
    rng = np.random.default_rng(workers)
    vectors = [random_values(rng, 2000, LANES) for _ in range(workers)]
    assert same(reduce(vectors), expected(vectors, LANES))


@pytest.mark.parametrize("workers", range(1, 33))
def test_class_counters_of_all_workers_do_not_carry(workers: int) -> None:
    layout = Layout(workers, 320)
    for highest in range(CLASSES):
        value = np.array([2.0 ** (4 * highest - 125), np.inf], np.float32)
        assert classify(value) == (highest, True)
        assert layout.classes(workers * layout.count(value))[:2] == [(highest, True), (NONE, False)]


@pytest.mark.parametrize("workers", range(1, 33))
def test_largest_values_of_each_class_sum_within_31_bits(workers: int) -> None:
    layout = Layout(workers, 320)
    for highest in range(CLASSES):
        largest = np.nextafter(np.float32(min(2.0 ** (4 * highest - 123), 2.0**127 * 1.99)), np.float32(0))
        value = np.array([largest, -largest], np.float32)
        shift = layout.shift(classify(value)[0])
        assert np.abs(quantise(value, shift).astype(np.int64) * workers).max() < 2**31


@pytest.mark.parametrize("workers", [1, 2, 32])
def test_lowest_exponent_class_sums_exactly(workers: int) -> None:
    bits = np.random.default_rng(1).integers(0, 1 << 25, size=(workers, 500)).astype(np.uint32)
    vectors = [row.view(np.float32) for row in bits]
    exact = np.sum([vector.astype(np.float64) for vector in vectors], axis=0)
    assert same(reduce(vectors), exact.astype(np.float32))


def test_classify_returns_the_class_of_the_largest_magnitude() -> None:
    tiny, huge = np.finfo(np.float32).smallest_subnormal, np.finfo(np.float32).max
    assert classify(np.array([0.0, -0.0], np.float32)) == (NONE, False)
    assert classify(np.array([0.0, -tiny], np.float32)) == (0, False)
    assert classify(np.array([1.0, -huge], np.float32)) == (CLASSES - 1, False)
    assert classify(np.array([np.nan, -1.0], np.float32)) == (
        classify(np.ones(1, np.float32))[0],
        True,
    )
    assert classify(np.array([np.inf, 0.0], np.float32)) == (NONE, True)
    assert classify(np.zeros(0, np.float32)) == (NONE, False)


def test_exponent_pieces_are_about_one_percent_of_all() -> None:
    for workers in range(2, 33):
        layout = Layout(workers, 320)
        assert 1 / (4 * layout.blocks_per_piece) <= 0.011


def test_layout_refuses_slots_too_short_for_exponents() -> None:
    with pytest.raises(SereneError, match="5 lanes per slot are too few for 4 workers"):
        Layout(4, 5)
