"""A sweep is stopped, killed, or loses a process at any time: finished results stay, and nothing else does."""

from __future__ import annotations

import signal
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from serene.errors import SereneError
from serene.experiments.shared import studies
from serene.experiments.shared.clusters import HERE
from serene.experiments.shared.driver import ClusterFailed, work_off
from serene.experiments.shared.machine import Conditions
from serene.experiments.straggler_study import grid
from serene.experiments.straggler_study.cell import Cell
from serene.experiments.straggler_study.sweep import (
    BMV2,
    EMULATED_S,
    LIGHT,
    Parallel,
    _groups,
    announced,
    expected_s,
    noted,
    run_cell,
    sweep,
)
from serene.experiments.straggler_study.trace import Store
from serene.process.interrupts import ended
from serene.process.outputs import CannotWrite
from tests.disks import disk, fill

CELLS = [Cell(model="nothing", steps=3, seed=seed) for seed in range(1, 7)]


def quiet() -> Console:
    return Console(file=StringIO())


def test_sweep_runs_only_missing_cells(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert sweep(CELLS[:4], store, quiet(), Parallel(2)) == 4
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.npz")}
    assert sweep(CELLS, store, quiet(), Parallel(2)) == 2
    assert sweep(CELLS, store, quiet(), Parallel(2)) == 0
    assert len(list(tmp_path.glob("*.npz"))) == 6
    assert all(path.stat().st_mtime_ns == changed for path, changed in before.items())


def test_unwritable_result_ends_the_sweep_and_is_kept_elsewhere(tmp_path: Path) -> None:
    """Later results could not be written either; finished ones stay."""
    store = Store(tmp_path)
    store.path(CELLS[1]).mkdir()  # cannot be replaced by a file
    with pytest.raises(CannotWrite, match=r"Is a directory; written to .* instead; .*rerun to resume"):
        sweep([CELLS[0], CELLS[1], CELLS[2]], store, quiet(), Parallel(1))
    assert store.get(CELLS[0]) is not None


def test_disk_without_room_is_refused_before_cells_run(tmp_path: Path) -> None:
    with disk(tmp_path / "small", "1m") as place:
        store = Store(place / "cells")
        with pytest.raises(CannotWrite, match=r"No space left on device \(.* MB are needed\)"):
            sweep(CELLS[:1], store, quiet(), Parallel(1))
        assert not store.has(CELLS[0])


def test_full_disk_ends_the_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if a cell's note cannot be written: no later cell is tried."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with disk(tmp_path / "small", "1m") as place, ThreadPoolExecutor(1) as threads:
        store = Store(place / "cells")
        store.keep(CELLS[0], noted(store, CELLS[0]))
        fill(place)
        with pytest.raises(ClusterFailed, match=r"No space left on device; .* rerun to resume"):
            list(work_off(CELLS[1:], partial(noted, store), threads))
        assert store.get(CELLS[0]) is not None


def test_progress_shows_a_strategy_whose_file_has_brackets_in_its_name(tmp_path: Path) -> None:
    """rich would take them for markup."""
    program = tmp_path / "[" / "b].py"
    program.parent.mkdir()
    program.write_text("def Mine(seen): ...\n")
    cell = replace(CELLS[0], strategy=f"auto:{program}:Mine")
    assert sweep([cell], Store(tmp_path / "out"), quiet(), Parallel(1)) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_result_being_written_is_kept_despite_a_signal(number: signal.Signals) -> None:
    kept = []

    def keep(task: str, result: str) -> None:
        signal.raise_signal(number)
        kept.append((task, result))

    def study() -> None:
        with ThreadPoolExecutor(1) as threads:
            studies.work("tasks", ["a", "b"], str.upper, keep, threads, str, quiet())

    assert ended(study) == 128 + number
    assert kept == [("a", "A")]


@pytest.mark.parametrize(
    ("changed", "text"), [("mine.py", "def Mine(seen): ..."), ("delays.csv", "worker,iteration,factor\\n0,5,3\\n")]
)
def test_result_of_a_file_that_changed_meanwhile_is_not_kept(tmp_path: Path, changed: str, text: str) -> None:
    """Its name is by the strategy's program and the recorded delays that the study began with."""
    program, delays, store = tmp_path / "mine.py", tmp_path / "delays.csv", Store(tmp_path / "out")
    delays.write_text("worker,iteration,factor\n0,5,2\n")
    write = f"Path('{tmp_path / changed}').write_text('{text}')"
    program.write_text(f"from pathlib import Path\ndef Mine(seen):\n    {write}\n")
    cell = Cell(model="nothing", steps=30, straggler=f"trace:{delays}", strategy=f"auto:{program}:Mine")
    with pytest.raises(studies.Failed, match=rf"{changed}[^,]*: the file has changed since the study began: rerun"):
        sweep([cell], store, quiet(), Parallel(1))
    assert not store.has(cell)


def test_result_of_another_cell_is_not_kept(tmp_path: Path) -> None:
    """A strategy's program that forks makes two processes answer on one pipe."""
    store = Store(tmp_path)
    with pytest.raises(SereneError, match=r"answered .*seed=2.* with the result of .*seed=1"):
        store.keep(CELLS[1], run_cell(None, CELLS[0]))
    assert not store.has(CELLS[1])


def test_impossible_cell_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="quorum of 5 of 4"):
        sweep([CELLS[0], replace(CELLS[1], strategy="quorum:5")], Store(tmp_path), quiet())
    assert not list(tmp_path.glob("*.npz"))


