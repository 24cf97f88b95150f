"""Runs that make each other slower are not run side by side."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from serene.experiments.shared.clusters import Cluster
from serene.experiments.shared.measurements import Row, read
from serene.experiments.straggler_study import grid, side_by_side
from serene.experiments.straggler_study.cell import Cell
from serene.experiments.straggler_study.grid import Together
from serene.experiments.straggler_study.side_by_side import FILE, Copies, agree, planned, rows
from serene.experiments.straggler_study.sweep import BMV2, LIGHT
from tests.straggler_study.studies import trace


def copies(share: float, kind: str, *step_s: float, failed: str = "") -> Row:
    row = {"step_s": list(step_s), "stalled": 0.1, "load": 1.0, "failed": failed}
    return {**asdict(Copies.of(share, kind, len(step_s))), **row}


MEASURED = [
    copies(0.05, LIGHT, 0.100),
    copies(0.05, LIGHT, 0.102, 0.104, 0.103, 0.2, 0.101, 0.100),
    copies(0.05, LIGHT, *(0.100,) * 3, *(0.200,) * 5),
    copies(0.65, LIGHT, 0.100),
    copies(0.65, LIGHT, 0.150, 0.150, 0.150),
    copies(0.65, LIGHT, 0.106, 0.107),
    copies(0.65, BMV2, 0.100),
    copies(0.65, BMV2, 0.100, 0.100, failed="RunFailed: the run ended with status 1"),
]


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processors, and everything installed."""
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(grid, "why_not", lambda _: "")


class InThisProcess(Cluster):
    """Where what a test has put in the place of a run is run, too."""

    @contextmanager
    def executor(self, processes: int, scratch: Path, preload: tuple[str, ...] = ()) -> Iterator[Executor]:
        with ThreadPoolExecutor(processes) as threads:
            yield threads


def quiet() -> Console:
    return Console(file=StringIO())


@pytest.mark.usefixtures("two")
def test_side_by_side_counts_runs_that_do_not_disturb_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a refusal three quarters of the number are tried."""
    monkeypatch.setattr(side_by_side, "_run", None)  # all of it was measured before
    wanted = {0.05: Together(8, 1), 0.65: Together(3, 1)}
    (tmp_path / FILE).write_text(json.dumps(MEASURED))
    left = tmp_path / ".copies-killed"
    left.mkdir()
    chosen = agree(wanted, tmp_path, quiet())
    assert chosen == {(0.05, LIGHT): 6, (0.05, BMV2): 1, (0.65, LIGHT): 1, (0.65, BMV2): 1}
    verdicts = [row[-1] for row in rows(MEASURED)[1]]
    assert verdicts == ["", "done", "refused", "", "refused", "refused", "", "refused"]
    assert not left.exists()


def test_more_processors_take_more_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 5)
    monkeypatch.setattr(grid, "why_not", lambda cell: "none" if (cell.share, cell.target) == (0.05, "bmv2") else "")
    assert planned({0.65: Together(3, 1), 0.05: Together(6, 3)}) == {
        (0.65, LIGHT): 6, (0.65, BMV2): 2, (0.05, LIGHT): 12, (0.05, BMV2): 1,
    }  # fmt: skip


@pytest.mark.usefixtures("two")
def test_as_many_copies_run_as_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_by_side, "run_cell", lambda scratch, one: trace(one, 0.5))
    monkeypatch.setattr(side_by_side, "HERE", InThisProcess())
    assert agree({0.65: Together(3, 1)}, tmp_path, quiet()) == {(0.65, LIGHT): 3, (0.65, BMV2): 1}
    assert [row["step_s"] for row in read(tmp_path / FILE)] == [[0.5], [0.5] * 3]
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


@pytest.fixture
def failing_runs(two: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(scratch: Path, one: Cell) -> None:
        raise OSError("no Mininet here")

    monkeypatch.setattr(side_by_side, "run_cell", fails)
    monkeypatch.setattr(side_by_side, "HERE", InThisProcess())


@pytest.mark.usefixtures("failing_runs")
def test_failed_copies_are_refused_and_measured_again(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(json.dumps(MEASURED))
    assert agree({0.65: Together(3, 2)}, tmp_path, quiet()) == {(0.65, LIGHT): 1, (0.65, BMV2): 1}
    assert read(tmp_path / FILE)[:-1] == MEASURED[:-1], "and nothing else is"
    assert read(tmp_path / FILE)[-1]["together"] == 2
    assert read(tmp_path / FILE)[-1]["failed"].startswith("OSError: no Mininet here")


@pytest.mark.usefixtures("failing_runs")
@pytest.mark.parametrize("other", [{"machine": "another one"}, {"cell": "of another program"}], ids=str)
def test_side_by_side_ignores_other_machine_or_cell_results(other: Row, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(json.dumps([{**each, **other} for each in MEASURED[:2]]))
    output = StringIO()
    assert agree({0.05: Together(6, 1)}, tmp_path, Console(file=output, width=300))[0.05, LIGHT] == 1
    assert "1 at once: OSError: no Mininet here" in output.getvalue()
    assert [each["together"] for each in read(tmp_path / FILE)[2:]] == [1], "nothing to compare others with"
    assert read(tmp_path / FILE)[2]["failed"].startswith("OSError: no Mininet here")
