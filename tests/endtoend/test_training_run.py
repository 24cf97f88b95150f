"""A whole training run on each target: its files, and BSP's bits."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import nullcontext
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from serene.workers.reference import train
from serene.workers.training import Recipe
from tests.runs import Run, missing, private_network

WORKERS, STEPS = 4, 18
SLOTS = 249  # 79,510 parameters in chunks of 320
NOBODY = "65534"
SUMMARY = {
    "target", "exchange", "workers", "model", "dataset", "batch_size", "learning_rate", "packets", "straggler",
    "steps", "compute_ms", "exchange_share", "wall_s", "seconds_to_accuracy", "initial_accuracy", "final_accuracy",
    "waiting_s", "strategy", "changes", "slots", "contributions_sent", "contributions_applied", "retransmissions",
    "clipped_values", "miscounted", "packets_sent", "packets_received", "events", "contributions_under_way", "stopped",
    "seed", "racks", "link_mbit", "uplink_mbit", "program", "data_dir", "faults", "mininet", "command", "version",
    "commit", "machine",
}  # fmt: skip


@cache
def reference() -> np.ndarray:
    """One process that sums the same quantised gradients."""
    return train(Recipe(workers=WORKERS, steps=STEPS, seed=1))


@pytest.fixture(
    scope="module",
    params=[
        "local",
        pytest.param("embedded", marks=pytest.mark.mininet),
        pytest.param("bmv2", marks=[pytest.mark.mininet, pytest.mark.bmv2]),
    ],
)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A short BSP run, finished: without Mininet, and in it on each switch."""
    mininet = request.param != "local"
    target = request.param if mininet else "embedded"
    lacking = missing(target, mininet=mininet)
    if lacking:
        pytest.skip(f"a {request.param} run needs {lacking}")
    where = tmp_path_factory.mktemp(request.param)
    (where / "bystander").touch()
    options = ["--target", target, "--workers", WORKERS, "--steps", STEPS, "--compute-ms", 0, "--seed", 1]
    options += [] if mininet else ["--no-mininet"]
    caller = {"SUDO_UID": NOBODY, "SUDO_GID": NOBODY} if os.geteuid() == 0 else {}
    with private_network() if mininet else nullcontext():
        training = Run(where / "out", where / "log", *options, environment=caller, warm=False)
        try:
            assert training.wait() == 0, training.output
            assert training.alive() == {}
            yield training
        finally:
            training.end()


def test_run_summary_records_requested_settings(run: Run, request: pytest.FixtureRequest) -> None:
    summary = run.summary()
    assert set(summary) == SUMMARY
    asked = {
        "workers": WORKERS, "steps": STEPS, "model": "mlp", "dataset": "digits", "batch_size": 32, "learning_rate": 0.1,
        "straggler": "none", "packets": "compiled",
    }  # fmt: skip
    assert {name: summary[name] for name in asked} == asked
    assert summary["target"] == ("bmv2" if "bmv2" in request.node.name else "embedded")
    assert f"through the {summary['target']} switch" in run.output
    assert (summary["strategy"], summary["changes"]) == ("bsp", [{"t": 0.0, "epoch": 1, "strategy": "BSP"}])


def test_run_loses_and_repeats_no_contribution(run: Run) -> None:
    summary = run.summary()
    assert summary["contributions_sent"] == summary["contributions_applied"] == WORKERS * STEPS * SLOTS
    assert min(summary["packets_sent"], summary["packets_received"]) >= summary["contributions_sent"]
    assert summary["clipped_values"] == 0


def test_training_run_reaches_sixty_percent_accuracy(run: Run) -> None:
    summary = run.summary()
    assert summary["initial_accuracy"] < 0.3
    assert summary["final_accuracy"] > 0.6
    reached = summary["seconds_to_accuracy"]
    assert 0 < reached["0.50"] <= summary["wall_s"] and reached["0.95"] is None


def test_bsp_run_is_bit_identical_to_one_process(run: Run) -> None:
    for worker in range(WORKERS):
        parameters = run.parameters(worker)
        assert parameters.dtype == np.float32
        assert parameters.tobytes() == reference().tobytes()


def test_run_writes_a_row_for_every_step_of_every_worker(run: Run) -> None:
    for worker in range(WORKERS):
        rows = run.rows(worker)
        assert [int(row["step"]) for row in rows] == list(range(1, STEPS + 1))
        assert [int(row["round"]) for row in rows] == list(range(STEPS))
        assert {int(row["epoch"]) for row in rows} == {1}
        assert {int(row["contributions"]) for row in rows} == {WORKERS}
        times = [float(row["t_s"]) for row in rows]
        assert times == sorted(times)
        assert times[0] >= 0 and times[-1] <= run.summary()["wall_s"] + 0.01


def test_run_times_add_up(run: Run) -> None:
    summary = run.summary()
    for worker in range(WORKERS):
        waited = sum(float(row["waiting_s"]) for row in run.rows(worker))
        assert summary["waiting_s"][worker] == pytest.approx(waited, abs=0.01)
        parts = sum(float(row[name]) for row in run.rows(worker) for name in ("compute_s", "network_s", "waiting_s"))
        assert parts <= summary["wall_s"]
    height, width, _ = imread(run.out / "accuracy.png").shape
    assert height > 500 and width > 800


def test_run_leaves_only_its_results(run: Run) -> None:
    assert {path.name for path in run.out.parent.iterdir()} == {"out", "log", "bystander"}
    for worker in range(WORKERS):
        assert json.loads((run.out / f"worker-{worker}.json").read_text())["worker"] == worker


def test_run_results_belong_to_the_user_behind_sudo(run: Run) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    assert {path.stat().st_uid for path in (run.out, *run.out.rglob("*"))} == {int(NOBODY)}
    bystander: Path = run.out.parent / "bystander"
    assert bystander.stat().st_uid == 0, "a file that the run did not make changed hands"
