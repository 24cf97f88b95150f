"""Runs of a results file that need not run again: in virtual time a run has the same result on every machine, as long
as NumPy and PyTorch compute the same. One recorded run of each model is repeated first, to see that."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from serene.errors import SereneError, one_line
from serene.experiments.straggler_study.cases import Case
from serene.experiments.straggler_study.cell import Cell
from serene.experiments.straggler_study.measures import SETTINGS

PUBLISHED = Path("docs/results/regret-runs.csv")  # in the repository, where make runs
OF_A_TARGET = ("model", "learning_rate", "momentum", "workers", "steps")
LONGEST_ERROR = 200  # characters: a parser's error may quote the whole file


class Recorded:
    """The rows of a file that ``regret.py --runs`` wrote, by their cells' digests; values are texts, as in the file.
    file: None for no rows. Raises SereneError if it is no such file."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self._rows = dict[str, dict[str, str]]()
        self._targets = dict[tuple[float | str, ...], float]()
        if file is None:
            return
        try:
            rows = pd.read_csv(file, dtype=str, keep_default_na=False, compression=None).to_dict("records")
            for line, row in enumerate(rows, 2):
                self._add(line, {str(name): value for name, value in row.items()})
        except (OSError, ValueError, KeyError) as error:
            text = one_line(str(error), LONGEST_ERROR)
            raise SereneError(f"--recorded {file}: not a file that --runs wrote ({text})") from None

    def _add(self, line: int, row: dict[str, str]) -> None:
        """Takes a row. line: its number in the file. Raises ValueError or KeyError if a run cannot have it: a file may
        be truncated or edited, and numbers that are missing or wrong would silently change means."""
        if not all(isinstance(value, str) for value in row.values()):
            raise ValueError(f"line {line} is incomplete")
        for name, text in (("s_to_until", row["s_to_until"] or "1"), ("whole_s", row["whole_s"])):
            # pandas reads no 1_000, and no digits of other scripts
            if "_" in text or not text.isascii() or not 0 < float(text) < math.inf:
                raise ValueError(f"line {line} has {name} {text}: expected seconds")
        if self._rows.setdefault(row["run"], row) != row:
            raise ValueError(f"line {line} is another result of run {row['run']}")
        target = tuple(float(row[name]) if name != "model" else row[name] for name in OF_A_TARGET)
        until = float(row["until"])
        if not 0 < until <= 1:
            raise ValueError(f"line {line} has until {until:g}: expected an accuracy, above 0 to 1")
        if self._targets.setdefault(target, until) != until:
            raise ValueError(f"line {line} has until {until:g}: expected {self._targets[target]:g}, as before")

    def __contains__(self, cell: Cell) -> bool:
        return cell.digest in self._rows

    def row(self, cell: Cell) -> dict[str, object]:
        """A recorded run's row. Raises SereneError if its settings are another cell's: the file was edited."""
        row = dict[str, object](self._rows[cell.digest])
        for name in SETTINGS:
            if row.get(name) != (expected := str(getattr(cell, name))):
                raise SereneError(
                    f"--recorded {self.file}: run {cell.digest} has {name} {row.get(name)}: expected {expected}"
                )
        return row

    def until(self, case: Case) -> float | None:
        """The accuracy to reach in a cell; None if no run of its model, optimiser, size and length is recorded."""
        cell = case.cell("bsp", 1)
        return self._targets.get(tuple(getattr(cell, name) for name in OF_A_TARGET))

    def forget(self, model: str) -> None:
        """Drops the runs of a model, and its targets."""
        self._rows = {run: row for run, row in self._rows.items() if row["model"] != model}
        self._targets = {key: until for key, until in self._targets.items() if key[0] != model}

    def differences(self, cell: Cell, row: Mapping[str, object]) -> list[str]:
        """What is different in the row of the same run, made here."""
        recorded = self._rows[cell.digest]
        return [
            f"{name} {recorded.get(name)} recorded, {value} here"
            for name, value in row.items()
            if name not in SETTINGS and str(value) != recorded.get(name)
        ]
