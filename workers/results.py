"""A worker's results: worker-N.csv gets a row after each step; worker-N.json and parameters-N.npy are written at the
end.

A full disk does not end the training. Rows that cannot be written stay in memory until they can be. Files that cannot
be written at the end go to another directory.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from serene.process import outputs
from serene.process.outputs import CannotWrite

ROOM = 64 * 1024  # upper bound of the bytes that a worker writes in addition to steps and parameters
BYTES_PER_STEP = 200  # upper bound, of worker-N.csv


class WorkerFiles:
    """One worker's files, in ``directory``. If that cannot be written at the end, they go to ``instead``, if given, or
    to any place with enough room. columns: of worker-N.csv."""

    def __init__(self, directory: Path, instead: Path | None, worker: int, columns: Sequence[str]) -> None:
        self._directory, self._instead, self._worker = directory, instead, worker
        self._columns = list(columns)
        # The number of bytes of worker-N.csv that are certainly written, and the whole lines that have to follow them.
        # Both are in one attribute, because an interrupt may come between any two statements. Lines that are written a
        # second time then overwrite the first copy.
        self._unwritten = 0, b""
        self._steps = directory / f"worker-{worker}.csv"
        self._file: io.FileIO | None = None

    def begin(self, steps: int, parameters: int) -> None:
        """Creates worker-N.csv. Raises CannotWrite if that fails, or if there is no room for this number of steps and
        parameters."""
        outputs.check(self._directory, ROOM + BYTES_PER_STEP * steps + 4 * parameters)
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._file = self._steps.open("wb", buffering=0)
        except OSError as error:
            raise CannotWrite(f"cannot write {self._directory}: {error.strerror}") from error
        self._append(self._line(self._columns))

    def step(self, row: Mapping[str, Any]) -> None:
        """Adds a step's row. row: values by column; missing columns stay empty."""
        self._append(self._line([row.get(name) for name in self._columns]))

    @staticmethod
    def _line(values: Sequence[Any]) -> bytes:
        text = io.StringIO(newline="")
        csv.writer(text).writerow(values)
        return text.getvalue().encode()

    def _append(self, line: bytes) -> None:
        """Writes a line after those that could not be written before. If that fails again, all stay in memory."""
        assert self._file is not None
        place, lines = self._unwritten
        lines += line
        self._unwritten = place, lines
        written = 0
        try:
            while written < len(lines):
                written += os.pwrite(self._file.fileno(), lines[written:], place + written)
        except OSError:
            with suppress(OSError):  # removes an incomplete line; truncating works on a full disk, too
                self._file.truncate(place)
            return
        self._unwritten = place + written, b""

    def finish(self, results: Mapping[str, Any], parameters: np.ndarray) -> Path:
        """Writes ``results`` as worker-N.json and ``parameters``, float32[size], as parameters-N.npy. Returns the
        directory that has all files. Raises CannotWrite if that is neither ``directory`` nor ``instead``; the message
        names the place."""
        assert self._file is not None

        def write_rest(directory: Path) -> None:
            with outputs.whole(directory / f"parameters-{self._worker}.npy") as file:
                np.save(file, parameters)
            with outputs.whole(directory / f"worker-{self._worker}.json") as file:
                file.write(json.dumps(results, indent=2).encode() + b"\n")

        def write_everything(directory: Path) -> None:
            place, lines = self._unwritten
            with outputs.whole(directory / self._steps.name) as file, self._steps.open("rb") as written:
                file.write(written.read(place) + lines)
            write_rest(directory)

        self._append(b"")
        self._file.close()
        try:
            if self._unwritten[1]:
                write_everything(self._directory)
            else:
                write_rest(self._directory)
            return self._directory
        except OSError as error:
            if self._instead is not None:
                try:
                    self._instead.mkdir(mode=0o700, exist_ok=True)
                    write_everything(self._instead)
                    return self._instead
                except OSError:
                    pass
            where = outputs.elsewhere(write_everything, self._directory)
            place = f"the results are in {where} instead" if where else "nor anywhere else"
            raise CannotWrite(f"cannot write {self._directory}: {error.strerror}; {place}", where is None) from error
