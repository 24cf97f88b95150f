"""A whole training run over racks: BSP's bits through four leaves and a root."""

from __future__ import annotations

from pathlib import Path

import pytest

from serene.workers.reference import train
from serene.workers.training import Recipe
from tests.runs import finished

pytestmark = pytest.mark.mininet

SLOTS = 249  # 79,510 parameters in chunks of 320
PATIENCE_S = 300.0  # for three switches, a controller and four workers to come up on busy processors


def test_bsp_over_four_racks_is_bit_identical_to_one_process(target: str, tmp_path: Path) -> None:
    workers, steps = 6, 4
    run = finished(
        tmp_path, "--target", target, "--workers", workers, "--racks", 4, "--steps", steps, "--compute-ms", 0,
        "--seed", 1, "--link-mbit", 100, "--uplink-mbit", 50, patience_s=PATIENCE_S,
    )  # fmt: skip
    summary = run.summary()
    assert {name: summary[name] for name in ("target", "racks", "link_mbit", "uplink_mbit")} == {
        "target": target, "racks": 4, "link_mbit": 100, "uplink_mbit": 50,
    }  # fmt: skip
    assert f"through 4 {target} leaf switches and a root" in run.output
    assert summary["contributions_sent"] == summary["contributions_applied"] == workers * steps * SLOTS
    alone = train(Recipe(workers=workers, steps=steps, seed=1)).tobytes()
    assert [run.parameters(worker).tobytes() == alone for worker in range(workers)] == [True] * workers
