"""Checks of what a stopped run leaves."""

from __future__ import annotations

import platform

from tests.runs import Run

SLOTS = 249  # of the MLP for digits


def is_kept(run: Run, workers: int) -> None:
    """Checks that a stopped run leaves these files, and no others."""
    assert list(run.out.parent.iterdir()) == [run.out]
    assert "Traceback" not in run.output
    assert "stopped before all steps were done" in run.output
    summary = run.summary()
    assert summary["stopped"]
    assert 0 < summary["contributions_sent"] <= summary["contributions_applied"]
    assert summary["contributions_applied"] <= summary["contributions_sent"] + summary["contributions_under_way"]
    assert summary["contributions_under_way"] == SLOTS * workers
    assert (summary["seed"], summary["compute_ms"], summary["program"]) == (1, 20.0, "serene")
    assert summary["command"].startswith("python -m serene.experiments.run --out ")
    assert summary["version"] and summary["machine"]["python"] == platform.python_version()
    assert (run.out / "accuracy.png").exists()
    assert len(run.rows(0)) >= 2
    for worker in range(workers):
        assert [int(row["step"]) for row in run.rows(worker)] == list(range(1, run.worker(worker)["steps"] + 1))
