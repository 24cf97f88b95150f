"""The rule that names the slow worker, on the seeded runs of `serene.experiments.correctness.slow_ranks`."""

from __future__ import annotations

import base64
from dataclasses import replace

import numpy as np
import pytest

from serene.experiments.correctness.slow_ranks import KINDS, Plan, is_right, play
from serene.steps import LONGEST, MOST, SHORTEST_S, StepTimes, steps_in


@pytest.mark.parametrize("kind", [*KINDS, "nobody", "in turn"])
def test_the_slow_worker_is_named_and_nobody_else(kind: str) -> None:
    wrong = []
    for seed in range(8):
        plan = Plan.of(kind, seed)
        if not is_right(plan, named := play(plan, 60)):
            wrong.append(f"{plan}: {named}")
    assert wrong == []


def test_short_steps_are_compared_by_their_means() -> None:
    plan = replace(Plan.of("computing", 3), compute_s=0.004, way_s=0.0001, begins=0)
    named = play(plan, 500)
    assert named is not None and (named.worker, named.where) == (plan.slow, "computing")


def test_a_report_has_the_latest_steps() -> None:
    times = StepTimes()
    assert times.text() is None
    for number in range(100):
        times.add(number, 0.1 * SHORTEST_S, 0.2 * SHORTEST_S, 0.01 * number * SHORTEST_S, epoch=3)
    text = times.text()
    assert text is not None and len(text) <= 100
    steps = steps_in(text)
    assert steps is not None and (steps.epoch, steps.first, steps.each, len(steps.times)) == (3, 68, 4, MOST)
    means = [0.01 * (68 + 4 * row + 1.5) * SHORTEST_S for row in range(MOST)]
    np.testing.assert_allclose(steps.times[:, 2], means, rtol=1e-3)
    times.add(0, 70.0, 0.0, 0.0, epoch=4)
    steps = steps_in(times.text())
    assert steps is not None and (steps.epoch, steps.first, steps.each) == (4, 0, 1)


@pytest.mark.parametrize(
    "said",
    [
        None,
        7,
        "é",
        "AAAA",
        base64.b64encode(bytes(10)).decode(),
        base64.b64encode(bytes(16)).decode(),
        base64.b64encode(b"\0\0\0\0\1\0\0\0\2\0" + bytes(6)).decode(),
        base64.b64encode(bytes(8) + (2 * LONGEST).to_bytes(2, "little") + bytes(6)).decode(),
        base64.b64encode(bytes(8) + b"\1\0" + b"\0\x7c" * 3).decode(),
        base64.b64encode(bytes(8) + b"\1\0" + bytes(6 * (MOST + 1))).decode(),
    ],
    ids=[
        "nothing", "number", "no base64", "short", "no steps", "each is 0", "odd start", "too many", "infinite", "long",
    ],
)  # fmt: skip
def test_a_worker_may_report_anything(said: object) -> None:
    assert steps_in(said) is None
