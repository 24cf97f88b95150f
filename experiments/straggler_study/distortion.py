"""Do emulated runs that run at the same time distort each other's times? One cell, alone and with copies of itself."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console

from experiments.shared.clusters import HERE
from experiments.shared.driver import work_off
from experiments.straggler_study import grid
from experiments.straggler_study.cell import Cell
from experiments.straggler_study.measures import numbers
from experiments.straggler_study.store import Store
from experiments.straggler_study.sweep import Failed, run_cell
from experiments.straggler_study.trace import Trace
from serene import outputs

STEPS = 60


@dataclass(frozen=True)
class Copies:
    """So many runs of one cell at once: each one's time per step, in seconds, and the machine's load before."""

    together: int
    step_s: list[float]
    load: float


def cell() -> Cell:
    """Four workers, BSP: it feels every delay of every worker."""
    return grid.emulated([replace(grid.cell(4, "mlp", grid.SLOW, "bsp", 1), steps=STEPS)])[0]


def measure(directory: Path, counts: tuple[int, ...], console: Console) -> list[Copies]:
    """Runs the cell alone, then with copies; what was measured is kept in ``directory``. Raises Failed."""
    found = []
    for together in counts:
        stores = [Store(directory / f"copies-{together}-{number}") for number in range(together)]
        load = os.getloadavg()[0]
        with HERE.executor(together, directory, (__name__,)) as executor:
            for copy in work_off(stores, partial(_run, cell()), executor):
                if copy.trouble is not None:
                    raise Failed(f"{together} copies at once: {copy.trouble}")
        steps = [numbers(Trace.load(store.path(cell())), float("nan")).step_s for store in stores]
        found.append(Copies(together, steps, load))
        console.print(f"{together} at once: {1e3 * np.median(steps):.1f} ms per step, load {load:.1f}", highlight=False)
    text = json.dumps([asdict(each) for each in found], indent=2) + "\n"
    outputs.write_text(directory / "distortion.json", text)
    return found


def _run(one: Cell, store: Store) -> None:
    store.keep(one, run_cell(store.directory, one))


def known(directory: Path) -> list[Copies]:
    """What was measured before; nothing if it was not."""
    path = directory / "distortion.json"
    return [Copies(**each) for each in json.loads(path.read_text())] if path.exists() else []


def rows(found: list[Copies]) -> tuple[list[str], list[list[str]]]:
    """As a table: time per step, and against the run that was alone."""
    alone = float(np.median(found[0].step_s)) if found else float("nan")
    return ["at once", "time per step [ms], each", "change of the median", "load before"], [
        [
            str(each.together),
            ", ".join(f"{1e3 * value:.1f}" for value in each.step_s),
            f"{100 * (float(np.median(each.step_s)) / alone - 1):+.1f} %",
            f"{each.load:.1f}",
        ]
        for each in found
    ]
