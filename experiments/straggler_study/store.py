"""Results on disk, one file a cell, named by the cell's digest: what is there need not be run again."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from experiments.shared import studies
from experiments.straggler_study.cell import Cell
from experiments.straggler_study.trace import BadTrace, Trace
from serene import outputs


class Store:
    """A directory of results. Files appear whole."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def path(self, cell: Cell) -> Path:
        return self.directory / f"{cell.digest}.npz"

    def get(self, cell: Cell) -> Trace | None:
        """The cell's result; None if there is none. One that cannot be read is removed: it will be run again."""
        path = self.path(cell)
        if not path.exists():
            return None
        try:
            return Trace.load(path)
        except BadTrace:
            with contextlib.suppress(
                OSError
            ):  # a file that cannot be removed makes writing its successor fail, with an error
                path.unlink()
            return None

    def keep(self, cell: Cell, trace: Trace) -> None:
        """Raises CannotWrite, which says where it is instead."""
        trace.save(self.path(cell))
        self._failure(cell).unlink(missing_ok=True)

    def _failure(self, cell: Cell) -> Path:
        return self.directory / f"{cell.digest}.failed"

    def note_failure(self, cell: Cell, reason: str) -> None:
        """Why there is no result, until there is one. Raises CannotWrite."""
        outputs.write_text(self._failure(cell), reason + "\n")

    def why_missing(self, cell: Cell) -> str:
        """Of a cell without a result."""
        path = self._failure(cell)
        return path.read_text().strip() if path.exists() else "was not run"

    def missing(self, cells: Iterable[Cell]) -> list[Cell]:
        """Those of the cells, once each, that have no readable result."""
        return [cell for cell in dict.fromkeys(cells) if self.get(cell) is None]

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Only one sweep at a time writes here; what a killed one left half-done is removed. Raises Busy."""
        with studies.alone(self.directory):
            for path in self.directory.glob(".*.npz.*"):
                path.unlink(missing_ok=True)
            for path in self.directory.glob(".run-*"):
                shutil.rmtree(path, ignore_errors=True)
            yield
