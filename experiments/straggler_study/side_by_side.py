"""Measures how many emulated runs can go at a time without making each other's steps longer."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console

from serene.experiments.shared.clusters import HERE
from serene.experiments.shared.driver import work_off
from serene.experiments.shared.machine import load
from serene.experiments.straggler_study import grid, machine
from serene.experiments.straggler_study.cell import Cell
from serene.experiments.straggler_study.grid import Together
from serene.experiments.straggler_study.measures import numbers
from serene.experiments.straggler_study.names import percent
from serene.experiments.straggler_study.store import Store
from serene.experiments.straggler_study.sweep import BMV2, LIGHT, run_cell
from serene.process import outputs

STEPS = 15
ALLOWED = 1.05  # the time of a step, at most, relative to that of a run alone
FILE, SCRATCH = "side-by-side.json", ".copies-"


@dataclass(frozen=True)
class Copies:
    """A measurement: so many runs of a cell at once. share, kind: of the cell. step_s: each run's time per step.
    stalled: the share of the time in which something waited for a processor, None if it is not known. load: the
    machine's, before. cell: the cell's digest. machine: measurements of other machines are not used. failed: why not
    all runs have a result.
    """

    share: float
    kind: str
    together: int
    step_s: list[float]
    stalled: float | None
    load: float
    cell: str
    machine: str
    failed: str = ""

    @property
    def middle(self) -> float:
        """The median time per step in seconds; infinite if a run failed."""
        return float(np.median(self.step_s)) if not self.failed else float("inf")


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
    found = known(directory)
    chosen = {}
    for (share, kind), most in planned(wanted).items():
        together = most
        alone = _measured(found, share, kind, 1, directory, console) if together > 1 else None
        if alone is not None and alone.failed:
            together = 1  # there is nothing to compare others with
        while alone is not None and together > 1:
            copies = _measured(found, share, kind, together, directory, console)
            if copies.middle <= ALLOWED * alone.middle < float("inf"):
                break
            together = together * 3 // 4
        chosen[share, kind] = together
    return chosen


def _measured(found: list[Copies], share: float, kind: str, together: int, directory: Path, console: Console) -> Copies:
    """The measurement of so many runs at once: an earlier one in ``found``, or a new one, which is added and kept."""
    one = cell(share, kind)
    for known_ in found:
        if (known_.cell, known_.machine, known_.together) == (one.digest, machine.here(), together):
            if not known_.failed:
                return known_
            found.remove(known_)  # why it failed may not apply any more
            break
    before = load()
    failed = ""
    with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=directory) as scratch:
        stores = [Store(Path(scratch, str(number))) for number in range(together)]
        with HERE.executor(together, directory, (__name__,)) as executor:
            for copy in work_off(stores, partial(_run, one), executor):
                failed = failed or (copy.trouble or "").partition("\n")[0]
        measured = [numbers(trace, float("nan")) for store in stores if (trace := store.get(one)) is not None]
    stalled = float(np.median([each.stalled for each in measured])) if measured else float("nan")
    steps = [each.step_s for each in measured]
    known_stalled = stalled if np.isfinite(stalled) else None
    found.append(Copies(share, kind, together, steps, known_stalled, before, one.digest, machine.here(), failed))
    outputs.write_text(directory / FILE, json.dumps([asdict(each) for each in found], indent=2) + "\n")
    said = failed or f"{1e3 * found[-1].middle:.1f} ms per step"
    console.print(
        f"exchange {percent(share)} of a step, {kind}, {together} at once: {said}, load {before:.1f}", highlight=False
    )
    return found[-1]


def _run(one: Cell, store: Store) -> None:
    store.keep(one, run_cell(store.directory, one))


def known(directory: Path) -> list[Copies]:
    """Earlier measurements in a directory; none if there are none, or another version of this program wrote them."""
    try:
        return [Copies(**each) for each in json.loads((directory / FILE).read_text())]
    except (FileNotFoundError, ValueError, TypeError):
        return []


def rows(found: list[Copies]) -> tuple[list[str], list[list[str]]]:
    """A table, head and rows, of measurements: time per step, and its change against one run alone."""
    alone = {(each.cell, each.machine): each.middle for each in found if each.together == 1}
    head = [
        "wanted share",
        "runs",
        "at once",
        "time per step [ms], each",
        "against one alone",
        "stalled",
        "load before",
        "",
    ]
    return head, [
        [
            percent(each.share),
            each.kind,
            str(each.together),
            ", ".join(f"{1e3 * value:.1f}" for value in each.step_s) + (f" ({each.failed})" if each.failed else ""),
            f"{100 * (each.middle / base - 1):+.1f} %" if np.isfinite(each.middle / base) else "-",
            "-" if each.stalled is None else percent(each.stalled),
            f"{each.load:.1f}",
            "" if each.together == 1 else "done" if each.middle <= ALLOWED * base < float("inf") else "refused",
        ]
        for each in found
        for base in [alone.get((each.cell, each.machine), float("inf"))]
    ]
