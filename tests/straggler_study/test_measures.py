"""Measures computed from hand-made traces."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from serene.experiments.straggler_study.cell import Cell
from serene.experiments.straggler_study.measures import SMOOTHING, curve, numbers, row
from serene.experiments.straggler_study.study import Spread
from serene.experiments.straggler_study.trace import STEP, Swap, Trace

NAN = float("nan")


def trace(accuracies: list[float], *, workers: int = 1, step_s: float = 2.0, waited: float = 0.5) -> Trace:
    """Every worker has these accuracies, one a step."""
    rows = [
        (worker, step, (step - 1) * step_s, (step - 1) * step_s + 1, step * step_s, waited, 1, 4, 0.0, accuracy)
        for step, accuracy in enumerate(accuracies, 1)
        for worker in range(workers)
    ]
    cell = Cell(model="softmax", workers=workers, steps=len(accuracies))
    return Trace(cell, np.array(rows, STEP), np.zeros((workers, 16)), (Swap(0.0, "BSP"),), 0.0)


def test_target_time_is_interpolated_between_evaluations() -> None:
    steady = trace([0.5] * SMOOTHING + [1.0] * SMOOTHING)
    found = numbers(steady, 0.75)
    # The mean over three evaluations passes 0.75 half-way between 2/3 and 5/6 of the way from 0.5 to 1.
    assert found.target_steps == pytest.approx(SMOOTHING + 1.5)
    assert found.target_s == pytest.approx(2 * found.target_steps)


def test_accuracy_begins_at_that_before_training() -> None:
    found = curve(replace(trace([0.6]), initial_accuracy=0.3))
    assert found.accuracy.tolist() == pytest.approx([0.3, 0.4])


def test_row_of_a_run_has_its_swaps_and_the_times_up_to_its_target() -> None:
    one = trace([0.5] * SMOOTHING)
    swaps = (Swap(0.0, "BSP"), Swap(1.0, "ASP"))
    found = row(replace(one, cell=replace(one.cell, until=0.5), swaps=swaps))
    assert (found["swaps"], found["s_to_0.50"], found["s_to_until"], found["s_to_0.60"]) == (1, 6.0, 6.0, "")


def test_one_high_evaluation_does_not_reach_the_target() -> None:
    assert np.isnan(numbers(trace([0.5, 0.5, 0.5, 1.0, 0.5, 0.5]), 0.7).target_s)


def test_step_time_splits_into_compute_network_and_waiting() -> None:
    found = numbers(trace([NAN, NAN, 0.5], workers=2), 0.4)
    assert (found.step_s, found.compute_s, found.network_s, found.waiting_s) == pytest.approx((2, 1, 0.5, 0.5))
    assert found.waited_s.tolist() == [1.5, 1.5]


def test_measures_ignore_steps_after_first_worker_finishes() -> None:
    rows = trace([0.5] * 4, workers=2).steps
    slow = rows["worker"] == 1
    for name in ("began", "pushed", "ended"):
        rows[name][slow] *= 2
    late = Trace(Cell(model="softmax", workers=2, steps=4), rows[np.argsort(rows["ended"])], np.zeros((2, 16)), (), 0.0)
    assert numbers(late, 0.4).step_s == pytest.approx(8 / ((4 + 2) / 2))


def test_accuracy_curve_counts_steps_of_all_workers() -> None:
    found = curve(trace([0.2, 0.4, 0.6], workers=2))
    assert found.steps.tolist() == [0, 0.5, 1, 1.5, 2, 2.5, 3]
    assert found.accuracy[-1] == pytest.approx(0.4)


def test_run_that_misses_the_target_sorts_as_slowest() -> None:
    spread = Spread.of([1.0, NAN, 3.0])
    assert (spread.middle, spread.low, spread.high) == (3.0, 1.0, np.inf)
    assert spread.text() == "3.0 [1.0, never]"
    assert Spread.of([1.0, NAN, NAN]).percent() == "not reached"
    assert Spread.of([-0.1, 0.2, 0.1]).percent() == "+10.0 % [-10.0, +20.0]"
