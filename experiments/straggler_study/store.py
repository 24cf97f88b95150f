"""The study's results on disk: a file for each cell, named by the cell's digest."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from serene import outputs
from serene.experiments.shared import studies
from serene.experiments.straggler_study.cell import Cell
from serene.experiments.straggler_study.trace import BadTrace, Trace


class Store:
    """A directory of results, which is made if need be. A file appears when it is complete."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def path(self, cell: Cell) -> Path:
        """The file of a cell's result."""
        return self.directory / f"{cell.digest}.npz"

    def get(self, cell: Cell) -> Trace | None:
        """A cell's result; None if there is none. A result that cannot be read is removed, so that the cell runs
        again."""
        path = self.path(cell)
        if not path.exists():
            return None
        try:
            return Trace.load(path)
        except BadTrace:
            with contextlib.suppress(OSError):  # if that fails, so will writing the new result, with an error
                path.unlink()
            return None

    def has(self, cell: Cell) -> bool:
        """Whether there is a file with a cell's result. It may turn out to be unreadable."""
        return self.path(cell).exists()

    def keep(self, cell: Cell, trace: Trace) -> None:
        """Writes a cell's result. Raises CannotWrite; the message says where the result is instead."""
        trace.save(self.path(cell))
        self._failure(cell).unlink(missing_ok=True)

    def _failure(self, cell: Cell) -> Path:
        return self.directory / f"{cell.digest}.failed"

    def note_failure(self, cell: Cell, reason: str) -> None:
        """Notes why a cell has no result, until it has one. Raises CannotWrite."""
        outputs.write_text(self._failure(cell), reason + "\n")

    def why_missing(self, cell: Cell) -> str:
        """Why a cell has no result."""
        path = self._failure(cell)
        return path.read_text().strip() if path.exists() else "was not run"

    def missing(self, cells: Iterable[Cell]) -> list[Cell]:
        """The cells that have no readable result, each once."""
        return [cell for cell in dict.fromkeys(cells) if self.get(cell) is None]

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Locks the directory until the end of the block, and removes what a killed sweep has left. Raises Busy."""
        with studies.alone(self.directory):
            for path in self.directory.glob(".*.npz.*"):
                path.unlink(missing_ok=True)
            for path in self.directory.glob(".run-*"):
                shutil.rmtree(path, ignore_errors=True)
            yield
