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
@pytest.mark.parametrize(("exchange", "racks"), [("server", 1), ("sharded", 2), ("gloo", 1)])
def test_baseline_in_mininet_equals_one_process_to_the_bit(exchange: str, racks: int, tmp_path: Path) -> None:
    lacking = missing(None)
    if lacking:
        pytest.skip(f"a baseline in Mininet needs {lacking}")
    options = ["--exchange", exchange, "--workers", WORKERS, "--steps", STEPS, "--compute-ms", 0, "--link-mbit", 100]
    over = ["--racks", racks, "--uplink-mbit", 50] if racks > 1 else []
    training = finished(tmp_path, *options, *over)
    expected = train(Recipe(workers=WORKERS, steps=STEPS, seed=1))
    for worker in range(WORKERS):
        assert training.parameters(worker).tobytes() == expected.tobytes()
    summary = training.summary()
    assert (summary["exchange"], summary["target"], summary["racks"]) == (exchange, "bridge", racks)
    assert (f", {racks} racks)" in training.output) == (racks > 1)
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
