"""The page, written from made-up traces: it names missing results and shows the others."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from serene.experiments.straggler_study import names, sweep
from serene.experiments.straggler_study.cell import Cell
from serene.experiments.straggler_study.report import write
from serene.experiments.straggler_study.study import Incomplete, Study
from serene.experiments.straggler_study.trace import Store, Trace
from serene.workers.data import DataError
from tests.straggler_study.studies import paced_study, trace


def test_page_lists_cells_without_results_and_their_reasons(tmp_path: Path) -> None:
    made = paced_study(tmp_path, {names.SERVER: 2.0})
    lost, killed = (cell for cell in made.grid.headline if cell.exchange == "gloo")
    for cell in (lost, killed):
        made.store.path(cell).unlink()
    made.store.note_failure(killed, "RunFailed: the run ended with status 1")
    made = Study(made.grid, made.store)
    page = write(made, tmp_path).read_text()
    assert "2 emulated cells have no result" in page
    assert "RunFailed: the run ended with status 1" in page and "was not run" in page
    assert "<td>0 of 2</td>" in page
    assert "The processors were busy with other work" in page, "all computed for longer than they were asked to"
    for engine in ("emulated", "simulated"):
        text = (
            f"Machine: a machine that {engine}. Median of the load before: 0.5 (at most 0.5), after: 1.5 (at most 1.5)"
        )
        assert page.count(text) == 1
    for name in ("answer-mlp-slow_worker-4", "answer-mlp-slow_worker-4-narrow", "timeline-mlp-slow_worker-4"):
        assert (tmp_path / f"{name}.png").stat().st_size > 5000
    with (tmp_path / "runs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(made.grid.cells()) - 2
    assert {(row["machine"], row["load_before"], row["load_after"], row["stalled"]) for row in rows} == {
        (f"a machine that {engine}", "0.5", "1.5", "0.1") for engine in ("emulated", "simulated")
    }
    assert {row["way"] for row in rows if row["engine"] == "emulated"} == {
        names.EMBEDDED, names.BMV2, names.SERVER, names.SHARDED, names.RPC, names.SCAPY,
    }  # fmt: skip


def test_page_without_emulated_results_is_refused(tmp_path: Path) -> None:
    made = paced_study(tmp_path, {})
    for cell in made.grid.headline:
        made.store.path(cell).unlink()
    with pytest.raises(Incomplete, match="no emulated result"):
        write(Study(made.grid, made.store), tmp_path)


def test_failure_reason_is_kept_until_a_result_exists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERENE_DATA", str(tmp_path / "none"))
    store, cell = Store(tmp_path / "cells"), Cell(model="mlp", dataset="mnist", steps=2)
    assert store.why_missing(cell) == "was not run"
    with pytest.raises(DataError):
        sweep.noted(store, cell)
    assert store.why_missing(cell).startswith("DataError: ")
    store.keep(cell, trace(cell, 1.0))
    assert not list(store.directory.glob("*.failed"))


def test_killed_cell_records_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(scratch: Path, cell: Cell) -> Trace:
        raise SystemExit  # no cell's own failure: nothing that comes after it is done

    monkeypatch.setattr(sweep, "run_cell", killed)
    store, cell = Store(tmp_path / "cells"), Cell(steps=2)
    with pytest.raises(SystemExit):
        sweep.noted(store, cell)
    assert store.why_missing(cell) == sweep.KILLED
