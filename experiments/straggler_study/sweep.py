"""Runs the cells that have no result yet, several at a time, with a progress bar. Can be stopped and resumed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console

from experiments.shared import studies
from experiments.shared.clusters import HERE, Cluster
from experiments.straggler_study.cell import Cell
from experiments.straggler_study.store import Store
from experiments.straggler_study.trace import STEP, Trace
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


def sweep(
    cells: Sequence[Cell], store: Store, console: Console, parallel: Parallel | None = None, cluster: Cluster = HERE
) -> int:
    """Runs what is missing; how many that were. Raises Failed when some could not be run, after all others.

    cluster: for what is simulated. Emulated cells run on the driver's machine: they take real time, begin processes and
    sockets of their own, and side by side with others they must not distort each other.
    """
    parallel = parallel or Parallel()
    for cell in cells:
        cell.check()
    failures: list[str] = []
    with store.alone():
        missing = store.missing(cells)
        outputs.check(
            store.directory, max((room(cell) for cell in missing), default=0) * (parallel.simulated + parallel.emulated)
        )
        missing.sort(key=lambda cell: cell.model == "cnn")  # the most expensive last: a report may be had before
        for engine, count, where in (
            ("simulated", parallel.simulated, cluster), ("emulated", parallel.emulated, HERE)
        ):  # fmt: skip
            mine = [cell for cell in missing if cell.engine == engine]
            if mine:
                run = partial(run_cell, store.directory if engine == "emulated" else None)
                with where.executor(count, store.directory, (__name__,)) as executor:
                    failures += studies.work(f"{engine} cells", mine, run, store.keep, executor, label, console)
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


def run_cell(scratch: Path | None, cell: Cell) -> Trace:
    """One cell, in this process. scratch: where an emulated one has its files meanwhile."""
    if cell.engine == "emulated":
        from experiments.straggler_study.emulated import emulate

        assert scratch is not None
        return emulate(cell, scratch)
    from experiments.straggler_study.simulated import simulate

    return simulate(cell)
