"""Live swaps in whole runs, at one switch and over racks: nothing is lost, and the results describe them correctly."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from serene.controller.http.client import ControllerClient
from serene.strategy import parse
from tests.runs import MODEL, SLOTS, Run, finished
from tests.topologies.conftest import on_bmv2

pytestmark = pytest.mark.mininet

WORKERS, STEPS = 4, 70
EACH = 5  # steps of the fastest worker between two swaps: after the last one as many are left as take seconds
PATIENCE_S = 300.0  # for three switches, a controller and four workers to come up on busy processors
SWAPS = ["ssp:3", "asp", "quorum:3", "mixed:1", "bsp"]


def swap(run: Run) -> None:
    with ControllerClient(run.until_training(EACH, PATIENCE_S)) as controller:
        for number, strategy in enumerate(SWAPS, 1):
            run.until_training(EACH * number, PATIENCE_S, max)  # the slowest may be any number of steps behind
            controller.set_strategy(0, parse(strategy))


@pytest.mark.parametrize(
    ("target", "racks"), [on_bmv2(1, otherwise=True), ("embedded", 2), on_bmv2(2)], indirect=["target"]
)
def test_live_swaps_with_a_slow_worker_lose_nothing(target: str, racks: int, tmp_path: Path) -> None:
    run = finished(
        tmp_path, "--target", target, "--workers", WORKERS, "--racks", racks, "--steps", STEPS, "--compute-ms", 60,
        "--model", MODEL[target], "--straggler", "slow_worker:probability=0.5,workers=0",
        patience_s=PATIENCE_S, meanwhile=swap,
    )  # fmt: skip
    summary = run.summary()
    assert summary["contributions_sent"] == summary["contributions_applied"] == WORKERS * STEPS * SLOTS[target]
    assert run.best_accuracy() > 0.8

    changes = summary["changes"]
    assert [entry["strategy"] for entry in changes] == ["BSP", *(str(parse(strategy)) for strategy in SWAPS)]
    assert [entry["epoch"] for entry in changes] == list(range(1, 2 + len(SWAPS)))
    times = [entry["t"] for entry in changes]
    assert times[0] == 0 and times == sorted({*times}) and times[-1] < summary["wall_s"]

    for worker in range(WORKERS):
        rows = run.rows(worker)
        assert [int(row["step"]) for row in rows] == list(range(1, STEPS + 1))
        # Rounds count from 0 in each epoch, and nobody goes back to an older one.
        epochs = [(epoch, list(of_it)) for epoch, of_it in groupby(rows, key=lambda row: int(row["epoch"]))]
        assert [epoch for epoch, _ in epochs] == sorted({epoch for epoch, _ in epochs})
        assert {1, 1 + len(SWAPS)} <= {epoch for epoch, _ in epochs}  # what was in force first and last
        for _, of_it in epochs:
            assert [int(row["round"]) for row in of_it] == list(range(len(of_it)))
    # At rest every replica is the sum of all contributions, up to the order of float32 additions.
    for worker in range(1, WORKERS):
        np.testing.assert_allclose(run.parameters(worker), run.parameters(0), atol=1e-4)
