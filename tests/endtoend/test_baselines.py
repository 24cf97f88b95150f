"""Baselines in Mininet: the same bits as through the switch, nothing left behind, and a dead server is an error."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from serene.workers.reference import train
from serene.workers.training import Recipe
from tests.controller.processes import until
from tests.runs import Run, finished, missing

WORKERS, STEPS = 2, 4


@pytest.mark.mininet
def test_baseline_over_racks_equals_one_process_to_the_bit(tmp_path: Path) -> None:
    """tests/workers has the other baselines, test_emulated_cell.py those in one rack."""
    if lacking := missing(None):
        pytest.skip(f"a baseline in Mininet needs {lacking}")
    training = finished(
        tmp_path, "--exchange", "sharded", "--workers", WORKERS, "--steps", STEPS, "--compute-ms", 0,
        "--link-mbit", 100, "--racks", 2, "--uplink-mbit", 50,
    )  # fmt: skip
    expected = train(Recipe(workers=WORKERS, steps=STEPS, seed=1))
    for worker in range(WORKERS):
        assert training.parameters(worker).tobytes() == expected.tobytes()
    summary = training.summary()
    assert (summary["exchange"], summary["target"], summary["racks"]) == ("sharded", "bridge", 2)
    assert ", 2 racks)" in training.output
    assert {path.name for path in tmp_path.iterdir()} == {"out", "log"}


def test_killed_server_ends_the_run_with_an_error(tmp_path: Path) -> None:
    options = ["--exchange", "sharded", "--workers", WORKERS, "--steps", 100_000, "--compute-ms", 5, "--no-mininet"]
    training = Run(tmp_path / "out", tmp_path / "log", *options)
    try:

        def trains() -> bool:
            assert training.process.poll() is None, training.output
            rows = [path.read_bytes().count(b"\n") for path in tmp_path.glob(".run-*/worker-*.csv")]
            return len(rows) == WORKERS and min(rows) > 2

        until(trains, "the workers train")
        os.kill(training.find("server-1:"), signal.SIGKILL)
        assert training.wait() == 1
        assert "error: " in training.output and "ended with status" in training.output
        until(lambda: not training.alive(), "all is gone")
        assert not (tmp_path / "out").exists()
    finally:
        training.end()
