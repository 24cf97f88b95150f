"""A study's results on disk: a file for each cell that is done, which appears when it is complete."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any, Generic, TypeVar

from serene.errors import SereneError
from serene.experiments.shared import machine
from serene.process import outputs
from serene.process.locks import locked

# How the folders of cells that run begin. Not as a training's own: a study with OUT=runs must not remove those.
SCRATCH = ".cell-"

DAMAGED = (ValueError, KeyError, TypeError, RecursionError)  # what reading other contents raises, in any format
C = TypeVar("C")  # cell
R = TypeVar("R")  # result


class BadResult(SereneError):
    """A file is missing, or is no complete result."""


class CannotRead(SereneError):
    """A file cannot be read now. It may hold a result, so it is kept."""


class Busy(SereneError):
    """Another run writes to the same directory."""


@contextlib.contextmanager
def alone(directory: Path) -> Iterator[None]:
    """Locks a directory, which is made if need be, until the end of the block: only one run at a time writes to it.
    Raises Busy."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as lock:
        if not locked(lock):
            raise Busy(f"{directory} is in use by another run: wait for it, or choose another OUT")
        yield


def contents(path: Path) -> bytes:
    """What is in a result's file. Raises BadResult if there is no file, else CannotRead."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, IsADirectoryError) as error:
        raise BadResult(f"{path} is no file: {error.strerror}") from None
    except OSError as error:
        raise CannotRead(f"cannot read {path}: {error.strerror}") from None


class Store(Generic[C, R]):
    """A directory of results, which is made if need be. A subclass names, reads and writes the files."""

    suffix = ".json"

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._locked = False
        directory.mkdir(parents=True, exist_ok=True)

    def name(self, cell: C) -> str:
        """The name of a cell's file, without its suffix."""
        return str(cell)

    def read(self, path: Path) -> R | None:
        """The result in a file; None if an earlier version wrote it. Raises BadResult or CannotRead."""
        raise NotImplementedError

    def write(self, path: Path, cell: C, result: R) -> None:
        """Writes a file. Raises CannotWrite."""
        raise NotImplementedError

    def path(self, cell: C) -> Path:
        """The file of a cell's result."""
        return self.directory / f"{self.name(cell)}{self.suffix}"

    def get(self, cell: C) -> R | None:
        """A cell's result; None if there is none. A damaged result is removed, so that the cell runs again.
        Raises CannotRead."""
        path = self.path(cell)
        if not path.exists():
            return None
        try:
            return self.read(path)
        except BadResult:
            with contextlib.suppress(OSError):  # if that fails, so will writing the new result, with an error
                path.unlink()
            return None

    def has(self, cell: C) -> bool:
        """Whether there is a file with a cell's result. It may turn out to be unreadable."""
        return self.path(cell).exists()

    def keep(self, cell: C, result: R) -> None:
        """Writes a cell's result. Raises CannotWrite; the message states where the result is instead."""
        self.write(self.path(cell), cell, result)
        self._failure(cell).unlink(missing_ok=True)

    def missing(self, cells: Iterable[C]) -> list[C]:
        """The cells that have no readable result, each once."""
        return [cell for cell in dict.fromkeys(cells) if self.get(cell) is None]

    def _failure(self, cell: C) -> Path:
        return self.directory / f"{self.name(cell)}.failed"

    def note_failure(self, cell: C, reason: str) -> None:
        """Notes why a cell has no result, until it has one. Raises CannotWrite."""
        outputs.write_text(self._failure(cell), reason + "\n")

    def why_missing(self, cell: C) -> str:
        """Why a cell has no result."""
        path = self._failure(cell)
        return path.read_text().strip() if path.exists() else "was not run"

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Locks the directory until the end of the block, and removes what a killed run has left. Within such a block
        of the same store it does nothing. Raises Busy."""
        if self._locked:
            yield
            return
        with alone(self.directory):
            for path in self.directory.glob(f".*{self.suffix}.*"):
                path.unlink(missing_ok=True)
            for path in self.directory.glob(f"{SCRATCH}*"):
                shutil.rmtree(path, ignore_errors=True)
            self._locked = True
            try:
                yield
            finally:
                self._locked = False


class JsonStore(Store[C, dict[str, Any]]):
    """Results that are JSON, beside the cell, a dataclass, the machine and the date. version: of results, to be raised
    when earlier ones are wrong."""

    def __init__(self, directory: Path, version: int) -> None:
        super().__init__(directory)
        self._version = version

    def read(self, path: Path) -> dict[str, Any] | None:
        try:
            found = json.loads(contents(path))
            return dict(found["result"]) if found["version"] == self._version else None
        except DAMAGED as error:
            raise BadResult(f"{path} is not a result: {error!r}") from error

    def write(self, path: Path, cell: C, result: dict[str, Any]) -> None:
        head = {"version": self._version, "cell": asdict(cell), "machine": machine.here()}  # type: ignore[call-overload]
        outputs.write_text(path, json.dumps({**head, "date": date.today().isoformat(), "result": result}) + "\n")
