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
from serene.experiments.straggler_study.store import Store
from serene.experiments.straggler_study.study import Study
from serene.experiments.straggler_study.trace import STEP, Swap, Trace

SHARE, STEPS = 0.65, 12


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


def trace(cell: Cell, step_s: float, waited_s: float) -> Trace:
    """Accuracy grows by a tenth with every step; each takes so long, so much of it in the network."""
    rows = [
        (
            worker,
            step,
            (step - 1) * step_s,
            (step - 0.6) * step_s,
            step * step_s,
            waited_s,
            1,
            4,
            0.0,
            min(step / 10, 1),
        )
        for step in range(1, STEPS + 1)
        for worker in range(cell.workers)
    ]
    facts = dict.fromkeys(("contributions_sent", "contributions_applied"), 48.0)
    facts |= {"retransmissions": 0.0, "engine_s": 1.0, "miscounted": 0.0}
    swaps = (Swap(0.0, "BSP"), Swap(1.0, "SSP(3)")) if cell.automatic else (Swap(0.0, "BSP"),)
    conditions = Conditions(f"a machine that {cell.engine}", 0.5, 1.5, 0.1)
    return Trace(cell, np.array(rows, STEP), np.zeros((cell.workers, 16)), swaps, 0.0, facts, conditions)


def paced_study(directory: Path, paces: dict[str, float]) -> Study:
    """paces: seconds a step by a way's or strategy's name; else 1."""

    def paced(cell: Cell) -> Trace:
        pace = paces.get(names.way(cell), 1.0) * paces.get(cell.strategy, 1.0) * (1 + cell.seed / 100)
        return trace(cell, pace, 0.3 if cell.strategy == "bsp" else 0.01)

    return study(directory, paced)
