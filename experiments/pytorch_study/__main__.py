"""``python -m serene.experiments.pytorch_study``: does the trainings that are missing and writes their table. ``make
pytorch-study`` calls it."""

from __future__ import annotations

from serene.process.interrupts import end_quietly

if __name__ == "__main__":
    end_quietly()

import argparse
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from serene.arguments import Parser
from serene.experiments.pytorch_study import report
from serene.experiments.pytorch_study.grid import Cell, Grid, results
from serene.experiments.pytorch_study.switch import local_switch
from serene.experiments.shared import page_tables, studies
from serene.experiments.shared.store import Store
from serene.experiments.shared.studies import Failed, Group
from serene.http import CONTROLLER
from serene.process import outputs
from serene.topologies.processes import NotReady

GRID = Grid()
ROOM = 10 * outputs.MB  # bytes that all results take, about
CSV = "pytorch-study.csv"


def parser() -> Parser:
    result = Parser("Compares shared training with DDP and PostLocalSGD on this machine.")
    result.add_argument("--out", type=Path, default=Path("runs/pytorch"), help="results and table (%(default)s)")
    result.add_argument("--page", type=Path, help="write the table into this page, too")
    result.add_argument("--so-far", action="store_true", help="write the table of finished trainings only")
    return result


def run(options: argparse.Namespace, console: Console, grid: Grid = GRID) -> None:
    """Does the trainings that are missing, and writes the table. Raises SereneError."""
    outputs.check_directory(options.out, ROOM)
    store = results(options.out)
    if not options.so_far:
        with store.alone():
            train(store, store.missing(grid.cells()), grid.workers, console)
    found = report.rows(grid, store)
    outputs.write_text(options.out / CSV, found.to_csv(index=False))
    parts = report.parts(found, grid)
    print(*parts.values(), sep="\n\n")
    if options.page is not None:
        page_tables.write(options.page, parts)
    print(f"{options.out / CSV}: {len(found)} of {len(grid.cells())} trainings")


def train(store: Store[Cell, dict[str, Any]], cells: Sequence[Cell], workers: int, console: Console) -> None:
    """Does one training after another. Raises Failed if some fail, after all have been tried."""
    if not cells:
        return
    from serene.experiments.pytorch_study import training

    try:
        with local_switch(workers):
            do = partial(training.train, os.environ[CONTROLLER])
            studies.sweep([Group("trainings", cells, do, 1, preload=(training.__name__,))], store, console)
    except NotReady as error:
        raise Failed(str(error)) from error


def main() -> int:
    return studies.main(parser().parse_args(), run)


if __name__ == "__main__":
    raise SystemExit(main())
