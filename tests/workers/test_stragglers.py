"""Straggler profiles: reproducible, distributed as documented, and refused if impossible."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from serene.workers.stragglers import (
    PROFILES,
    BadStraggler,
    Failure,
    Heterogeneous,
    NoStraggler,
    SlowWorker,
    Straggler,
    check_workers,
    parse,
)

MEAN_S = 0.05
DRAWS = 20_000


def delays(profile: Straggler, worker: int = 0, seed: int = 1, count: int = DRAWS) -> np.ndarray:
    return np.array([profile.delay(worker, iteration, MEAN_S, seed) for iteration in range(1, count + 1)])


def test_slow_worker_delays_follow_stated_distribution() -> None:
    found = delays(SlowWorker())
    slow = found[found > 0]
    # Four standard errors: 15 % of 20,000, and the mean of a uniform distribution from 0.5 to 2 times 50 ms.
    assert len(slow) / DRAWS == pytest.approx(0.15, abs=4 * (0.15 * 0.85 / DRAWS) ** 0.5)
    assert slow.min() >= 0.5 * MEAN_S and slow.max() <= 2.0 * MEAN_S
    assert slow.mean() == pytest.approx(1.25 * MEAN_S, abs=4 * 1.5 * MEAN_S / 12**0.5 / len(slow) ** 0.5)
    quarters = np.histogram(slow, bins=4, range=(0.5 * MEAN_S, 2.0 * MEAN_S))[0] / len(slow)
    assert quarters == pytest.approx([0.25] * 4, abs=0.04)


def test_slow_iterations_of_workers_are_independent() -> None:
    first, second = (delays(SlowWorker(), worker) > 0 for worker in (0, 1))
    assert (first & second).mean() == pytest.approx(0.15**2, abs=0.006)


def test_straggler_delay_depends_only_on_its_arguments() -> None:
    profile = SlowWorker(probability=1.0)
    once = profile.delay(2, 7, MEAN_S, 1)
    profile.delay(0, 1, MEAN_S, 1)
    assert profile.delay(2, 7, MEAN_S, 1) == once
    assert profile.delay(2, 7, 2 * MEAN_S, 1) == pytest.approx(2 * once)
    others = {profile.delay(3, 7, MEAN_S, 1), profile.delay(2, 8, MEAN_S, 1), profile.delay(2, 7, MEAN_S, 2)}
    assert once not in others and len(others) == 3


def test_slow_worker_of_probability_1_delays_each_step_of_the_named_workers() -> None:
    profile = SlowWorker(probability=1.0, workers=(1, 3))
    assert [(delays(profile, worker, count=200) > 0).mean() for worker in range(4)] == [0, 1, 0, 1]


NEVER = [0.0] * 200


@pytest.mark.parametrize(
    ("profile", "worker", "expected"),
    [
        (NoStraggler(), 0, NEVER),
        (SlowWorker(probability=0.0), 0, NEVER),
        (Heterogeneous(factor=3.0, workers=(1,)), 1, [2 * MEAN_S] * 200),
        (Heterogeneous(factor=3.0, workers=(1,)), 0, NEVER),
        (Failure(worker=2, iteration=10, pause_s=4.0), 2, [*NEVER[:9], 4.0, *NEVER[10:]]),
        (Failure(worker=2, iteration=10, pause_s=4.0), 1, NEVER),
    ],
)
def test_profile_without_chance_delays_exactly_these_steps(
    profile: Straggler, worker: int, expected: list[float]
) -> None:
    assert delays(profile, worker, count=200).tolist() == expected


@pytest.mark.parametrize(
    ("text", "profile"),
    [
        ("none", NoStraggler()),
        ("slow_worker", SlowWorker()),
        (
            "slow_worker:probability=0.3,low=1,high=4,workers=0+2",
            SlowWorker(probability=0.3, low=1.0, high=4.0, workers=(0, 2)),
        ),
        (" heterogeneous:factor=1.5,workers=3 ", Heterogeneous(factor=1.5, workers=(3,))),
        ("failure:worker=1,iteration=20,pause_s=0.5", Failure(worker=1, iteration=20, pause_s=0.5)),
    ],
)
def test_straggler_text_parses_to_its_profile(text: str, profile: Straggler) -> None:
    assert parse(text) == profile


def recorded(file: Path, text: str, encoding: str = "utf-8") -> str:
    file.write_text("worker,iteration,factor\n" + text, encoding)
    return f"trace:{file}"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_recorded_factor_holds_until_the_workers_next_one(tmp_path: Path, encoding: str) -> None:
    profile = parse(recorded(tmp_path / "delays.csv", "1,30,1\n1,10,3\n0,1,1.5\n", encoding))
    assert [delays(profile, 1, count=40)[at - 1] for at in (9, 10, 29, 30)] == [0, 2 * MEAN_S, 2 * MEAN_S, 0]
    assert set(delays(profile, 0, count=40)) == {0.5 * MEAN_S}
    with pytest.raises(BadStraggler, match=r"trace names worker 1; there are workers 0 to 0"):
        check_workers(profile, 1)


@pytest.mark.parametrize(
    "text",
    ["", "0,1\n", "0,1,often\n", "0,0,2\n", "-1,1,2\n", "0,1,0.5\n", "0,1,nan\n", "0,1,2\n0,1,3\n", "\0"],
)
def test_bad_recording_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadStraggler, match=r"delays\.csv.*expected a CSV file with the columns worker, iteration"):
        parse(recorded(tmp_path / "delays.csv", text))


@pytest.mark.parametrize("name", sorted(set(PROFILES) - {"trace"}))
def test_straggler_profiles_are_hashable_and_comparable(name: str) -> None:
    profile = parse(name)
    check_workers(profile, 1)  # the defaults fit every job
    assert dataclasses.is_dataclass(profile) and hash(profile) == hash(parse(name))
