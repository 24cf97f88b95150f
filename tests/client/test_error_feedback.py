"""Error feedback: what a worker sends plus its residual equals its gradients, to the bit.

One worker alone reads what it has sent; several read the sum of it. The oracle is exact: fractions.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from serene.client import Pool
from serene.client.allreduce.blocks import Layout, add_to_held, hold_back
from serene.experiments.correctness.virtual.switch import P4Switch
from serene.faults import Faults
from serene.program import Program
from tests.planted import Play, every_fault_is_found, faults
from tests.support.numbers import exactly, same
from tests.support.pools import FINE, PoolRun, lossy

LANES = 320
STEPS = [8, 8, 32, 16, 8, 8, 16, 32, 8]
NARROW = [8, 8, 16, 8, 8, 16, 8]  # sums of 32 bits are rounded once more, to float32, when they are read


def gradients(workers: int, length: int, seed: int = 0) -> list[list[np.ndarray]]:
    """By step and worker: normal, of magnitudes that differ from place to place and from step to step."""
    rng = np.random.default_rng([workers, length, seed])
    places = np.float32(10.0) ** rng.integers(-3, 3, size=length).astype(np.float32)
    return [
        [
            (rng.normal(size=length) * 10.0 ** rng.integers(-2, 2)).astype(np.float32) * places
            for _ in range(workers)
        ]
        for _ in STEPS
    ]  # fmt: skip


def play(
    switch: P4Switch, workers: int, length: int, faults: Faults = FINE, steps: Sequence[int] = tuple(NARROW)
) -> float:
    """Returns the difference between all reads plus residuals and all inputs."""
    given, run = gradients(workers, length)[: len(steps)], PoolRun(switch, workers, 6, faults)
    held = [np.zeros(length) for _ in range(workers)]
    results = [[vector.copy() for vector in step] for step in given]

    def live(worker: int, pool: Pool) -> None:
        for bits, step in zip(steps, results, strict=True):
            pool.all_reduce(step[worker], bits=bits, residual=held[worker])

    run.play(live)
    assert not run.errors
    assert all(same(vector, step[0]) for step in results for vector in step)
    before, after = exactly([vector for step in given for vector in step]), exactly([*[s[0] for s in results], *held])
    return float(max(abs(one - other) for one, other in zip(before, after, strict=True)))


@pytest.mark.parametrize("length", [1, LANES, 16 * LANES + 5])
@pytest.mark.parametrize("workers", [1, 3])
def test_error_feedback_loses_nothing_across_formats(switch: P4Switch, workers: int, length: int) -> None:
    assert play(switch, workers, length, lossy(2)) == 0
    largest = max(float(np.abs(vector).max()) for step in gradients(workers, length) for vector in step)
    assert play(switch, workers, length, lossy(3), STEPS) <= STEPS.count(32) * workers * largest * 2.0**-24


@pytest.mark.parametrize("bits", [32, 16, 8])
@pytest.mark.parametrize("workers", [1, 2, 4, 32])
def test_sent_integers_plus_residual_equal_the_input_exactly(workers: int, bits: int) -> None:
    """In each format the residual is less than half of what the integers hold."""
    layout, rng = Layout(workers, LANES, bits), np.random.default_rng(bits)
    values = (rng.normal(size=2000) * 10.0 ** rng.integers(-8, 1, size=2000)).astype(np.float32)
    held = np.zeros(len(values))
    assert add_to_held(values, held, layout.held_limit) == 0
    top = layout.class_of(float(np.abs(held).max()))
    per_unit = layout.levels_per_unit(top) if bits != 32 else 2.0 ** layout.shift(top)
    most = layout.levels if bits != 32 else layout.highest
    sent = hold_back(held, per_unit, most)
    assert np.abs(sent.astype(np.int64)).max() <= most
    assert np.abs(held).max() <= 0.5 / per_unit
    assert [Fraction(float(v)) for v in values] == [
        Fraction(int(q)) / Fraction(per_unit) + Fraction(float(r)) for q, r in zip(sent, held, strict=True)
    ]


def test_error_feedback_delivers_small_gradients_in_time(switch: P4Switch) -> None:
    """Each is less than half a level of its block: rounded to nearest without a residual, it would never arrive."""
    small, steps = np.full(5 * LANES, 1e-3, np.float32), 200
    small[0] = 1.0
    run, total, held = PoolRun(switch, 1, 6), np.zeros(len(small)), np.zeros(len(small))

    def live(worker: int, pool: Pool) -> None:
        for _ in range(steps):
            values = small.copy()
            pool.all_reduce(values, bits=8, residual=held)
            total[:] += values

    run.play(live)
    assert not run.errors
    assert np.abs(total - steps * small.astype(np.float64)).max() <= 0.5 / 64
    assert total[1] > 0


def test_nonfinite_values_leave_no_residual(switch: P4Switch) -> None:
    run, values, held = PoolRun(switch, 1, 4), np.ones(5000, np.float32), np.full(5000, 0.25)
    values[7], values[9] = np.nan, np.inf
    run.play(lambda worker, pool: pool.all_reduce(values, bits=8, residual=held))
    assert not run.errors
    assert np.isfinite(held).all() and np.isnan(values[7]) and values[9] == np.inf


def runs() -> Play:
    switch = P4Switch(Program.load("serene"))
    return lambda _: "something is lost" if play(switch, 2, 700) > 0 else None


test_error_feedback_runs_find_each_planted_fault = every_fault_is_found(runs, faults("error feedback"))
