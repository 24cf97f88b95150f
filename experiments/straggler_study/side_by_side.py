"""Measures how many emulated runs can go at a time without making each other's steps longer."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console

from serene.experiments.shared import machine
from serene.experiments.shared.clusters import HERE
from serene.experiments.shared.driver import work_off
from serene.experiments.shared.machine import load
from serene.experiments.shared.measurements import Row, complete
from serene.experiments.straggler_study import grid
from serene.experiments.straggler_study.cell import Cell
from serene.experiments.straggler_study.grid import Together
from serene.experiments.straggler_study.measures import numbers
from serene.experiments.straggler_study.names import percent
from serene.experiments.straggler_study.study import Table
from serene.experiments.straggler_study.sweep import BMV2, LIGHT, run_cell
from serene.experiments.straggler_study.trace import Store

STEPS = 15
ALLOWED = 1.05  # the time of a step, at most, relative to that of a run alone
FILE, SCRATCH = "side-by-side.json", ".copies-"


@dataclass(frozen=True)
class Copies:
    """What is measured: so many runs of a cell at once. share, kind: of the cell. cell: its digest. machine: what was
    measured on other machines is not used."""

    share: float
    kind: str
    together: int
    cell: str
    machine: str

    @classmethod
    def of(cls, share: float, kind: str, together: int) -> Copies:
        """So many runs on this machine."""
        return cls(share, kind, together, cell(share, kind).digest, machine.here())


def cell(share: float, kind: str) -> Cell:
    """The cell that is measured for a share and a kind of run (LIGHT or BMV2): BSP through the switch, which is delayed
    by every delay of a worker, and takes the most processor time of its kind."""
    one = grid.cell("mlp", share, grid.NONE, "bsp", 1, grid.Length(STEPS, STEPS))
    return replace(one, target="bmv2") if kind == BMV2 else one


def planned(wanted: Mapping[float, Together]) -> dict[tuple[float, str], int]:
    """How many runs are tried at first, by share and kind of run."""
    pairs = max((os.cpu_count() or 1) // 2, 1)
    return {
        (share, kind): 1 if grid.why_not(cell(share, kind)) else most * pairs
        for share, each in wanted.items()
        for kind, most in ((LIGHT, each.light), (BMV2, each.bmv2))
    }


def agree(wanted: Mapping[float, Together], directory: Path, console: Console) -> dict[tuple[float, str], int]:
    """How many runs may go at a time, by share and kind of run: as many as wanted, or, if these slow each other down,
    three quarters of them, and so on down to one. Measurements are kept in ``directory``, which no other process may
    use, and made again only if they failed."""
    for left in directory.glob(f"{SCRATCH}*"):  # left by a process that was killed
        shutil.rmtree(left, ignore_errors=True)

    def step_s(share: float, kind: str, together: int) -> float:
        asked = Copies.of(share, kind, together)
        rows = complete(directory / FILE, [asked], partial(_measure, directory, console), lambda _: None)
        return middle(next(row for row in rows if asdict(asked).items() <= row.items()))

    chosen = {}
    for (share, kind), most in planned(wanted).items():
        alone = step_s(share, kind, 1) if most > 1 else np.inf
        together = most if np.isfinite(alone) else 1  # or there is nothing to compare others with
        while together > 1 and step_s(share, kind, together) > ALLOWED * alone:
            together = together * 3 // 4
        chosen[share, kind] = together
    return chosen


def middle(row: Row) -> float:
    """The median time per step of a measurement, in seconds; infinite if a run failed."""
    return float(np.median(row["step_s"])) if not row["failed"] else float("inf")


def _measure(directory: Path, console: Console, asked: Copies) -> Row:
    """step_s: each run's time per step. stalled: the share of the time in which something waited for a processor, None
    if it is not known. load: the machine's, before. failed: why not all runs have a result."""
    one, before, failed = cell(asked.share, asked.kind), load(), ""
    with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=directory) as scratch:
        stores = [Store(Path(scratch, str(number))) for number in range(asked.together)]
        with HERE.executor(asked.together, directory, (__name__,)) as executor:
            for copy in work_off(stores, partial(_run, one), executor):
                failed = failed or (copy.trouble or "").partition("\n")[0]
        measured = [numbers(trace, float("nan")) for store in stores if (trace := store.get(one)) is not None]
    stalled = float(np.median([each.stalled for each in measured])) if measured else float("nan")
    row = {
        "step_s": [each.step_s for each in measured], "stalled": stalled if np.isfinite(stalled) else None,
        "load": before, "failed": failed,
    }  # fmt: skip
    console.print(
        f"exchange {percent(asked.share)} of a step, {asked.kind}, {asked.together} at once: "
        f"{failed or f'{1e3 * middle(row):.1f} ms per step'}, load {before:.1f}",
        highlight=False,
    )
    return row


def _run(one: Cell, store: Store) -> None:
    store.keep(one, run_cell(store.directory, one))


def rows(found: list[Row]) -> Table:
    """A table of measurements: time per step, and its change against one run alone."""
    alone = {(each["cell"], each["machine"]): middle(each) for each in found if each["together"] == 1}
    cells = []
    for each in found:
        base = alone.get((each["cell"], each["machine"]), np.inf)
        times = ", ".join(f"{1e3 * value:.1f}" for value in each["step_s"])
        compared = "done" if middle(each) <= ALLOWED * base < np.inf else "refused"
        cells.append([
            percent(each["share"]), each["kind"], str(each["together"]),
            f"{times} ({each['failed']})" if each["failed"] else times,
            f"{100 * (middle(each) / base - 1):+.1f} %" if np.isfinite(middle(each) / base) else "-",
            "-" if each["stalled"] is None else percent(each["stalled"]), f"{each['load']:.1f}",
            "" if each["together"] == 1 else compared,
        ])  # fmt: skip
    head = ["wanted share", "runs", "at once", "time per step [ms], each", "against one alone", "stalled"]
    return [*head, "load before", ""], cells
