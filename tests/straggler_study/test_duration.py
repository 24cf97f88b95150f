"""A study announces at its start how many cells are finished, and how long the others will take."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from serene.experiments.shared import studies
from serene.experiments.shared.machine import Conditions
from serene.experiments.straggler_study import grid, sweep
from serene.experiments.straggler_study.cell import Cell
from serene.experiments.straggler_study.store import Store
from serene.experiments.straggler_study.sweep import EMULATED_S, Parallel, announced, expected_s, run_cell

CELLS = [Cell(model="nothing", steps=3, seed=seed) for seed in range(1, 5)]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(59, "less than a minute"), (61, "about 1 minute"), (5300, "about 88 minutes"), (9000, "about 2.5 hours")],
)
def test_duration_is_formatted_in_words(seconds: float, said: str) -> None:
    assert studies.in_words(seconds) == said


def test_duration_estimate_uses_cells_done_on_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    monkeypatch.setattr(sweep, "expected_s", lambda cell: 1000.0 * (1 + (cell.seed == 2)))
    monkeypatch.setattr(grid, "why_not", lambda cell: "")
    said = announced(CELLS, store, Parallel(2))
    assert said.startswith("4 cells, 0 of them done already. The others will take about 42 minutes on this machine (a ")
    assert "Ctrl-C stops at any time: finished cells are kept; rerun to resume" in said
    done = run_cell(None, CELLS[0])
    store.keep(CELLS[0], replace(done, facts={**done.facts, "engine_s": 500.0}))
    said = announced([*CELLS, CELLS[0]], store, Parallel(1))
    assert "4 cells, 1 of them done already. The others will take about 33 minutes" in said
    assert "by what 1 of them took on this machine" in said
    # What was done on another machine, or nobody knows where, says nothing of this one.
    for conditions in (Conditions("another one"), Conditions()):
        store.keep(CELLS[0], replace(done, facts={**done.facts, "engine_s": 500.0}, conditions=conditions))
        assert "about 67 minutes on this machine (a guess" in announced(CELLS, store, Parallel(1))
    for cell in CELLS[1:]:
        store.keep(cell, run_cell(None, cell))
    assert announced(CELLS, store, Parallel(1)) == "all 4 cells are done already"


def test_duration_estimate_omits_cells_that_cannot_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "why_not", lambda cell: "no such program here" if cell.seed > 2 else "")
    assert announced(CELLS, Store(tmp_path), Parallel(1)).startswith("2 cells, 0 of them done")


def test_expected_duration_follows_from_run_settings() -> None:
    one = grid.cell("mlp", 0.65, grid.NONE, "bsp", 1, grid.Length(40, 5))
    computing = 40 * one.compute_ms / 1e3
    assert expected_s(one) == pytest.approx(EMULATED_S + computing / 0.35)
    server = replace(one, exchange="server")
    assert expected_s(server) == pytest.approx(EMULATED_S + computing * (1 + 4 * 0.65 / 0.35))
    slow = replace(one, straggler="heterogeneous:factor=3.0,workers=0")
    assert expected_s(slow) == pytest.approx(EMULATED_S + computing * (3 + 0.65 / 0.35))
