"""The study's trainings, for a few steps, and the tables of its results."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from serene.experiments.pytorch_study import __main__ as study
from serene.experiments.pytorch_study import report, training
from serene.experiments.pytorch_study.grid import DDP, POST_LOCAL, SHARED, Cell, Grid
from serene.experiments.pytorch_study.grid import results as kept
from serene.experiments.pytorch_study.switch import local_switch
from serene.experiments.shared import page_tables
from serene.experiments.shared.clusters import HERE
from serene.experiments.shared.store import Busy, JsonStore, alone
from serene.experiments.shared.together import CallFailed
from serene.http import CONTROLLER
from tests.controller.processes import ROOT, missing

GRID = study.GRID
RESULTS, PAGE = ROOT / "docs/results/pytorch-study.csv", ROOT / "docs/pytorch-study.md"
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Trains a cell in the study's own process, while there is a switch."""
    if lacking := missing("embedded"):
        pytest.skip(f"the embedded switch needs {lacking}")
    out = tmp_path_factory.mktemp("study")
    with local_switch(2), HERE.executor(1, out, (training.__name__,)) as executor:
        controller = os.environ[CONTROLLER]  # the processes may come from a server that another test has started
        yield lambda cell: executor.submit(training.train, controller, cell).result()


def test_momentum_sgd_with_exchange_each_step_matches_ddp(trained: Any) -> None:
    """Momentum is linear: the mean of the workers' momenta is that of their mean gradient. Adam's second moment is
    not."""
    cell = Cell("fashion", "sgd", SHARED, steps=16, workers=2)
    ours, theirs = (trained(replace(cell, way=way)) for way in (SHARED, DDP))
    np.testing.assert_allclose(ours["losses"], theirs["losses"], rtol=1e-3)
    assert ours["equal"] and theirs["equal"]
    # 29 slots of 1,362 bytes an exchange, at least; a ring of two sends each value once
    assert ours["sent"] >= 16 * 29 * 1362 and theirs["sent"] == 16 * 9098 * 4
    assert np.mean(ours["losses"][-4:]) < 0.9 * ours["losses"][0], "it learns nothing"
    assert [step for _, step, _ in ours["accuracies"]] == [8, 16]


@pytest.mark.parametrize("cell", [
    Cell("fashion", "adamw", SHARED, "asp", 8, "random", steps=20, workers=2),
    Cell("transformer", "sgd", POST_LOCAL, every=4, stragglers="one slow", steps=8, workers=2),
])  # fmt: skip
def test_study_replicas_are_equal_at_the_end(trained: Any, cell: Cell) -> None:
    found = trained(cell)
    assert found["equal"] and len(found["losses"]) == cell.steps
    assert found["seconds"] > (cell.steps * training.PAUSE_S if cell.stragglers == "one slow" else 0)


def test_failed_training_raises_with_the_workers_error(trained: Any) -> None:
    with pytest.raises(CallFailed, match=r"worker \d: .*no strategy 'bps'; expected bsp"):
        trained(Cell("fashion", "sgd", SHARED, "bps", steps=4, workers=2))


# -- results and their table ---------------------------------------------------------------------------------


def result(accuracies: list[list[float]], accuracy: float, equal: bool = True) -> dict[str, Any]:
    return {"accuracies": accuracies, "accuracy": accuracy, "seconds": 9.0, "sent": 1e6, "equal": equal, "load": 1.0,
            "date": "2026-11-25"}  # fmt: skip


SMALL = Grid(tasks=("fashion",), optimizers=("sgd",), stragglers=("none", "random"), steps=8)


@pytest.fixture
def results(tmp_path: Path) -> JsonStore[Cell]:
    """Of all but the last seed; with an exchange each step nobody gets to the target under ASP."""
    found = kept(tmp_path)
    for cell in SMALL.cells():
        if cell.seed < 3:
            at = [[0.5, 8, 0.4], [cell.seed, 8, 0.7 if (cell.strategy, cell.every) == ("asp", 1) else 0.76]]
            found.keep(cell, result(at, 0.78 + cell.seed / 100, equal=cell.way != POST_LOCAL))
    return found


def test_study_table_is_the_same_from_its_csv_file(results: JsonStore[Cell], tmp_path: Path) -> None:
    found = report.rows(SMALL, results)
    found.to_csv(tmp_path / "rows.csv", index=False)
    assert report.table(report.read_csv(tmp_path / "rows.csv"), SMALL) == report.table(found, SMALL)
    lacking = (found.strategy == "quorum:3") & (found.every == 32) & (found.stragglers == "random") & (found.seed == 2)
    assert lacking.sum() == 1
    head, lines = report.table(found[~lacking], SMALL)
    assert head[5:9] == ["accuracy, none", "accuracy, random", "s to target, none", "s to target, random"]
    assert len(lines) == 15
    by_way = {(line[2], line[3]): line[4:] for line in lines}
    assert by_way["asp", "1"] == ["2", "0.795 ± 0.007", "0.795 ± 0.007", "never", "never", "8.0", "yes"]
    assert by_way["bsp", "8"][3] == "1.5" and by_way[POST_LOCAL, "8"][-1] == "0 of 4"
    assert by_way["quorum:3", "32"][:3] == ["2/1", "0.795 ± 0.007", "0.790"]


def test_study_prints_the_table_so_far_without_a_switch(
    results: JsonStore[Cell], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(study, "local_switch", None)
    options = study.parser().parse_args(["--out", str(tmp_path), "--so-far"])
    study.run(options, Console(file=StringIO()), SMALL)
    assert "60 of 90 trainings" in capsys.readouterr().out
    options = study.parser().parse_args(["--out", str(tmp_path)])
    with alone(results.directory), pytest.raises(Busy, match="in use by another run"):
        study.run(options, Console(file=StringIO()), SMALL)


def test_study_page_matches_the_committed_results() -> None:
    """After a change run `make pytorch-study`, which writes both again."""
    found = report.read_csv(RESULTS)
    assert page_tables.filled(PAGE, report.parts(found, GRID)) == PAGE.read_text()
    assert set(found["equal"][found["way"] == SHARED]) == {"yes"}
    # The page names where shared training with an exchange each step is worse than DDP, by more than both spreads.
    alike = found[(found["every"] == 1) & (found["stragglers"] == "none") & (found["strategy"] == "bsp")]
    for (task, optimizer), mine in alike.groupby(["task", "optimizer"]):
        ours, theirs = (mine["accuracy"][mine["way"] == way] for way in (SHARED, DDP))
        if min(len(ours), len(theirs)) > 1 and ours.mean() < theirs.mean() - ours.std() - theirs.std():
            assert f"Worse than DistributedDataParallel: {task} with {optimizer}." in PAGE.read_text()
