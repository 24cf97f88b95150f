"""Runs of a results file that need not run again: in virtual time a run has the same result on every machine, as long
as NumPy computes the same. One recorded run is repeated first, to see that."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from serene.errors import SereneError
from serene.experiments.straggler_study.cases import Case
from serene.experiments.straggler_study.cell import Cell
from serene.experiments.straggler_study.measures import SETTINGS

PUBLISHED = Path("docs/results/regret-runs.csv")  # in the repository, where make runs
OF_A_TARGET = ("model", "learning_rate", "momentum", "workers")


class Recorded:
    """The rows of a file that ``regret.py --runs`` wrote, by their cells' digests; values are texts, as in the file.
    file: None for no rows. Raises SereneError if it is no such file."""

    def __init__(self, file: Path | None) -> None:
        self.file, self._rows, self._targets = file, {}, {}
        if file is None:
            return
        try:
            rows = pd.read_csv(file, dtype=str, keep_default_na=False).to_dict("records")
            self._rows = {row["run"]: {str(name): value for name, value in row.items()} for row in rows}
            self._targets = {tuple(float(row[name]) if name != "model" else row[name] for name in OF_A_TARGET):
                             float(row["until"]) for row in rows}  # fmt: skip
        except (OSError, ValueError, KeyError) as error:
            raise SereneError(f"--recorded {file}: not a file that --runs wrote ({error})") from None

    def __contains__(self, cell: Cell) -> bool:
        return cell.digest in self._rows

    def row(self, cell: Cell) -> dict[str, object]:
        """A recorded run's row."""
        return dict(self._rows[cell.digest])

    def until(self, case: Case) -> float | None:
        """The accuracy to reach in a cell; None if no run of its model, optimiser and size is recorded."""
        cell = case.cell("bsp", 1)
        return self._targets.get(tuple(getattr(cell, name) for name in OF_A_TARGET))

    def differences(self, cell: Cell, row: Mapping[str, object]) -> list[str]:
        """What is different in the row of the same run, made here."""
        return [
            f"{name} {value} recorded, {row[name]} here"
            for name, value in self._rows[cell.digest].items()
            if name not in SETTINGS and str(row.get(name)) != value
        ]
