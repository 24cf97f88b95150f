"""``python -m serene.experiments.network_study``: answers a grid's questions and writes the report. ``make
network-study`` calls it."""

from __future__ import annotations

from serene.process.interrupts import end_quietly

if __name__ == "__main__":
    end_quietly()

import argparse
import subprocess
from pathlib import Path

from rich.console import Console

from serene.arguments import Parser
from serene.experiments.network_study import emulation
from serene.experiments.network_study.cells import ANSWERS, Cell, ExchangeCell, Store, TrainingCell, answer
from serene.experiments.network_study.emulated.plan import FOLDER
from serene.experiments.network_study.grid import GRIDS
from serene.experiments.network_study.methods import METHODS
from serene.experiments.network_study.training import BY_SERVERS
from serene.experiments.shared import studies
from serene.experiments.shared.machine import CONDITIONS
from serene.experiments.shared.store import alone
from serene.experiments.shared.studies import Failed
from serene.palette import look
from serene.process import outputs
from serene.process.spawn import module
from serene.topologies.processes import mortal

PAGE_BYTES, ANSWER_BYTES = 5 * outputs.MB, 4096  # of the report and of an answer, about

# Seconds that a simulation takes at r = 1, as measured on an Intel Xeon: with servers for each pair of hosts, else for
# each host; of training, for each iteration of a host.
SERVERS_S, OTHERS_S = 1.2e-6, 1e-5
TRAINING_BY_SERVERS_S, TRAINING_S = 1.5e-4, 2e-5


def parser() -> Parser:
    result = Parser("How much network does training need?")
    studies.add_options(result, GRIDS, "runs/network")
    add, measured = result.add_argument, "measure on an emulated Clos network and emulated racks as well: 30 minutes"
    add("--emulated", action="store_true", help=measured)
    add("--no-emulation", action="store_true", help="skip parts that need root and Mininet")
    return result


def run(options: argparse.Namespace, console: Console) -> None:
    """Answers the questions that are missing, and writes the report. Raises SereneError."""
    cluster = studies.check(options, GRIDS)
    grid = GRIDS[options.grid]
    cells = list(dict.fromkeys(grid.cells()))
    outputs.check_directory(options.out, PAGE_BYTES + ANSWER_BYTES * len(cells))
    with alone(options.out):
        store = Store(options.out / ANSWERS)
        cells.sort(key=expected_s, reverse=True)  # or a long one might run alone at the end
        studies.complete("simulations", cells, store, answer, console, expected_s, _took, options.parallel, cluster,
                         (answer.__module__,), _label)  # fmt: skip
        if options.emulated:
            _emulate(options.out / FOLDER, console)
        from serene.experiments.network_study.page import write

        found = {cell: result for cell in cells if (result := store.get(cell)) is not None}
        page = write(grid, found, options.out, console, emulate=not options.no_emulation)
        console.print(f"{page}", highlight=False)


def expected_s(cell: Cell) -> float:
    """Seconds that a simulation takes, about. Methods with servers have a step for each server, and in a thinned
    network a step has more events."""
    hosts, ratio = cell.network.hosts, cell.network.ratio
    if isinstance(cell, TrainingCell):
        return (TRAINING_BY_SERVERS_S if cell.how in BY_SERVERS else TRAINING_S) * hosts * cell.iterations
    return (SERVERS_S * hosts**2 if METHODS[cell.method].servers else OTHERS_S * hosts) / ratio


def _took(result: dict[str, object]) -> tuple[float, str | None]:
    conditions = result.get(CONDITIONS)
    return float(str(result["engine_s"])), conditions["machine"] if isinstance(conditions, dict) else None


def _emulate(folder: Path, console: Console) -> None:
    """Measures on emulated networks what is missing, in a child process, with which the networks end. Raises Failed."""
    reason = emulation.why_not()
    if reason:
        raise Failed(f"--emulated: {reason}")
    console.print("measuring: the methods on an emulated Clos network of 32 hosts, and on racks", highlight=False)
    command = module("serene.experiments.network_study.emulated", "--out", str(folder))
    status = subprocess.run(mortal(command), check=False).returncode
    if status:
        raise Failed(f"the measurement of the emulated networks is incomplete (status {status}); rerun to resume")


def _label(cell: Cell) -> str:
    what = cell.method if isinstance(cell, ExchangeCell) else f"{cell.how}, {look(cell.strategy).name}"
    return f"{cell.network.hosts} hosts, r = {cell.network.ratio:g}, {what}"


def main() -> int:
    return studies.main(parser().parse_args(), run)


if __name__ == "__main__":
    raise SystemExit(main())