def test_sweep_skips_unrunnable_cell_and_records_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "why_not", lambda cell: "no such program here" if cell.seed == 2 else "")
    store = Store(tmp_path)
    assert sweep(CELLS[:2], store, quiet(), Parallel(2)) == 1
    assert store.missing(CELLS[:2]) == [CELLS[1]]
    assert store.why_missing(CELLS[1]) == "no such program here"


def test_bmv2_runs_have_their_own_parallel_limit() -> None:
    one = grid.cell("mlp", 0.05, grid.SLOW, "bsp", 1, grid.Length(3, 3))
    parallel = Parallel(2, {(0.05, LIGHT): 6, (0.05, BMV2): 3})
    assert parallel.of(one) == parallel.of(replace(one, exchange="gloo")) == 6
    assert parallel.of(replace(one, target="bmv2")) == 3
    # A baseline has a switch's name in its cell, and no switch.
    assert parallel.of(replace(one, target="bmv2", exchange="server")) == 6
    assert parallel.of(replace(one, packets="scapy")) == parallel.of(replace(one, share=0.3)) == 1
    assert parallel.of(replace(one, workers=8)) == 3 and parallel.of(replace(one, workers=8, target="bmv2")) == 1


def test_stopped_study_has_whole_seeds(tmp_path: Path) -> None:
    cells = [cell for cell in grid.full().cells() if cell.engine == "emulated"]
    groups = list(_groups(cells, Store(tmp_path), Parallel(2), HERE))
    assert sum(len(group.cells) for group in groups) == len(cells)
    seeds = [cell.seed for group in groups for cell in group.cells]
    assert seeds == sorted(seeds)


# -- the duration, announced at a study's start -----------------------------------------------------------------------

FOUR = CELLS[:4]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(59, "less than a minute"), (61, "about 1 minute"), (5300, "about 88 minutes"), (9000, "about 2.5 hours")],
)
def test_duration_is_formatted_in_words(seconds: float, text: str) -> None:
    assert studies.in_words(seconds) == text


def test_duration_estimate_uses_cells_done_on_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    monkeypatch.setattr(
        "serene.experiments.straggler_study.sweep.expected_s", lambda cell: 1000.0 * (1 + (cell.seed == 2))
    )
    monkeypatch.setattr(grid, "why_not", lambda cell: "")
    text = announced(FOUR, store, Parallel(2))
    assert text.startswith("4 cells, 0 of them done already. The others will take about 42 minutes on this machine (a ")
    assert "Ctrl-C stops at any time: finished cells are kept; rerun to resume" in text
    done = run_cell(None, FOUR[0])
    store.keep(FOUR[0], replace(done, facts={**done.facts, "engine_s": 500.0}))
    text = announced([*FOUR, FOUR[0]], store, Parallel(1))
    assert "4 cells, 1 of them done already. The others will take about 33 minutes" in text
    assert "by what 1 of them took on this machine" in text
    # What was done on another machine, or nobody knows where, predicts nothing for this one.
    for conditions in (Conditions("another one"), Conditions()):
        store.keep(FOUR[0], replace(done, facts={**done.facts, "engine_s": 500.0}, conditions=conditions))
        assert "about 67 minutes on this machine (a guess" in announced(FOUR, store, Parallel(1))
    for cell in FOUR[1:]:
        store.keep(cell, run_cell(None, cell))
    assert announced(FOUR, store, Parallel(1)) == "all 4 cells are done already"


def test_duration_estimate_omits_cells_that_cannot_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "why_not", lambda cell: "no such program here" if cell.seed > 2 else "")
    assert announced(FOUR, Store(tmp_path), Parallel(1)).startswith("2 cells, 0 of them done")


def test_expected_duration_follows_from_run_settings() -> None:
    one = grid.cell("mlp", 0.65, grid.NONE, "bsp", 1, grid.Length(40, 5))
    computing = 40 * one.compute_ms / 1e3
    assert expected_s(one) == pytest.approx(EMULATED_S + computing / 0.35)
    server = replace(one, exchange="server")
    assert expected_s(server) == pytest.approx(EMULATED_S + computing * (1 + 4 * 0.65 / 0.35))
    slow = replace(one, straggler="heterogeneous:factor=3.0,workers=0")
    assert expected_s(slow) == pytest.approx(EMULATED_S + computing * (3 + 0.65 / 0.35))
