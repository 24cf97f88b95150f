"""Estimates how long missing cells will take."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from serene.experiments.shared import estimate
from serene.experiments.shared import machine as shared_machine
from serene.experiments.straggler_study import grid, machine
from serene.experiments.straggler_study.cell import Cell
from serene.experiments.straggler_study.store import Store
from serene.workers import stragglers

# Seconds on an Intel Xeon: of an emulated run's beginning and end, and of a simulated step of a worker, by model, with
# its share of the evaluations.
EMULATED_S = 8.0
SIMULATED_S = {"nothing": 0.0006, "softmax": 0.0007, "mlp": 0.007, "cnn-large": 0.1}


def expected_s(cell: Cell) -> float:
    """Seconds that a cell takes, about, by its settings."""
    if cell.engine == "simulated":
        return cell.steps * cell.workers * SIMULATED_S.get(cell.model, max(SIMULATED_S.values()))
    computing = cell.compute_ms / 1e3
    exchange = computing * cell.share / (1 - cell.share)
    if cell.exchange == "server":
        exchange *= cell.workers  # the vectors of all workers pass the server's link
    return EMULATED_S + cell.steps * (computing * _slowed(cell) + exchange)


def _slowed(cell: Cell) -> float:
    """The compute time of the slowest worker relative to the mean, averaged over the first steps."""
    profile, steps = stragglers.parse(cell.straggler), range(1, min(cell.steps, 20) + 1)
    longest = [max(profile.delay(worker, step, 1.0, cell.seed) for worker in range(cell.workers)) for step in steps]
    return 1 + sum(longest) / len(longest)


def announced(cells: Sequence[Cell], store: Store, at_once: Callable[[Cell], int]) -> str:
    """What to print before the cells run. at_once: how many cells like this one run at a time."""
    done = [(cell, trace) for cell in dict.fromkeys(cells) if (trace := store.get(cell)) is not None]
    there = {cell for cell, _ in done}
    missing = [cell for cell in dict.fromkeys(cells) if cell not in there and not grid.why_not(cell)]
    ours = (machine.here(), shared_machine.here())
    here = [(cell, trace) for cell, trace in done if trace.conditions.machine in ours]
    paces = {
        engine: estimate.pace(
            (trace.facts["engine_s"], expected_s(cell)) for cell, trace in here if cell.engine == engine
        ) or 1.0
        for engine in ("emulated", "simulated")
    }  # fmt: skip
    seconds = sum(paces[cell.engine] * expected_s(cell) / at_once(cell) for cell in missing)
    return estimate.announcement(len(done), len(done) + len(missing), seconds, len(here))
