"""Runs the cells that have no result yet, several at a time, with a progress bar. Can be stopped and resumed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from rich.console import Console

from experiments.shared import studies
from experiments.shared.clusters import HERE, Cluster
from experiments.shared.machine import observed
from experiments.straggler_study import grid, names
from experiments.straggler_study.cell import Cell
from experiments.straggler_study.store import Store
from experiments.straggler_study.trace import STEP, Trace
from serene import outputs
from serene.errors import SereneError
from workers.results import BYTES_PER_STEP

LIGHT, BMV2 = "all but BMv2", "BMv2"  # kinds of emulated runs, by what they take of the processors
KILLED = "its process was killed, or the study was stopped, while it ran"


class Failed(SereneError):
    """Cells that could not be run, with their reasons."""


@dataclass(frozen=True)
class Parallel:
    """How many cells run side by side: simulated ones, and emulated ones by their share and kind (side_by_side.py);
    one, if nothing is said of it."""

    simulated: int = os.cpu_count() or 1
    emulated: Mapping[tuple[float, str], int] = field(default_factory=dict)

    def of(self, cell: Cell) -> int:
        if cell.engine == "simulated":
            return self.simulated
        # scapy takes all the processors that it gets; a small model's many cells are no measure for a large one's.
        alone = cell.packets == "scapy" or cell.model != "mlp"
        return 1 if alone else self.emulated.get((cell.share, kind(cell)), 1)


def kind(cell: Cell) -> str:
    """Of an emulated cell."""
    return BMV2 if cell.exchange == "switch" and cell.target == "bmv2" else LIGHT


def sweep(
    cells: Sequence[Cell], store: Store, console: Console, parallel: Parallel | None = None, cluster: Cluster = HERE
) -> int:
    """Runs what is missing; how many that were. Raises Failed when some could not be run, after all others. What this
    machine has no program for is not run, and counts as no failure: the store has the reason.

    cluster: for what is simulated. Emulated cells run on the driver's machine: they take real time, begin processes and
    sockets of their own, and side by side with others they must not distort each other.
    """
    parallel = parallel or Parallel()
    for cell in cells:
        cell.check()
    failures: list[str] = []
    with store.alone():
        missing = _possible(store.missing(cells), store)
        for what, mine in _together(missing, parallel):
            simulated = mine[0].engine == "simulated"
            processes, where = parallel.of(mine[0]), cluster if simulated else HERE
            outputs.check(store.directory, max(room(cell) for cell in mine) * processes)
            run = partial(run_cell, None) if simulated else partial(noted, store)
            with where.executor(processes, store.directory, (__name__,)) as executor:
                failures += studies.work(what, mine, run, store.keep, executor, label, console)
    if failures:
        raise Failed(f"{len(failures)} of {len(missing)} cells failed:\n" + "\n".join(failures[:5]))
    return len(missing)


def _possible(missing: Iterable[Cell], store: Store) -> list[Cell]:
    found = []
    for cell in missing:
        reason = grid.why_not(cell)
        if reason:
            store.note_failure(cell, reason)
        else:
            found.append(cell)
    return found


def _together(missing: Iterable[Cell], parallel: Parallel) -> Iterator[tuple[str, list[Cell]]]:
    """What may run side by side, seed after seed: what is asked for first is there first."""
    groups: dict[str, list[Cell]] = {}
    for cell in missing:
        if cell.engine == "simulated":
            groups.setdefault("simulated cells", []).append(cell)
        else:
            share, count = names.percent(cell.share), parallel.of(cell)
            name = f"emulated cells, exchange {share} of a step, {kind(cell)}, {count} at once"
            groups.setdefault(name, []).append(cell)
    for mine in groups.values():
        # The most expensive last; of a seed's the long ones first, so that none is left alone at the end.
        mine.sort(key=lambda cell: (cell.model != "mlp", cell.seed, cell.exchange != "server"))
    yield from groups.items()


def label(cell: Cell) -> str:
    """A cell in a few words."""
    what = f"{cell.workers} workers, {cell.model}, {cell.straggler.partition(':')[0]}, {names.strategy(cell)}"
    way = f", {names.way(cell)}" if cell.engine == "emulated" else ""
    return f"{what}{way}, seed {cell.seed}"


def room(cell: Cell) -> int:
    """Bytes of a cell's result, and of its files while it runs, rather too many."""
    return cell.workers * (2 * STEP.itemsize + BYTES_PER_STEP) * cell.steps + 2 * outputs.MB


def noted(store: Store, cell: Cell) -> Trace:
    """One cell in this process; why there is no result is kept, also if the process is killed."""
    store.note_failure(cell, KILLED)
    try:
        return run_cell(store.directory, cell)
    except Exception as error:
        store.note_failure(cell, f"{type(error).__name__}: {error}")
        raise


def run_cell(scratch: Path | None, cell: Cell) -> Trace:
    """One cell, in this process. scratch: where an emulated one has its files meanwhile."""
    if cell.engine == "emulated":
        from experiments.straggler_study.emulated import emulate

        assert scratch is not None
        return emulate(cell, scratch)
    from experiments.straggler_study.simulated import simulate

    trace, conditions = observed(lambda: simulate(cell))
    return replace(trace, conditions=conditions)
