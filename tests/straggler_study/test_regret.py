"""The regret of strategies: from runs to the results' file and the page that shows it."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from serene.errors import SereneError
from serene.experiments.straggler_study import regret
from serene.experiments.straggler_study.cell import Cell
from serene.experiments.straggler_study.measures import curve
from serene.experiments.straggler_study.regret import Case, Regret, from_csv, regrets, summary, to_csv, write_page
from serene.experiments.straggler_study.store import Store
from serene.experiments.straggler_study.sweep import Parallel, sweep
from serene.workers import stragglers
from tests.controller.processes import ROOT

RESULTS, PAGE = ROOT / "docs" / "results" / "regret.csv", ROOT / "docs" / "automatic-strategies.md"


def test_the_best_fixed_strategy_has_no_regret_and_the_others_have_their_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regret, "SEEDS", (1,))
    monkeypatch.setattr(regret, "TARGET_SEEDS", (101,))
    case, automatic, store = Case("softmax", "mild", 0.65, "always", 4), {"auto": "auto:pacing"}, Store(tmp_path)
    sweep(regret.cells([case], automatic), store, Console(file=StringIO()), Parallel(2))
    found = regrets(case, automatic, store)
    assert set(found) == {"bsp", "ssp:1", "ssp:3", "ssp:10", "asp", "quorum", "auto"}
    assert min(value for name, value in found.items() if name != "auto") == 1.0

    def took(strategy: str) -> float:
        trace = store.get(case.cell(strategy, 1))
        assert trace is not None
        return float(curve(trace).reaches(regret.target(case, store))[0])  # type: ignore[index]

    assert found["quorum"] / found["bsp"] == pytest.approx(took("quorum:3") / took("bsp"))
    assert found["auto"] / found["bsp"] == pytest.approx(took("auto:pacing") / took("bsp"))


def test_a_run_that_never_arrives_counts_twice_its_length(tmp_path: Path) -> None:
    cell, store = Cell(model="softmax", steps=6, workers=2), Store(tmp_path)
    sweep([cell], store, Console(file=StringIO()), Parallel(1))
    trace = store.get(cell)
    assert trace is not None
    assert regret.seconds(cell, 1.1, store) == pytest.approx(2 * trace.steps["ended"].max())
    with pytest.raises(SereneError, match="was not run"):
        regret.seconds(Cell(model="softmax", steps=7), 0.5, store)


def test_the_regime_that_changes_does_so_after_a_third_and_after_two() -> None:
    profile = stragglers.parse(regret.STRAGGLERS["changing"])
    slow = [step for step in range(1, regret.STEPS + 1) if profile.delay(0, step, 0.1, 1) > 0]
    assert (slow[0], slow[-1], len(slow)) == (34, 66, 33)
    assert profile.delay(1, 40, 0.1, 1) == 0
    with pytest.raises(stragglers.BadStraggler, match="1 <= first <= last"):
        stragglers.parse("heterogeneous:first=5,last=4")


def test_the_page_shows_the_results(tmp_path: Path) -> None:
    """Whoever changes one makes the other anew: `make compare CSV=docs/results/regret.csv`."""
    found = from_csv(RESULTS.read_text())
    assert to_csv(found) == RESULTS.read_text()
    assert {each.cell for each in found} == {case.name for case in regret.cases()}
    copy = tmp_path / "page.md"
    copy.write_text(PAGE.read_text())
    write_page(copy, found)
    assert copy.read_text() == PAGE.read_text()
    copy.write_text("no table here")
    with pytest.raises(SereneError, match="has no line"):
        write_page(copy, found)


def test_a_summary_s_row() -> None:
    cells = ("m mild, share 5%, none, 4 workers", "m mild, share 5%, always, 4 workers")
    rows = summary([Regret(cells[0], "a", 1.0), Regret(cells[1], "a", 1.5), Regret(cells[0], "b", 1.1)])
    assert [row[0] for row in rows] == ["b", "a"]
    assert rows[1][:6] == ("a", "1.25", "1.50", "50%", "1.00", "1.50")
