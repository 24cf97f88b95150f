"""``python -m serene.experiments.straggler_study``: runs a grid and writes its report. ``make reproduce`` calls it."""

from __future__ import annotations

from serene.process.interrupts import end_quietly

if __name__ == "__main__":
    end_quietly()

import argparse
import importlib.util
import os

from rich.console import Console

from serene.arguments import Parser
from serene.errors import BadUsage, choices
from serene.experiments.run.launch import with_sudo
from serene.experiments.shared import studies, terminal
from serene.experiments.shared.clusters import Cluster
from serene.experiments.shared.store import alone
from serene.experiments.shared.studies import Failed
from serene.experiments.straggler_study import side_by_side
from serene.experiments.straggler_study.grid import GRIDS, Grid
from serene.experiments.straggler_study.study import Incomplete, Study
from serene.experiments.straggler_study.sweep import Parallel, announced, sweep
from serene.experiments.straggler_study.trace import Store
from serene.process import outputs

REPORT_BYTES = 5 * outputs.MB  # about
ENGINES = ("simulated", "emulated", "both")


def parser() -> Parser:
    result = Parser("Runs the paper's experiments and writes a report.")
    studies.add_options(result, GRIDS, "runs/straggler")
    add = result.add_argument
    add("--engine", default="both", help=f"{choices(ENGINES)}; the report needs both")
    add("--report-only", action="store_true", help="only write the report of existing results")
    return result


def run(options: argparse.Namespace, console: Console) -> None:
    """Runs the cells that are missing, and writes the report. Raises SereneError."""
    cluster = studies.check(options, GRIDS)
    if options.engine not in ENGINES:
        raise BadUsage(f"--engine {options.engine}: expected {choices(ENGINES)}")
    outputs.check_directory(options.out, REPORT_BYTES)
    try:
        with alone(options.out):
            _study(GRIDS[options.grid](), options, console, cluster)
    finally:
        outputs.give_to_caller(options.out)


def _study(grid: Grid, options: argparse.Namespace, console: Console, cluster: Cluster) -> None:
    store = Store(options.out / "cells")
    failed: Failed | None = None
    if not options.report_only:
        try:
            _sweep(grid, store, options, console, cluster)
        except Failed as error:
            failed = error
    if options.engine == "both":
        from serene.experiments.straggler_study.report import write

        try:
            console.print(f"{write(Study(grid, store), options.out)}", highlight=False)
        except Incomplete:
            if failed is None:
                raise
    if failed is not None:
        raise failed


def _sweep(grid: Grid, store: Store, options: argparse.Namespace, console: Console, cluster: Cluster) -> None:
    emulates = options.engine != "simulated"
    if emulates and importlib.util.find_spec("mininet") is None:
        raise BadUsage("Mininet is not installed: run 'make setup', or give --engine simulated")
    cells = [cell for cell in grid.cells() if options.engine in ("both", cell.engine)]
    planned = Parallel(options.parallel, side_by_side.planned(grid.together))
    console.print(announced(cells, store, planned), highlight=False, soft_wrap=True)
    together = side_by_side.agree(grid.together, options.out, console) if emulates else {}
    before = len(store.missing(cells))
    ran = sweep(cells, store, console, Parallel(options.parallel, together), cluster)
    impossible = f"; {before - ran} cannot run here" if before > ran else ""
    console.print(f"{ran} cells run, {len(cells) - before} were there already{impossible}", highlight=False)


def main() -> int:
    options = parser().parse_args()
    if options.engine in ("both", "emulated") and not options.report_only and os.geteuid() != 0:
        return with_sudo(terminal.console())
    return studies.main(options, run)


if __name__ == "__main__":
    raise SystemExit(main())
