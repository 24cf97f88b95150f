"""A small study with made-up traces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from experiments.straggler_study import grid
from experiments.straggler_study.cell import Cell
from experiments.straggler_study.grid import Grid, Length
from experiments.straggler_study.store import Store
from experiments.straggler_study.study import Study
from experiments.straggler_study.trace import Trace

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
