"""A sweep is stopped, killed, or loses a process at any time: finished results stay, and nothing else does."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from serene.experiments.shared import studies
from serene.experiments.shared.driver import ClusterFailed, work_off
from serene.experiments.shared.store import Busy, alone
from serene.experiments.straggler_study import command, grid
from serene.experiments.straggler_study.cell import Cell
from serene.experiments.straggler_study.store import Store
from serene.experiments.straggler_study.sweep import BMV2, LIGHT, Parallel, noted, sweep
from serene.process.interrupts import ended
from serene.process.outputs import CannotWrite
from tests.controller.processes import until
from tests.disks import disk, fill
from tests.runs import Marked

STEPS = 100  # of a cell in a sweep that is killed
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


def test_second_study_in_a_folder_is_refused(tmp_path: Path) -> None:
    options = command.parser().parse_args(["--out", str(tmp_path), "--engine", "simulated"])
    with alone(tmp_path), pytest.raises(Busy, match="in use by another run"):
        command.run(options, quiet())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_killed_sweep_leaves_no_process_and_resumes(number: signal.Signals, tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(SCRIPT)
    run = Marked(
        [sys.executable, str(script), str(tmp_path / "cells"), str(STEPS)], tmp_path / "log", PYTHONPATH=os.getcwd()
    )
    try:
        until(lambda: any((tmp_path / "cells").glob("*.npz")), f"a first result; it says {run.output}", 180)
        run.process.send_signal(number)
        run.wait(120)
        until(lambda: not run.alive(), "its processes are gone")
    finally:
        run.end()
    done = len(list((tmp_path / "cells").glob("*.npz")))
    assert done < 40
    store = Store(tmp_path / "cells")
    cells = [replace(CELLS[0], seed=seed, steps=STEPS) for seed in range(done + 2)]
    known = len(cells) - len(store.missing(cells))
    assert known >= 1
    assert sweep(cells, store, quiet(), Parallel(2)) == len(cells) - known
    assert not list(store.directory.glob(".*.npz.*"))


SCRIPT = """
import sys
from pathlib import Path
from rich.console import Console
from serene.experiments.straggler_study.cell import Cell
from serene.experiments.straggler_study.store import Store
from serene.experiments.straggler_study.sweep import Parallel, sweep
if __name__ == "__main__":
    cells = [Cell(model="nothing", steps=int(sys.argv[2]), seed=seed) for seed in range(40)]
    sweep(cells, Store(Path(sys.argv[1])), Console(), Parallel(2))
"""
