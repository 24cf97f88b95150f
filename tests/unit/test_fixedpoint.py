"""Fixed point: the error bound, saturation, capacity."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from serene.errors import SereneError
from serene.fixedpoint import BadGradient, FixedPoint

gradients = arrays.arrays(np.float32, st.integers(1, 50), elements=st.floats(-20, 20, width=32))


@given(gradients, st.sampled_from([1, 1000, 2**20]))
def test_quantisation_error_is_at_most_half_a_unit(gradient: np.ndarray, scale: int) -> None:
    fixed = FixedPoint(scale, limit=8.0)
    values, clipped = fixed.quantise(gradient)
    inside = np.abs(gradient) <= 8
    assert clipped == np.count_nonzero(~inside)
    error = np.abs(values.astype(np.float64) / scale - gradient)
    assert (error[inside] <= 0.5 / scale).all()
    assert (np.abs(values) <= 8 * scale).all()


@given(gradients)
def test_quantise_round_trip_is_close_to_the_clipped_input(gradient: np.ndarray) -> None:
    fixed = FixedPoint()
    back = fixed.dequantise(fixed.quantise(gradient)[0])
    assert back.dtype == np.float32
    assert np.allclose(back, np.clip(gradient, -8, 8), atol=1e-6)


def test_fixed_point_capacity_fits_a_32_bit_difference() -> None:
    fixed = FixedPoint()
    assert fixed.capacity == 255
    worst = fixed.quantise(np.array([8.0], np.float32))[0].astype(np.int64)
    assert int(worst[0]) * fixed.capacity <= 2**31 - 1 < int(worst[0]) * (fixed.capacity + 1)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_quantise_refuses_nan_and_infinity(value: float) -> None:
    with pytest.raises(BadGradient, match="at index 1"):
        FixedPoint().quantise(np.array([0, value], np.float32))


@pytest.mark.parametrize(("scale", "limit"), [(0, 8), (-1, 8), (1, 0), (2**30, 8)])
def test_fixed_point_refuses_impossible_scale_and_limit(scale: int, limit: float) -> None:
    with pytest.raises(SereneError):
        FixedPoint(scale, limit)
