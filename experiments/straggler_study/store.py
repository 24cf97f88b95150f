"""The study's results on disk: a trace for each cell, named by the cell's digest."""

from __future__ import annotations

from pathlib import Path

from serene.experiments.shared import store
from serene.experiments.straggler_study.cell import Cell
from serene.experiments.straggler_study.trace import Trace


class Store(store.Store[Cell, Trace]):
    """A directory of traces."""

    suffix = ".npz"

    def name(self, cell: Cell) -> str:
        return cell.digest

    def read(self, path: Path) -> Trace:
        return Trace.load(path)

    def write(self, path: Path, cell: Cell, result: Trace) -> None:
        result.save(path)
