"""BSP -> SSP -> ASP -> BSP with `serenectl`, while a slow worker trains: nobody stuck, nothing lost or repeated."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from serene.controller.http.client import ControllerClient
from serene.strategy import ASP, BSP, SSP, Strategy
from tests.runs import Run, private_network

pytestmark = pytest.mark.mininet

WORKERS, STEPS, SLOTS = 4, 180, 249
SWAPS: list[tuple[int, Strategy]] = [(20, SSP(3)), (50, ASP()), (80, BSP())]  # when all have done so many steps


def test_strategies_change_while_a_slow_worker_trains(target: str, tmp_path: Path) -> None:
    with private_network():
        run = Run(
            tmp_path / "out", tmp_path / "log", "--target", target, "--workers", WORKERS, "--steps", STEPS,
            "--compute-ms", 20, "--straggler", "slow_worker:probability=0.5,workers=0",
        )  # fmt: skip
        try:
            with ControllerClient(run.until_training()) as controller:
                for step, strategy in SWAPS:
                    run.until_training(step)
                    controller.set_strategy(0, strategy)
            assert run.wait() == 0, run.output
        finally:
            run.end()
    summary = run.summary()
    assert summary["contributions_sent"] == summary["contributions_applied"] == WORKERS * STEPS * SLOTS
    assert summary["final_accuracy"] > 0.8

    told = summary["changes"]
    assert [entry["strategy"] for entry in told] == ["BSP", *(str(strategy) for _, strategy in SWAPS)]
    assert [entry["epoch"] for entry in told] == [1, 2, 3, 4]
    assert 0 == told[0]["t"] < told[1]["t"] < told[2]["t"] < told[3]["t"] < summary["wall_s"]

    for worker in range(WORKERS):
        rows = run.rows(worker)
        assert [int(row["step"]) for row in rows] == list(range(1, STEPS + 1))
        # Rounds count from 0 in each epoch, and nobody goes back to an older one.
        epochs = [(epoch, list(of_it)) for epoch, of_it in groupby(rows, key=lambda row: int(row["epoch"]))]
        assert [epoch for epoch, _ in epochs][:4] == [1, 2, 3, 4]  # one that leaves begins another
        assert [epoch for epoch, _ in epochs] == sorted({epoch for epoch, _ in epochs})
        for _, of_it in epochs:
            assert [int(row["round"]) for row in of_it] == list(range(len(of_it)))
    # At rest every replica is the sum of all contributions, up to the order of float32 additions.
    for worker in range(1, WORKERS):
        np.testing.assert_allclose(run.parameters(worker), run.parameters(0), atol=1e-4)
