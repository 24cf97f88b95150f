"""Runs the cells that have no result yet, several at a time, with a progress bar. May be stopped and gone on with."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from experiments.straggler.cell import Cell
from experiments.straggler.store import Store
from serene.errors import SereneError

PR_SET_PDEATHSIG = 1


class Failed(SereneError):
    """Cells that could not be run, with their reasons."""


@dataclass(frozen=True)
class Parallel:
    """How many cells run side by side, by engine. The emulated ones sleep most of the time; that they do not distort
    each other's times is measured (`python -m experiments.straggler distortion`)."""

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
                failures += _run(engine, mine, store, console, count)
    if failures:
        raise Failed(f"{len(failures)} of {len(missing)} cells failed:\n" + "\n".join(failures[:5]))
    return len(missing)


def _run(engine: str, cells: list[Cell], store: Store, console: Console, count: int) -> list[str]:
    # The longest first, so that the end is not one process's alone.
    cells = sorted(cells, key=lambda cell: -cell.workers * cell.steps * (4 if cell.model == "cnn" else 1))
    failures = []
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(),
        TextColumn("{task.fields[last]}"),
    )  # fmt: skip
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(count, len(cells)), context, initializer=_prepare, initargs=(os.getpid(),))
    try:
        with Progress(*columns, console=console, transient=not console.is_terminal) as progress:
            task = progress.add_task(f"{engine} cells", total=len(cells), last="")
            futures: dict[Future[None], Cell] = {pool.submit(run_cell, cell, store.path(cell)): cell for cell in cells}
            for future in as_completed(futures):
                cell = futures[future]
                error = future.exception()
                if error is not None:
                    failures.append(f"  {label(cell)}: {error}")
                progress.update(task, advance=1, last=label(cell))
    finally:
        # Stopped or broken: what runs now is given up, what is done stays.
        processes = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()
    return failures


def label(cell: Cell) -> str:
    """A cell in a few words."""
    return (
        f"{cell.workers} workers, {cell.model}, {cell.straggler.partition(':')[0]}, {cell.strategy}, seed {cell.seed}"
    )


def run_cell(cell: Cell, path: Path) -> None:
    """One cell to its file, in this process."""
    if cell.engine == "emulated":
        from experiments.straggler.emulated import emulate

        trace = emulate(cell, path.parent)
    else:
        from experiments.straggler.simulated import simulate

        trace = simulate(cell)
    trace.save(path)


def _prepare(parent: int) -> None:
    """In a process of the pool: it dies with the sweep, and leaves signals from the terminal to it."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["OMP_NUM_THREADS"] = "1"
