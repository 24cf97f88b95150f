"""``python -m experiments.straggler_study``: runs a grid and writes its report; ``make reproduce`` calls this."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from experiments.shared import clusters, studies
from experiments.shared.studies import BadUsage
from experiments.straggler_study import distortion
from experiments.straggler_study.grid import GRIDS
from experiments.straggler_study.store import Store
from experiments.straggler_study.study import Study
from experiments.straggler_study.sweep import Parallel, sweep
from serene import outputs
from serene.arguments import Parser
from serene.errors import choices

REPORT_BYTES = 5 * outputs.MB  # about


def parser() -> argparse.ArgumentParser:
    result = Parser(prog="python -m experiments.straggler_study", description="The paper's experiments, and a report.")
    add = result.add_argument
    add("--grid", default="quick", help=f"{choices(GRIDS)} (default quick)")
    add("--out", type=Path, default=Path("runs/straggler"), help="results and report (default runs/straggler)")
    add("--engine", default="both", help="simulated, emulated or both; only after both there is a report")
    add(
        "--distortion", default="", metavar="N,N", help="first measure runs that are emulated so many at once, as 1,2,4"
    )
    add("--parallel", type=int, default=Parallel.simulated, help="simulated cells side by side")
    add("--parallel-emulated", type=int, default=Parallel.emulated, help="emulated cells side by side")
    clusters.add_options(result)
    return result


def run(options: argparse.Namespace, console: Console) -> None:
    """Everything that is missing, then the report. Raises SereneError."""
    if options.grid not in GRIDS:
        raise BadUsage(f"--grid {options.grid}: expected {choices(GRIDS)}")
    if options.engine not in ("simulated", "emulated", "both"):
        raise BadUsage(f"--engine {options.engine}: expected simulated, emulated or both")
    for name in ("parallel", "parallel_emulated"):
        if getattr(options, name) < 1:
            raise BadUsage(f"--{name.replace('_', '-')} {getattr(options, name)}: expected 1 or more")
    try:
        together = tuple(int(text) for text in options.distortion.split(",") if text)
    except ValueError:
        raise BadUsage(f"--distortion {options.distortion}: expected numbers, as 1,2,4") from None
    if any(not 1 <= count <= 16 for count in together):
        raise BadUsage(f"--distortion {options.distortion}: expected numbers from 1 to 16")
    cluster = clusters.chosen(options)
    grid = GRIDS[options.grid]()
    outputs.check(options.out, REPORT_BYTES)
    store = Store(options.out / "cells")
    if together:
        distortion.measure(options.out, together, console)
    cells = [cell for cell in grid.cells() if options.engine in ("both", cell.engine)]
    ran = sweep(cells, store, console, Parallel(options.parallel, options.parallel_emulated), cluster)
    console.print(f"{ran} cells run, {len(cells) - ran} were there already", highlight=False)
    if options.engine == "both":
        from experiments.straggler_study.report import write

        console.print(f"{write(Study(grid, store), options.out)}", highlight=False)


def main() -> int:
    return studies.main(parser().parse_args(), run)


if __name__ == "__main__":
    raise SystemExit(main())
