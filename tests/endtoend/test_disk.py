"""A run whose results cannot be written to its output folder."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests import disks
from tests.controller.processes import until
from tests.runs import Run, missing

STEPS = 30


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    lacking = missing(mininet=False)
    if lacking:
        pytest.skip(f"a local run needs {lacking}")
    with disks.disk(tmp_path / "small", "16m") as place:
        yield place


def test_run_writes_its_results_elsewhere_if_the_disk_fills(small: Path, tmp_path: Path) -> None:
    """Every step of every worker, and the replicas, are elsewhere, and the run prints where."""
    (tmp_path / "spare").mkdir()
    options = ("--no-mininet", "--workers", 2, "--steps", STEPS, "--compute-ms", 100)
    environment = {"TMPDIR": str(tmp_path / "spare")}
    training = Run(small / "runs" / "out", tmp_path / "log", *options, environment=environment)
    try:
        training.until_training(step=3)
        disks.fill(small)
        assert training.wait() == 1
        output = training.output
        assert "Traceback" not in output
        found = re.search(
            r"error: OUT: cannot write \S+: No space left on device; the results are written to (\S+) instead", output
        )
        assert found, output
        assert ": exactly once" in output, "the table is shown all the same"
        kept = Path(found[1])
        summary = json.loads((kept / "summary.json").read_text())
        assert summary["contributions_sent"] == summary["contributions_applied"] > 0
        with (kept / "metrics.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert sorted((int(row["worker"]), int(row["step"])) for row in rows) == [
            (worker, step) for worker in range(2) for step in range(1, STEPS + 1)
        ]
        replicas = [np.load(kept / f"parameters-{worker}.npy") for worker in range(2)]
        assert np.array_equal(*replicas)
        assert list((tmp_path / "spare").glob("serene-*")) == [kept], "nothing else stays"
        until(lambda: not training.alive(), "every process has ended")
        assert sorted(path.name for path in small.rglob("*")) == ["ballast", "runs"]
    finally:
        training.end()
