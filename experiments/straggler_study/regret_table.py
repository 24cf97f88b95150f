"""The regrets as a file, ``cell,strategy,regret``, and as the table of a page."""

from __future__ import annotations

import csv
import io
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from serene.experiments.shared import page_tables
from serene.experiments.shared.records import to_csv as records_to_csv
from serene.experiments.straggler_study.cases import STRAGGLERS

COLUMNS = ("strategy", "cells", "mean", "worst", "at most 1.05", *STRAGGLERS)


@dataclass(frozen=True)
class Regret:
    """A row of the results."""

    cell: str
    strategy: str
    regret: float

    @property
    def straggler(self) -> str:
        """The key in STRAGGLERS."""
        return self.cell.split(", ")[2]


def summary(found: Sequence[Regret]) -> list[tuple[str, ...]]:
    """The table's rows, the best mean first. Its last columns are means by straggler."""
    by: dict[str, list[Regret]] = {}
    for each in found:
        by.setdefault(each.strategy, []).append(each)
    rows = []
    for name, mine in sorted(by.items(), key=lambda item: np.mean([each.regret for each in item[1]])):
        values = np.array([each.regret for each in mine])
        kinds = [[each.regret for each in mine if each.straggler == kind] for kind in STRAGGLERS]
        numbers = (f"{number:.2f}" for number in (values.mean(), values.max()))
        means = (f"{np.mean(kind):.2f}" if kind else "-" for kind in kinds)
        rows.append((name, str(len(mine)), *numbers, f"{np.mean(values <= 1.05):.0%}", *means))
    return rows


def to_csv(found: Iterable[Regret]) -> str:
    """``cell,strategy,regret``, a row each."""
    return records_to_csv(Regret, found)


def from_csv(text: str) -> list[Regret]:
    """What ``to_csv`` wrote."""
    return [Regret(row["cell"], row["strategy"], float(row["regret"])) for row in csv.DictReader(io.StringIO(text))]


def write_page(page: Path, found: Sequence[Regret], told: str) -> None:
    """Writes a paragraph and the table into the page's part ``regret``. Raises SereneError if there is none."""
    table = page_tables.markdown(COLUMNS, summary(found))
    page_tables.write(page, {"regret": f"{textwrap.fill(told, 130)}\n\n{table}"})
