"""What a worker leaves: worker-N.csv, a row for every step as it is done; at the end worker-N.json, parameters-N.npy.

A disk that fills up does not end the training. Steps that cannot be written are kept in memory until they can be, and
what cannot be written at the end goes to another directory.
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

from serene import outputs
from serene.outputs import CannotWrite

ROOM = 64 * 1024  # besides steps and parameters
BYTES_PER_STEP = 200


class WorkerFiles:
    """One worker's files in ``directory``; in ``instead``, or wherever there is room, if that takes them no more."""

    def __init__(self, directory: Path, instead: Path | None, worker: int, columns: Sequence[str]) -> None:
        self._directory, self._instead, self._worker = directory, instead, worker
        self._columns = list(columns)
        # Bytes of the file that are known to be written, and the whole lines that belong behind them. In one piece: a
        # signal may end the work between any two lines of this file, and what is written again takes the same place.
        self._unwritten = 0, b""
        self._steps = directory / f"worker-{worker}.csv"
        self._file: io.FileIO | None = None

    def begin(self, steps: int, parameters: int) -> None:
        """Before the work: is there room for so many steps and parameters? Raises CannotWrite."""
        outputs.check(self._directory, ROOM + BYTES_PER_STEP * steps + 4 * parameters)
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._file = self._steps.open("wb", buffering=0)
        except OSError as error:
            raise CannotWrite(f"cannot write {self._directory}: {error.strerror}") from error
        self._append(self._line(self._columns))

    def step(self, row: Mapping[str, Any]) -> None:
        self._append(self._line([row.get(name) for name in self._columns]))

    @staticmethod
    def _line(values: Sequence[Any]) -> bytes:
        text = io.StringIO(newline="")
        csv.writer(text).writerow(values)
        return text.getvalue().encode()

    def _append(self, line: bytes) -> None:
        """To the file, after what could not be written before: whole lines, or nothing."""
        assert self._file is not None
        place, lines = self._unwritten
        lines += line
        self._unwritten = place, lines
        written = 0
        try:
            while written < len(lines):
                written += os.pwrite(self._file.fileno(), lines[written:], place + written)
        except OSError:
            with suppress(OSError):  # shorter it can be made on a full disk, too
                self._file.truncate(place)
            return
        self._unwritten = place + written, b""

    def finish(self, results: Mapping[str, Any], parameters: np.ndarray) -> Path:
        """The end of the work; the directory in which everything is. Raises CannotWrite if that is neither of the two
        named; it says where it is instead."""
        assert self._file is not None

        def rest(directory: Path) -> None:
            with outputs.whole(directory / f"parameters-{self._worker}.npy") as file:
                np.save(file, parameters)
            with outputs.whole(directory / f"worker-{self._worker}.json") as file:
                file.write(json.dumps(results, indent=2).encode() + b"\n")

        def everything(directory: Path) -> None:
            place, lines = self._unwritten
            with outputs.whole(directory / self._steps.name) as file, self._steps.open("rb") as written:
                file.write(written.read(place) + lines)
            rest(directory)

        self._append(b"")
        self._file.close()
        try:
            if self._unwritten[1]:
                everything(self._directory)
            else:
                rest(self._directory)
            return self._directory
        except OSError as error:
            if self._instead is not None:
                try:
                    self._instead.mkdir(mode=0o700, exist_ok=True)
                    everything(self._instead)
                    return self._instead
                except OSError:
                    pass
            where = outputs.elsewhere(everything, self._directory)
            place = f"the results are in {where} instead" if where else "nor anywhere else"
            raise CannotWrite(f"cannot write {self._directory}: {error.strerror}; {place}", where is None) from error
