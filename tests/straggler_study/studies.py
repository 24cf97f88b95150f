"""A small study with made-up traces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from serene.experiments.shared.machine import Conditions
from serene.experiments.straggler_study import grid, names
from serene.experiments.straggler_study.cell import Cell
from serene.experiments.straggler_study.grid import Grid, Length
from serene.experiments.straggler_study.study import Study
from serene.experiments.straggler_study.trace import STEP, Store, Swap, Trace

SHARE, STEPS = 0.65, 12
COMPUTED_S = 0.4


def study(directory: Path, trace: Callable[[Cell], Trace]) -> Study:
    """Every way and strategy at one share, and BSP and SSP(10) without stragglers, for two seeds. trace: of a cell."""
    found: list[Cell] = []
    for seed in (1, 2):
        one = grid.cell("mlp", SHARE, grid.SLOW, "bsp", seed, Length(STEPS, 1))
        calm = replace(one, straggler=grid.NONE)
        found += [*grid.ways(one, scapy=True), calm, replace(calm, strategy="ssp:10")]
    cells = tuple(found)
    small = Grid("quick", cells, grid.twins(cells), (), (), {"mlp": 0.5}, {})
    store = Store(directory / "cells")
    for cell in small.cells():
        store.keep(cell, trace(cell))
    return Study(small, store)


def trace(
    cell: Cell, step_s: float, waited_s: tuple[float, ...] = (0.01,) * 4, *, learns: float = 0.1,
    facts: dict[str, float] | None = None,
) -> Trace:  # fmt: skip
    """All workers' steps last as long; accuracy grows by ``learns`` with each. waited_s: each worker's, of a step."""
    rows = [
        (worker, step, began, began + COMPUTED_S, began + step_s, waited_s[worker], 1, 4, 0.0, min(step * learns, 1.0))
        for step in range(1, STEPS + 1)
        for began in [(step - 1) * step_s]
        for worker in range(cell.workers)
    ]
    counted = 48.0 if cell.exchange == "switch" else float("nan")
    known = {"contributions_sent": counted, "contributions_applied": counted, "miscounted": 0.0, "retransmissions": 0.0}
    swaps = [Swap(0.0, "BSP"), *([Swap(1.0, "SSP(3)"), Swap(2.0, "SSP(1)")] if cell.automatic else [])]
    return Trace(
        cell, np.array(rows, STEP), np.zeros((cell.workers, 16)), tuple(swaps), 0.0,
        {**known, "engine_s": 1.0, **(facts or {})}, Conditions(f"a machine that {cell.engine}", 0.5, 1.5, 0.1),
    )  # fmt: skip


def paced_study(directory: Path, paces: dict[str, float]) -> Study:
    """paces: seconds a step by a way's or strategy's name; else 1."""

    def paced(cell: Cell) -> Trace:
        pace = paces.get(names.way(cell), 1.0) * paces.get(cell.strategy, 1.0) * (1 + cell.seed / 100)
        return trace(cell, pace, ((0.3 if cell.strategy == "bsp" else 0.01),) * 4)

    return study(directory, paced)
