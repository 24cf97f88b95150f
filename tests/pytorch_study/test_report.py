"""The study's report from trainings that are made up: right numbers, everything in the files, nothing run twice."""

from __future__ import annotations

import csv
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from serene.experiments.pytorch_study import __main__ as study
from serene.experiments.pytorch_study.cells import GLOO, MAGNITUDES, SERENE, TASKS, Cell, NotTrained, Results
from serene.experiments.pytorch_study.grid import Grid
from serene.experiments.pytorch_study.measures import Parting, magnitude_errors
from serene.experiments.pytorch_study.mirrored import BACKEND as MIRRORED
from serene.experiments.pytorch_study.report import examples, growth, magnitudes, precision, tasks, write
from serene.experiments.shared.studies import Busy, alone

GRID = Grid(steps=20, task_steps=dict.fromkeys(TASKS, 4), seeds=(1, 2))
PARTS = {SERENE: 2e-5, MIRRORED: 4e-5, GLOO: 0.0}  # of a loss, from the fifth step on


def made_up(cell: Cell) -> Any:
    if cell.what == MAGNITUDES:
        error = 3e-8 if cell.backend == SERENE else 5e-8
        return [
            {"magnitude": 1e-7, "beside": [], "values": 8, "error": error, "fixed": 1.0},
            {"magnitude": 1e-7, "beside": [], "values": 8, "error": 2 * error, "fixed": 1.0},
            {"magnitude": 1e-7, "beside": [1e4], "values": 3, "error": 1.0, "fixed": 1.0},
            {"magnitude": 1e4, "beside": [1e-7], "values": 5, "error": error, "fixed": 1.0},
        ]
    losses = [2.0 / step * (1 + (PARTS[cell.backend] if step >= 5 else 0)) for step in range(1, cell.steps + 1)]
    if cell.what not in TASKS:
        return losses
    accuracy = 0.5 + 0.1 * cell.seed + (0.02 if cell.backend == SERENE else 0) - 0.001 * (32 - cell.bits)
    seconds = [0.25] * cell.steps
    return {"losses": losses, "accuracies": [[2, 0.1], [4, accuracy]], "seconds": seconds, "parameters": 1234}


@pytest.fixture
def results(tmp_path: Path) -> Results:
    there = Results(tmp_path / "trainings")
    for cell in GRID.cells():
        there.keep(cell, made_up(cell))
    return there


def line(table: str, *begin: str) -> list[str]:
    """The cells of the row that begins so."""
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()]
    (found,) = (row for row in rows if row[: len(begin)] == list(begin))
    return found


def test_what_fewer_bits_cost(results: Results) -> None:
    table = precision(GRID, results)
    for what in TASKS:
        assert line(table, what, "gloo")[2:4] == ["0.6000, 0.7000", "0.6500"]
        assert line(table, what, "32")[2:4] == ["0.6200, 0.7200", "0.6700"]
        assert line(table, what, "16")[2:4] == ["0.6040, 0.7040", "0.6540"]
        assert line(table, what, "8")[2:4] == ["0.5960, 0.6960", "0.6460"]
        assert line(table, what, "8")[4] == f"{sum(2.0 / step for step in range(1, 5)) / 4:.4f}"


def test_only_fewer_bits_are_told_to_a_training() -> None:
    names = [str(cell) for cell in GRID.cells()]
    assert len(set(names)) == len(names)
    assert [name for name in names if "bits" in name and "serene" not in name] == []
    assert sum(name.endswith("-8-bits") for name in names) == len(TASKS) * len(GRID.seeds)


def test_how_far_losses_are_apart(results: Results) -> None:
    parting = Parting.of(results, GRID.example("ddp", "adam", SERENE), GRID.example("ddp", "adam", GLOO))
    assert parting.differences[:4].tolist() == [0, 0, 0, 0]
    assert parting.largest == pytest.approx(2e-5)
    assert parting.noticed == 5
    same = Parting.of(results, GRID.example("ddp", "adam", GLOO), GRID.example("ddp", "adam", GLOO))
    assert (same.largest, same.noticed) == (0, None)


def test_the_tables(results: Results) -> None:
    found = line(examples(GRID, results), "ddp", "adam")
    assert found[2:] == ["2.0000, 0.1000", "2.0e-05", "2.0e-05", "5", "4.0e-05", "4.0e-05", "5"]
    assert line(examples(GRID, results), "restarts, a rank killed at step 12", "sgd")[4] == "2.0e-05"
    found = line(tasks(GRID, results), "resnet")
    assert found[1:] == [
        "1,234", "4", "0.6200, 0.7200", "0.6000, 0.7000", "0.6700 and 0.6500", "0.0707 and 0.0707", "250 and 250",
    ]  # fmt: skip
    assert line(growth(GRID, results), "transformer", "gloo mirrored")[2:] == ["0.0e+00", "", "", "", "0.0e+00"]
    found = line(magnitudes(GRID, results), "1e-07", "nothing else")
    assert found[2:] == ["2", "4.5e-08, 6.0e-08", "7.5e-08, 1.0e-07", "1.0e+00, 1.0e+00"]
    assert line(magnitudes(GRID, results), "1e-07", "also 1e+04")[3] == "1.0e+00, 1.0e+00"
    assert [(errors.magnitude, errors.beside) for errors in magnitude_errors(results, GRID)] == [
        (1e-7, 0),
        (1e-7, 1e4),
        (1e4, 1e-7),
    ]
    assert not any(row.startswith("| 1e+04 |") for row in magnitudes(GRID, results).splitlines())


def test_every_number_is_in_a_file(results: Results, tmp_path: Path) -> None:
    report = write(GRID, results, tmp_path)
    assert (tmp_path / "report.md").read_text() == report
    assert f"{len(GRID.cells())} trainings" in report
    assert "torch" in report
    assert (tmp_path / "pytorch-study.png").stat().st_size > 10_000
    rows = {
        name: list(csv.DictReader((tmp_path / f"{name}.csv").open())) for name in ("losses", "accuracies", "magnitudes")
    }
    assert len(rows["losses"]) == sum(cell.steps for cell in GRID.cells() if cell.what != MAGNITUDES)
    assert len(rows["accuracies"]) == 2 * sum(cell.what in TASKS for cell in GRID.cells())
    assert [row["beside"] for row in rows["magnitudes"]] == 2 * ["0.0", "0.0", "10000.0", "1e-07"]


def test_only_what_is_missing_is_trained(results: Results) -> None:
    assert results.missing(GRID.cells()) == []
    gone = GRID.example("ddp", "sgd", SERENE)
    results.path(gone).unlink()
    assert results.missing([*GRID.cells(), gone]) == [gone]


def test_a_file_that_is_no_result_is_named(results: Results) -> None:
    path = results.path(GRID.magnitudes(SERENE))
    path.write_text("{}")
    with pytest.raises(NotTrained, match=rf"{path.name} is no result of this study"):
        results.missing(GRID.cells())


def test_all_there_is_needs_no_switch(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(study, "local_switch", None)
    study.run(study.parser().parse_args(["--out", str(tmp_path)]), Console(file=StringIO()), GRID)
    assert "| resnet | 1,234 |" in capsys.readouterr().out
    with alone(results.directory), pytest.raises(Busy, match="in use by another run"):
        study.run(study.parser().parse_args(["--out", str(tmp_path)]), Console(file=StringIO()), GRID)
