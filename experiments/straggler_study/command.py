"""The command line of ``python -m serene.experiments.straggler_study``, which runs a grid and writes its report.
``make reproduce`` calls it."""

from __future__ import annotations

import argparse
import importlib.util
import os
from pathlib import Path

from rich.console import Console

from serene import outputs
from serene.arguments import Parser
from serene.errors import choices
from serene.experiments.run.launch import with_sudo
from serene.experiments.shared import clusters, studies, terminal
from serene.experiments.shared.studies import BadUsage
from serene.experiments.straggler_study import duration, side_by_side
from serene.experiments.straggler_study.grid import GRIDS, Grid
from serene.experiments.straggler_study.store import Store
from serene.experiments.straggler_study.study import Incomplete, Study
from serene.experiments.straggler_study.sweep import Failed, Parallel, sweep

REPORT_BYTES = 5 * outputs.MB  # about
ENGINES = ("simulated", "emulated", "both")


def parser() -> argparse.ArgumentParser:
    result = Parser(
        prog="python -m serene.experiments.straggler_study", description="The paper's experiments, and a report."
    )
    add = result.add_argument
    add("--grid", default="quick", help=f"{choices(GRIDS)} (default quick)")
    add("--out", type=Path, default=Path("runs/straggler"), help="results and report (default runs/straggler)")
    add("--engine", default="both", help=f"{choices(ENGINES)}; only after both there is a report")
    add("--parallel", type=int, default=Parallel.simulated, help="simulated cells at a time")
    add("--report-only", action="store_true", help="run nothing, and write the report of the results that are there")
    clusters.add_options(result)
    return result


def run(options: argparse.Namespace, console: Console) -> None:
    """Runs the cells that are missing, and writes the report. Raises SereneError."""
    if options.grid not in GRIDS:
        raise BadUsage(f"--grid {options.grid}: expected {choices(GRIDS)}")
    if options.engine not in ENGINES:
        raise BadUsage(f"--engine {options.engine}: expected {choices(ENGINES)}")
    if options.parallel < 1:
        raise BadUsage(f"--parallel {options.parallel}: expected 1 or more")
    cluster = clusters.chosen(options)
    grid = GRIDS[options.grid]()
    outputs.check_directory(options.out, REPORT_BYTES)
    try:
        with studies.alone(options.out):
            _study(grid, options, console, cluster)
    finally:
        outputs.give_to_caller(options.out)


def _study(grid: Grid, options: argparse.Namespace, console: Console, cluster: clusters.Cluster) -> None:
    store = Store(options.out / "cells")
    failed: Failed | None = None
    try:
        if not options.report_only:
            emulates = _emulates(options)
            cells = [cell for cell in grid.cells() if options.engine in ("both", cell.engine)]
            planned = Parallel(options.parallel, side_by_side.planned(grid.together))
            console.print(duration.announced(cells, store, planned.of), highlight=False, soft_wrap=True)
            together = side_by_side.agree(grid.together, options.out, console) if emulates else {}
            before = len(store.missing(cells))
            try:
                ran = sweep(cells, store, console, Parallel(options.parallel, together), cluster)
                impossible = f"; {before - ran} cannot run here" if before > ran else ""
                console.print(f"{ran} cells run, {len(cells) - before} were there already{impossible}", highlight=False)
            except Failed as error:
                failed = error
        if options.engine == "both":
            from serene.experiments.straggler_study.report import write

            console.print(f"{write(Study(grid, store), options.out)}", highlight=False)
    except Incomplete:
        if failed is None:
            raise
    if failed is not None:
        raise failed


def _emulates(options: argparse.Namespace) -> bool:
    """Whether cells will be emulated. Raises BadUsage if they cannot be."""
    if options.engine == "simulated":
        return False
    if importlib.util.find_spec("mininet") is None:
        raise BadUsage("Mininet is not installed: run 'make setup', or give --engine simulated")
    return True


def main() -> int:
    options = parser().parse_args()
    if options.engine in ("both", "emulated") and not options.report_only and os.geteuid() != 0:
        return with_sudo(terminal.console())
    return studies.main(options, run)
