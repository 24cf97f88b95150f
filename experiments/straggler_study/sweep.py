"""Runs the cells that have no result yet, several at a time, and estimates how long that takes. It can be stopped and
started again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from rich.console import Console

from serene.controller.automatic import automatic_parts, source_now
from serene.errors import SereneError
from serene.experiments.shared import studies
from serene.experiments.shared.clusters import HERE, Cluster
from serene.experiments.shared.machine import observed
from serene.experiments.shared.studies import Group
from serene.experiments.straggler_study import grid, names
from serene.experiments.straggler_study.cell import Cell, automatic_source
from serene.experiments.straggler_study.trace import STEP, Store, Trace
from serene.process import outputs
from serene.workers import stragglers
from serene.workers.results import BYTES_PER_STEP

LIGHT, BMV2 = "all but BMv2", "BMv2"  # kinds of emulated runs, by the processor time that they take
KILLED = "interrupted: its process was killed or the study was stopped"
# Seconds on an Intel Xeon: of an emulated run's beginning and end, and of a simulated step of a worker, by model, with
# its share of the evaluations.
EMULATED_S = 8.0
SIMULATED_S = {"nothing": 0.0006, "softmax": 0.0007, "mlp": 0.007, "cnn-large": 0.1}


@dataclass(frozen=True)
class Parallel:
    """How many cells run at a time: simulated ones, and emulated ones by share and kind (side_by_side.py), one if these
    are not listed."""

    simulated: int = os.cpu_count() or 1
    emulated: Mapping[tuple[float, str], int] = field(default_factory=dict)

    def of(self, cell: Cell) -> int:
        """How many cells like this one run at a time."""
        if cell.engine == "simulated":
            return self.simulated
        # scapy takes all the processor time that it gets, and what was measured with the mlp does not hold for larger
        # models.
        if cell.packets == "scapy" or cell.model != "mlp":
            return 1
        return max(self.emulated.get((cell.share, kind(cell)), 1) * grid.WORKERS // cell.workers, 1)


def kind(cell: Cell) -> str:
    """The kind of an emulated cell, LIGHT or BMV2."""
    return BMV2 if cell.exchange == "switch" and cell.target == "bmv2" else LIGHT


def announced(cells: Iterable[Cell], store: Store, parallel: Parallel) -> str:
    """What to print before the cells run."""
    possible = [cell for cell in cells if store.has(cell) or not grid.why_not(cell)]
    return studies.announced(
        possible, store, expected_s, lambda trace: (trace.facts["engine_s"], trace.conditions.machine), parallel.of,
        lambda cell: cell.engine,
    )  # fmt: skip


def expected_s(cell: Cell) -> float:
    """Seconds that a cell takes, about, by its settings."""
    if cell.engine == "simulated":
        return cell.steps * cell.workers * SIMULATED_S.get(cell.model, max(SIMULATED_S.values()))
    computing = cell.compute_ms / 1e3
    exchange = computing * cell.share / (1 - cell.share)
    if cell.exchange == "server":
        exchange *= cell.workers  # the vectors of all workers pass the server's link
    profile, steps = stragglers.parse(cell.straggler), range(1, min(cell.steps, 20) + 1)
    longest = [max(profile.delay(worker, step, 1.0, cell.seed) for worker in range(cell.workers)) for step in steps]
    return EMULATED_S + cell.steps * (computing * (1 + sum(longest) / len(longest)) + exchange)


def sweep(
    cells: Sequence[Cell], store: Store, console: Console, parallel: Parallel | None = None, cluster: Cluster = HERE
) -> int:
    """Runs the cells that have no result, and returns how many these were. Raises Failed if some fail, after all have
    been tried. Cells for which this machine has no program are not run, and do not count as failed; the store has the
    reason.

    cluster: for simulated cells. Emulated cells run on the driver's machine, because their times are real and must not
    be distorted by others.
    """
    parallel = parallel or Parallel()
    for cell in cells:
        cell.check()
    with store.alone():
        possible = []
        for cell in store.missing(cells):
            if reason := grid.why_not(cell):
                store.note_failure(cell, reason)
            else:
                possible.append(cell)
        studies.sweep(_groups(possible, store, parallel, cluster), store, console, label)
    return len(possible)


def _groups(
    missing: Iterable[Cell], store: Store, parallel: Parallel, cluster: Cluster
) -> Iterator[Group[Cell, Trace]]:
    """Groups of cells that may run at the same time. Emulated ones are grouped by seed: a study that is stopped has
    whole seeds."""
    groups: dict[str, list[Cell]] = {}
    for cell in missing:
        share, count = names.percent(cell.share), parallel.of(cell)
        emulated = f"emulated cells, seed {cell.seed}, exchange {share} of a step, {kind(cell)}, {count} at once"
        groups.setdefault("simulated cells" if cell.engine == "simulated" else emulated, []).append(cell)
    for title, mine in groups.items():
        # The large model last; and of each seed the long cells first, or one of them might run alone at the end.
        mine.sort(key=lambda cell: (cell.model != "mlp", cell.seed, cell.exchange not in ("server", "rpc")))
        simulated, processes = mine[0].engine == "simulated", parallel.of(mine[0])
        outputs.check(store.directory, max(room(cell) for cell in mine) * processes)
        run = partial(run_cell, None) if simulated else partial(noted, store)
        programs = {cell.strategy: automatic_source(cell.strategy) for cell in mine if cell.automatic}
        profiles = {cell.straggler: stragglers.parse(cell.straggler) for cell in mine}
        delays = {text: each.rows for text, each in profiles.items() if isinstance(each, stragglers.Recorded)}
        where = cluster if simulated else HERE
        yield Group(title, mine, partial(unchanged, programs, delays, run), processes, where, (__name__,))


def label(cell: Cell) -> str:
    """A cell in a few words."""
    what = f"{cell.workers} workers, {cell.model}, {cell.straggler}, {cell.strategy}"
    way = f", {names.way(cell)}" if cell.engine == "emulated" else ""
    return f"{what}{way}, seed {cell.seed}"


def room(cell: Cell) -> int:
    """Bytes of a cell's result and of its files while it runs, estimated on the high side."""
    return cell.workers * (2 * STEP.itemsize + BYTES_PER_STEP) * cell.steps + 2 * outputs.MB


