"""How many emulated runs may go side by side: as many as do not make each other's steps longer. It is measured."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
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

STEPS = 15
ALLOWED = 1.05  # times as long a step as of a run that is alone


@dataclass(frozen=True)
class Copies:
    """So many runs of one cell at once: each one's time per step, in seconds, and the machine's load before."""

    share: float
    together: int
    step_s: list[float]
    load: float

    @property
    def middle(self) -> float:
        return float(np.median(self.step_s))


def cell(share: float) -> Cell:
    """What feels every delay of every worker, and takes most of the processors: BSP, by BMv2 where there is one."""
    one = grid.cell("mlp", share, grid.NONE, "bsp", 1, grid.Length(STEPS, STEPS))
    return replace(one, target="bmv2") if grid.has_bmv2() else one


def agree(wanted: Mapping[float, int], directory: Path, console: Console) -> dict[float, int]:
    """For each share how many: what is wanted or, where those distort each other, half of it, and so on down to one.

    What is measured is kept in ``directory`` and not measured again. Raises Failed.
    """
    found = known(directory)
    chosen = {}
    for share, together in wanted.items():
        alone = _measured(found, share, 1, directory, console)
        while together > 1:
            copies = _measured(found, share, together, directory, console)
            if copies.middle <= ALLOWED * alone.middle:
                break
            together //= 2
        chosen[share] = max(together, 1)
    return chosen


def _measured(found: list[Copies], share: float, together: int, directory: Path, console: Console) -> Copies:
    for known_ in found:
        if (known_.share, known_.together) == (share, together):
            return known_
    one = cell(share)
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix=".copies-", dir=directory) as scratch:
        stores = [Store(Path(scratch, str(number))) for number in range(together)]
        with HERE.executor(together, directory, (__name__,)) as executor:
            for copy in work_off(stores, partial(_run, one), executor):
                if copy.trouble is not None:
                    raise Failed(f"{together} copies at once: {copy.trouble}")
        steps = [numbers(Trace.load(store.path(one)), float("nan")).step_s for store in stores]
    found.append(Copies(share, together, steps, load))
    outputs.write_text(directory / "side-by-side.json", json.dumps([asdict(each) for each in found], indent=2) + "\n")
    console.print(
        f"exchange {100 * share:.0f} % of a step, {together} at once: {1e3 * found[-1].middle:.1f} ms per step, "
        f"load {load:.1f}",
        highlight=False,
    )
    return found[-1]


def _run(one: Cell, store: Store) -> None:
    store.keep(one, run_cell(store.directory, one))


def known(directory: Path) -> list[Copies]:
    """What was measured before; nothing if it was not."""
    path = directory / "side-by-side.json"
    return [Copies(**each) for each in json.loads(path.read_text())] if path.exists() else []


def rows(found: list[Copies]) -> tuple[list[str], list[list[str]]]:
    """As a table: time per step, and against the run that was alone."""
    alone = {each.share: each.middle for each in found if each.together == 1}
    return ["wanted share", "at once", "time per step [ms], each", "against one alone", "load before", ""], [
        [
            f"{100 * each.share:.0f} %",
            str(each.together),
            ", ".join(f"{1e3 * value:.1f}" for value in each.step_s),
            f"{100 * (each.middle / alone[each.share] - 1):+.1f} %",
            f"{each.load:.1f}",
            "" if each.together == 1 else "done" if each.middle <= ALLOWED * alone[each.share] else "refused",
        ]
        for each in found
    ]
