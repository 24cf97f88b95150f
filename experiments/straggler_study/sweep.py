"""Runs the cells that have no result yet, several at a time, with a progress bar. Can be stopped and resumed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from rich.console import Console

from experiments.shared import studies
from experiments.straggler_study.cell import Cell
from experiments.straggler_study.store import Store
from experiments.straggler_study.trace import STEP
from serene import outputs
from serene.errors import SereneError
from workers.results import BYTES_PER_STEP


class Failed(SereneError):
    """Cells that could not be run, with their reasons."""


@dataclass(frozen=True)
class Parallel:
    """How many cells run side by side, by engine. The emulated ones sleep most of the time; that they do not distort
    each other's times is measured (`python -m experiments.straggler_study --distortion 1,2,4`)."""

    simulated: int = os.cpu_count() or 1
    emulated: int = 2


def sweep(cells: Sequence[Cell], store: Store, console: Console, parallel: Parallel | None = None) -> int:
    """Runs what is missing; how many that were. Raises Failed when some could not be run, after all others."""
    parallel = parallel or Parallel()
    for cell in cells:
        cell.check()
    failures: list[str] = []
    with store.alone():
        missing = store.missing(cells)
        for engine, count in (("simulated", parallel.simulated), ("emulated", parallel.emulated)):
            mine = [cell for cell in missing if cell.engine == engine]
            if mine:
                mine.sort(key=lambda cell: cell.model == "cnn")  # the most expensive last: a report may be had before
                failures += studies.work(f"{engine} cells", mine, partial(run_cell, store), count, label, console)
    if failures:
        raise Failed(f"{len(failures)} of {len(missing)} cells failed:\n" + "\n".join(failures[:5]))
    return len(missing)


def label(cell: Cell) -> str:
    """A cell in a few words."""
    return (
        f"{cell.workers} workers, {cell.model}, {cell.straggler.partition(':')[0]}, {cell.strategy}, seed {cell.seed}"
    )


def room(cell: Cell) -> int:
    """Bytes of a cell's result, and of its files while it runs, rather too many."""
    return cell.workers * (2 * STEP.itemsize + BYTES_PER_STEP) * cell.steps + 2 * outputs.MB


def run_cell(store: Store, cell: Cell) -> None:
    """One cell to its file, in this process. Raises CannotWrite, if that can be known before the cell is run."""
    outputs.check(store.directory, room(cell))
    if cell.engine == "emulated":
        from experiments.straggler_study.emulated import emulate

        trace = emulate(cell, store.directory)
    else:
        from experiments.straggler_study.simulated import simulate

        trace = simulate(cell)
    trace.save(store.path(cell))
