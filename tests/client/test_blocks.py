"""Block exponents: classes of magnitudes and workers' counters. Sums are compared with float64 in test_sums.py."""

from __future__ import annotations

import numpy as np
import pytest

from serene.client.allreduce.blocks import NONE, Layout, largest_of, quantise
from serene.errors import SereneError

CLASSES = 64  # of finite values, in 32 bits


def classify(values: np.ndarray) -> tuple[int, bool]:
    largest, not_finite = largest_of(values)
    return Layout(4, 320).class_of(largest), not_finite


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
