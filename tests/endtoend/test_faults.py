"""Whole runs on each target with a bad network, and with processes that are killed: every gradient counts once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.runs import MODEL, Run, finished

pytestmark = pytest.mark.mininet

WORKERS, STEPS = 3, 50
FAULTS = """
seed = 7

[[packets]]
workers = [0]
direction = "to_worker"
kinds = ["ANSWER", "RELEASE"]
loss = 0.03

[[packets]]
loss = 0.01
duplication = 0.01
reordering = 0.01

[[events]]
iteration = 8
action = "restart switch"

[[events]]
iteration = 14
action = "pause worker"
worker = 2

[[events]]
iteration = 20
action = "restart controller"
"""  # the last one is what training goes on without


def test_run_survives_bad_links_and_restarts(target: str, tmp_path: Path) -> None:
    (tmp_path / "faults.toml").write_text(FAULTS)
    run = finished(
        tmp_path, "--target", target, "--workers", WORKERS, "--steps", STEPS, "--compute-ms", 100,
        "--model", MODEL[target], "--faults", tmp_path / "faults.toml",
    )  # fmt: skip
    summary = run.summary()
    assert [event["event"].rpartition(" at")[0] for event in summary["events"]] == [
        "restart switch",
        "pause worker 2",
        "restart controller",
    ]
    assert "lost" in summary["links"]
    # Of the last session: what was contributed to the lost one came back in its first two rounds.
    assert summary["contributions_sent"] == summary["contributions_applied"]
    assert summary["final_accuracy"] > 0.8
    for worker in range(WORKERS):
        # Each step once; one whose answer was lost with the session, and which the donor had, is not done again.
        steps = [int(row["step"]) for row in run.rows(worker)]
        assert steps == sorted(set(steps)) and steps[-1] == STEPS and len(steps) >= STEPS - 1
        assert run.worker(worker)["sessions_lost"] == 1
        assert run.worker(worker)["contributions_lost"] == run.worker(worker)["iterations_repeated"] == 0, "BSP"
        np.testing.assert_allclose(run.parameters(worker), run.parameters(0), atol=1e-4)


def test_fault_times_count_from_the_workers_start(tmp_path: Path) -> None:
    """However long the network and the controller took to start."""
    (tmp_path / "faults.toml").write_text('[[packets]]\nkinds = ["HELLO"]\nduplication = 1\nend_s = 0.5\n')
    run = finished(
        tmp_path, "--target", "embedded", "--workers", 1, "--steps", 2, "--compute-ms", 0,
        "--faults", tmp_path / "faults.toml",
    )  # fmt: skip
    assert " 0 repeated" not in run.summary()["links"]


def test_run_refuses_a_bad_fault_file(tmp_path: Path) -> None:
    (tmp_path / "faults.toml").write_text('[[events]]\niteration = 1\naction = "restart router"\n')
    run = Run(tmp_path / "out", tmp_path / "log", "--faults", tmp_path / "faults.toml")
    try:
        assert run.wait() == 2
    finally:
        run.end()
    assert "expected" in run.output and '"restart switch"' in run.output
    assert not run.out.exists()
