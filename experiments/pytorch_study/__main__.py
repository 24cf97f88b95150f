"""``python -m serene.experiments.pytorch_study``: does the trainings that are missing and writes the report. ``make
pytorch-study`` calls it."""

from __future__ import annotations

from serene.interrupts import end_quietly

if __name__ == "__main__":
    end_quietly()

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.console import Console

from serene import outputs
from serene.arguments import Parser
from serene.errors import SereneError
from serene.experiments.pytorch_study.cells import Cell, Results, train_in
from serene.experiments.pytorch_study.grid import Grid
from serene.experiments.pytorch_study.switch import local_switch
from serene.experiments.shared import studies
from serene.experiments.shared.clusters import HERE
from serene.topologies.processes import NotReady

GRID = Grid()
ROOM = outputs.MB  # bytes that all results take, about


class Failed(SereneError):
    """Trainings failed; the message says which, and why."""


def parser() -> argparse.ArgumentParser:
    result = Parser(
        prog="python -m serene.experiments.pytorch_study", description="Real models, through the switch and gloo."
    )
    result.add_argument("--out", type=Path, default=Path("runs/pytorch"), help="results and report (%(default)s)")
    return result


def run(options: argparse.Namespace, console: Console, grid: Grid = GRID) -> None:
    """Does the trainings that are missing, and writes the report. Raises SereneError."""
    outputs.check_directory(options.out, ROOM)
    results = Results(options.out / "trainings")
    with studies.alone(results.directory):
        results.tidy()
        train(results, results.missing(grid.cells()), grid.ranks, console)
    from serene.experiments.pytorch_study.report import write

    print(write(grid, results, options.out))
    print(f"{options.out}/  report.md  losses.csv  accuracies.csv  magnitudes.csv  pytorch-study.png")


def train(results: Results, cells: Sequence[Cell], ranks: int, console: Console) -> None:
    """Does one training after another. Raises Failed if some fail, after all have been tried."""
    if not cells:
        return
    try:
        with local_switch(ranks), HERE.executor(1, results.directory, (Cell.__module__,)) as executor:
            run = partial(train_in, results.directory)
            failures = studies.work("trainings", cells, run, results.keep, executor, str, console)
    except NotReady as error:
        raise Failed(str(error)) from error
    if failures:
        raise Failed(f"{len(failures)} of {len(cells)} trainings failed:\n" + "\n".join(failures[:5]))


def main() -> int:
    return studies.main(parser().parse_args(), run)


if __name__ == "__main__":
    raise SystemExit(main())
