"""Whole training runs over racks: BSP's bits through four leaves and a root, and swaps to every kind of strategy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from serene.controller.http.client import ControllerClient
from serene.strategy import parse
from serene.workers.reference import train
from serene.workers.training import Recipe
from tests.runs import Run, interfaces, private_network

pytestmark = pytest.mark.mininet

SLOTS = 249  # 79,510 parameters in chunks of 320
PATIENCE_S = 300.0  # for three switches, a controller and four workers to come up on busy processors
SWAPS = ["ssp:3", "asp", "quorum:3", "mixed:1", "bsp"]


def test_bsp_over_four_racks_is_bit_identical_to_one_process(target: str, tmp_path: Path) -> None:
    workers, steps = 6, 15
    with private_network():
        run = Run(
            tmp_path / "out", tmp_path / "log", "--target", target, "--workers", workers, "--racks", 4,
            "--steps", steps, "--compute-ms", 0, "--seed", 1, "--link-mbit", 100, "--uplink-mbit", 50,
        )  # fmt: skip
        try:
            assert run.wait(PATIENCE_S) == 0, run.output
        finally:
            run.end()
        assert interfaces() == set() and run.alive() == {}
    summary = run.summary()
    assert {name: summary[name] for name in ("target", "racks", "link_mbit", "uplink_mbit")} == {
        "target": target, "racks": 4, "link_mbit": 100, "uplink_mbit": 50,
    }  # fmt: skip
    assert f"through 4 {target} leaf switches and a root" in run.output
    assert summary["contributions_sent"] == summary["contributions_applied"] == workers * steps * SLOTS
    alone = train(Recipe(workers=workers, steps=steps, seed=1)).tobytes()
    assert [run.parameters(worker).tobytes() == alone for worker in range(workers)] == [True] * workers


def test_every_contribution_is_counted_once_through_swaps_of_every_kind(target: str, tmp_path: Path) -> None:
    workers, steps = 4, 110
    with private_network():
        run = Run(
            tmp_path / "out", tmp_path / "log", "--target", target, "--workers", workers, "--racks", 2,
            "--steps", steps, "--compute-ms", 40, "--straggler", "slow_worker:probability=0.5,workers=0",
        )  # fmt: skip
        try:
            with ControllerClient(run.until_training(5, PATIENCE_S)) as controller:
                for number, strategy in enumerate(SWAPS):
                    run.until_training(6 + 12 * number, PATIENCE_S)
                    controller.set_strategy(0, parse(strategy))
            assert run.wait(PATIENCE_S) == 0, run.output
        finally:
            run.end()
        assert interfaces() == set() and run.alive() == {}
    summary = run.summary()
    assert summary["contributions_sent"] == summary["contributions_applied"] == workers * steps * SLOTS
    told = [entry["strategy"] for entry in summary["changes"]]
    assert len(told) == 1 + len(SWAPS) and told[0] == told[-1] == "BSP", told
    for worker in range(workers):
        assert [int(row["step"]) for row in run.rows(worker)] == list(range(1, steps + 1))
    # At rest every replica is the sum of all contributions, up to the order of float32 additions.
    for worker in range(1, workers):
        np.testing.assert_allclose(run.parameters(worker), run.parameters(0), atol=1e-4)
