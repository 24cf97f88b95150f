"""The command line of ``python -m serene.experiments.network_study``, which answers a grid's questions and writes the
report. ``make network-study`` calls it."""

from __future__ import annotations

import argparse
import os
import subprocess
from functools import partial
from pathlib import Path

from rich.console import Console

from serene import outputs
from serene.arguments import Parser
from serene.errors import SereneError, choices
from serene.experiments.network_study import emulation
from serene.experiments.network_study.cells import Answers, Cell, TrainingCell, answer, append
from serene.experiments.network_study.duration import announced, expected_s
from serene.experiments.network_study.emulated.rows import CLOS
from serene.experiments.network_study.grid import GRIDS, Grid
from serene.experiments.shared import clusters, studies
from serene.experiments.shared.clusters import Cluster
from serene.experiments.shared.studies import BadUsage
from serene.palette import look
from serene.spawn import module
from serene.topologies.processes import mortal

PAGE_BYTES, ANSWER_BYTES = 5 * outputs.MB, 1000  # of the report and of an answer, about


class Failed(SereneError):
    """Questions could not be answered; the message says which, and why."""


def parser() -> argparse.ArgumentParser:
    result = Parser(
        prog="python -m serene.experiments.network_study", description="How much network does training need?"
    )
    add = result.add_argument
    add("--grid", default="quick", help=f"{choices(GRIDS)} (default quick)")
    add("--out", type=Path, default=Path("runs/network"), help="answers and page (default runs/network)")
    add("--parallel", type=int, default=os.cpu_count() or 1, help="simulations at a time")
    add(
        "--emulated",
        action="store_true",
        help="measure on an emulated Clos network and emulated racks as well: 30 minutes",
    )
    add("--no-emulation", action="store_true", help="leave out what needs root and Mininet")
    clusters.add_options(result)
    return result


def run(options: argparse.Namespace, console: Console) -> None:
    """Answers the questions that are missing, and writes the report. Raises SereneError."""
    if options.grid not in GRIDS:
        raise BadUsage(f"--grid {options.grid}: expected {choices(GRIDS)}")
    if options.parallel < 1:
        raise BadUsage(f"--parallel {options.parallel}: expected 1 or more")
    cluster = clusters.chosen(options)
    grid = GRIDS[options.grid]
    outputs.check_directory(options.out, PAGE_BYTES + ANSWER_BYTES * len(list(grid.cells())))
    with studies.alone(options.out):
        _study(grid, options, console, cluster)


def _study(grid: Grid, options: argparse.Namespace, console: Console, cluster: Cluster) -> None:
    path = options.out / "answers.jsonl"
    said = announced(list(grid.cells()), Answers(path), options.parallel)
    console.print(said, highlight=False, soft_wrap=True)
    _ask(Answers(path).missing(grid.cells()), path, console, options.parallel, cluster)
    if options.emulated:
        _emulate(options.out / CLOS, console)
    from serene.experiments.network_study.page import write

    console.print(
        f"{write(grid, Answers(path), options.out, console, emulate=not options.no_emulation)}", highlight=False
    )


def _emulate(folder: Path, console: Console) -> None:
    """Measures on emulated networks what is missing, in child processes, with which the networks end. Raises Failed."""
    reason = emulation.why_not()
    if reason:
        raise Failed(f"--emulated: {reason}")
    for what, name in (("an emulated Clos network of 32 hosts", "measure"), ("emulated racks", "leaf_spine")):
        console.print(f"measuring: the methods on {what}", highlight=False)
        command = module(f"serene.experiments.network_study.emulated.{name}", "--out", str(folder))
        status = subprocess.run(mortal(command), check=False).returncode
        if status:
            raise Failed(f"the measurement of the emulated network is incomplete (status {status}); rerun to resume")


def _ask(cells: list[Cell], path: Path, console: Console, parallel: int, cluster: Cluster) -> None:
    cells = sorted(cells, key=expected_s, reverse=True)  # the longest first, or one might run alone at the end
    if not cells:
        return
    with cluster.executor(parallel, path.parent, (answer.__module__,)) as executor:
        failures = studies.work("simulations", cells, answer, partial(append, path), executor, _label, console)
    if failures:
        raise Failed(f"{len(failures)} of {len(cells)} simulations failed:\n" + "\n".join(failures[:5]))


def _label(cell: Cell) -> str:
    what = f"{cell.how}, {look(cell.strategy).name}" if isinstance(cell, TrainingCell) else cell.method
    return f"{cell.network.hosts} hosts, r = {cell.network.ratio:g}, {what}"


def main() -> int:
    return studies.main(parser().parse_args(), run)