def unchanged(
    programs: Mapping[str, str], delays: Mapping[str, object], run: Callable[[Cell], Trace], cell: Cell
) -> Trace:
    """The result of ``run``. programs: of automatic strategies; delays: of recorded stragglers. Results are named by
    both. Raises SereneError if the file of either has changed since."""
    trace = run(cell)
    if cell.automatic and source_now(automatic_parts(cell.strategy)[0]) != programs[cell.strategy]:
        raise SereneError(f"{cell.strategy}: the file has changed since the study began: rerun")
    profile = stragglers.parse(cell.straggler)
    if isinstance(profile, stragglers.Recorded) and profile.rows_now() != delays[cell.straggler]:
        raise SereneError(f"{cell.straggler}: the file has changed since the study began: rerun")
    return trace


def noted(store: Store, cell: Cell) -> Trace:
    """Runs a cell in this process. If it fails, or the process is killed, the store has the reason."""
    store.note_failure(cell, KILLED)
    try:
        return run_cell(store.directory, cell)
    except Exception as error:
        store.note_failure(cell, f"{type(error).__name__}: {error}")
        raise


def run_cell(scratch: Path | None, cell: Cell) -> Trace:
    """Runs a cell in this process. scratch: a directory for the files of an emulated cell. Raises SereneError."""
    if cell.engine == "emulated":
        from serene.experiments.straggler_study.emulated import emulate

        assert scratch is not None
        return emulate(cell, scratch)
    from serene.experiments.straggler_study.simulated import simulate

    trace, conditions = observed(lambda: simulate(cell))
    return replace(trace, conditions=conditions)
