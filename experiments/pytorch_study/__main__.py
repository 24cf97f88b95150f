"""``python -m serene.experiments.pytorch_study``: does the trainings that are missing and writes their table. ``make
pytorch-study`` calls it."""

from __future__ import annotations

from serene.interrupts import end_quietly

if __name__ == "__main__":
    end_quietly()

import argparse
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.console import Console

from serene import outputs
from serene.arguments import Parser
from serene.errors import SereneError
from serene.experiments.pytorch_study import report
from serene.experiments.pytorch_study.cells import Cell, Results
from serene.experiments.pytorch_study.grid import Grid
from serene.experiments.pytorch_study.switch import local_switch
from serene.experiments.shared import page_tables, studies
from serene.experiments.shared.clusters import HERE
from serene.http import CONTROLLER
from serene.topologies.processes import NotReady

GRID = Grid()
ROOM = 10 * outputs.MB  # bytes that all results take, about
CSV = "pytorch-study.csv"


class Failed(SereneError):
    """Trainings failed; the message says which, and why."""


def parser() -> argparse.ArgumentParser:
    result = Parser(
        prog="python -m serene.experiments.pytorch_study",
        description="Shared training beside PyTorch's own ways to train together, on this machine.",
    )
    result.add_argument("--out", type=Path, default=Path("runs/pytorch"), help="results and table (%(default)s)")
    result.add_argument("--page", type=Path, help="write the table into this page, too")
    result.add_argument("--so-far", action="store_true", help="only write the table of the trainings that are done")
    return result


def run(options: argparse.Namespace, console: Console, grid: Grid = GRID) -> None:
    """Does the trainings that are missing, and writes the table. Raises SereneError."""
    outputs.check_directory(options.out, ROOM)
    results = Results(options.out / "trainings")
    if not options.so_far:
        with studies.alone(results.directory):
            train(results, results.missing(grid.cells()), grid.workers, console)
    found = report.rows(grid, results)
    report.write_csv(options.out / CSV, found)
    parts = report.parts(found, grid)
    print(*parts.values(), sep="\n\n")
    if options.page is not None:
        page_tables.write(options.page, parts)
    print(f"{options.out / CSV}: {len(found)} of {len(grid.cells())} trainings")


def train(results: Results, cells: Sequence[Cell], workers: int, console: Console) -> None:
    """Does one training after another. Raises Failed if some fail, after all have been tried."""
    if not cells:
        return
    from serene.experiments.pytorch_study import training

    try:
        with local_switch(workers), HERE.executor(1, results.directory, (training.__name__,)) as executor:
            do = partial(training.train, os.environ[CONTROLLER])
            failures = studies.work("trainings", cells, do, results.keep, executor, str, console)
    except NotReady as error:
        raise Failed(str(error)) from error
    if failures:
        raise Failed(f"{len(failures)} of {len(cells)} trainings failed:\n" + "\n".join(failures[:5]))


def main() -> int:
    return studies.main(parser().parse_args(), run)


if __name__ == "__main__":
    raise SystemExit(main())
