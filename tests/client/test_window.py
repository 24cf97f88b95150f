"""The send window and the retransmission timeout: bounds, AIMD, RFC 6298."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serene.client.protocol.window import (
    FIRST_TIMEOUT_S,
    LARGEST_WINDOW,
    LONGEST_TIMEOUT_S,
    SHORTEST_TIMEOUT_S,
    SMALLEST_WINDOW,
    RoundTrip,
    Window,
)


def test_window_grows_by_one_after_a_full_window() -> None:
    window = Window(32)
    for _ in range(32):
        window.answered(1)
    assert 32.9 < window.size <= 33


def test_window_halves_once_per_round_trip_of_losses() -> None:
    window = Window(64)
    window.lost(1.0, round_trip_s=0.1)
    window.lost(1.05, round_trip_s=0.1)
    assert window.size == 32
    window.lost(1.1, round_trip_s=0.1)
    assert window.size == 16


@given(st.lists(st.one_of(st.none(), st.integers(1, 1000)), max_size=200))
def test_window_size_stays_within_its_bounds(events: list[int | None]) -> None:
    window = Window()
    for now, slots in enumerate(events):
        if slots is None:
            window.lost(float(now), 0.5)
        else:
            window.answered(slots)
        assert SMALLEST_WINDOW <= window.size <= LARGEST_WINDOW


def test_retransmission_timeout_follows_rfc_6298() -> None:
    trip = RoundTrip()
    assert trip.timeout == FIRST_TIMEOUT_S
    trip.measured(0.04)
    assert trip.timeout == pytest.approx(0.04 + 4 * 0.02)
    trip.measured(0.08)
    assert trip.smoothed == pytest.approx(0.045)
    assert trip.variation == pytest.approx(0.025)
    assert trip.timeout == pytest.approx(0.145)


def test_timeout_doubles_up_to_its_bound_and_resets_on_progress() -> None:
    trip = RoundTrip()
    seen = []
    for _ in range(30):
        seen.append(trip.timeout)
        trip.timed_out()
    assert seen[:4] == [0.1, 0.2, 0.4, LONGEST_TIMEOUT_S]
    assert set(seen[3:]) == {LONGEST_TIMEOUT_S}
    trip.progressed()
    assert trip.timeout == FIRST_TIMEOUT_S


def test_timeout_has_a_lower_bound_on_fast_networks() -> None:
    trip = RoundTrip()
    for _ in range(100):
        trip.measured(1e-5)
    assert trip.timeout == SHORTEST_TIMEOUT_S
