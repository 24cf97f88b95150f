"""Runs that end only if they are stopped, and what they leave."""

from __future__ import annotations

import hashlib
import platform

from tests.runs import Run

WORKERS, COMPUTE_MS = 2, 20
ENDLESS = ("--target", "embedded", "--workers", WORKERS, "--steps", 10_000, "--compute-ms", COMPUTE_MS)
SLOTS = 249  # of the MLP for digits


def check_results(run: Run, steps: int, program: str = "serene") -> None:
    """Checks the results of a stopped run, whose workers had done so many steps or more."""
    assert "Traceback" not in run.output
    assert "stopped before all steps were done" in run.output
    summary = run.summary()
    assert summary["stopped"]
    assert 0 < summary["contributions_sent"] <= summary["contributions_applied"]
    assert summary["contributions_applied"] <= summary["contributions_sent"] + summary["contributions_under_way"]
    assert summary["contributions_under_way"] == SLOTS * WORKERS
    assert (summary["seed"], summary["compute_ms"], summary["program"]) == (1, COMPUTE_MS, program)
    assert summary["command"].startswith("python -m serene.experiments.run --out ")
    assert summary["version"] and summary["machine"]["python"] == platform.python_version()
    assert (run.out / "accuracy.png").exists()
    for worker in range(WORKERS):
        left = run.worker(worker)
        assert left["steps"] >= steps
        assert [int(row["step"]) for row in run.rows(worker)] == list(range(1, left["steps"] + 1))
        assert hashlib.sha256(run.parameters(worker).tobytes()).hexdigest() == left["parameters_sha256"]
