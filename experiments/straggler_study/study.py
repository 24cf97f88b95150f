"""The results of a grid, and what the report computes from them: medians over seeds, and changes seed by seed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
import pandas as pd

from serene.errors import SereneError
from serene.experiments.straggler_study.cell import Cell
from serene.experiments.straggler_study.grid import Grid
from serene.experiments.straggler_study.measures import Numbers, numbers
from serene.experiments.straggler_study.names import Training
from serene.experiments.straggler_study.trace import Store, Trace

SAME = 0.03  # a relative change below this counts as none
Table = tuple[list[str], list[list[str]]]  # head, rows


class Incomplete(SereneError):
    """Results are missing that the report needs."""


@dataclass(frozen=True)
class Spread:
    """A number over the seeds: median, lowest and highest. Infinite: the target was not reached. NaN: there is no seed.

    count: seeds that have a result. wanted: seeds that should have one. bounds: for how many seeds the change is only
    an upper bound, because the run that it is compared with never reached the target.
    """

    middle: float
    low: float
    high: float
    count: int
    wanted: int = 0
    bounds: int = 0

    @classmethod
    def of(cls, values: Iterable[float], wanted: int = 0, bounds: int = 0) -> Spread:
        """The spread of values. NaN, a run that never reached its target, counts as infinite: leaving it out would bias
        the median."""
        given = np.array([np.inf if np.isnan(value) else value for value in values])
        if not given.size:
            return cls(np.nan, np.nan, np.nan, 0, wanted, bounds)
        middle = float(np.median(given))
        return cls(middle, float(given.min()), float(given.max()), int(given.size), wanted, bounds)

    @property
    def less(self) -> bool:
        """Whether a time became less with all seeds, by SAME or more in the median."""
        return bool(self.count) and self.high < 0 and self.middle <= -SAME

    def percent(self) -> str:
        """A change as text: -12.3 % [-15.0, -10.1]."""
        if not self.count:
            return "no result" if self.wanted else "-"
        seeds = f", {self.count} of {self.wanted} seeds" if self.count < self.wanted else ""
        if not np.isfinite(self.middle):
            return f"not reached{seeds}"
        bound = f", or less: the other never got there in {self.bounds} of {self.count}" if self.bounds else ""
        scatter = f" [{100 * self.low:+.1f}, {_shown(100 * self.high, '+.1f')}]" if self.count > 1 else ""
        return f"{100 * self.middle:+.1f} %{scatter}{bound}{seeds}"

    def text(self, form: str = ".1f", unit: str = "") -> str:
        """A number as text: 12.3 [10.1, 15.0]."""
        if not np.isfinite(self.middle):
            return "not reached" if self.count else "-"
        return f"{self.middle:{form}}{unit} [{self.low:{form}}, {_shown(self.high, form)}]"


def _shown(value: float, form: str) -> str:
    return f"{value:{form}}" if np.isfinite(value) else "never"


class Study:
    """A grid's results."""

    def __init__(self, grid: Grid, store: Store) -> None:
        self.grid, self.store = grid, store

    @cached_property
    def runs(self) -> pd.DataFrame:
        """A row for each cell that has a result: ``cell``, ``group``, that cell with seed 0, ``seed`` and the fields of
        `Numbers`."""
        rows = []
        for cell in self.grid.cells():
            if (trace := self.store.get(cell)) is not None:
                found = numbers(trace, self.grid.targets.get(cell.model, float("nan")))
                rows.append({"cell": cell, "group": replace(cell, seed=0), "seed": cell.seed, **vars(found)})
        return pd.DataFrame(rows, columns=["cell", "group", "seed", *(field.name for field in fields(Numbers))])

    @cached_property
    def missing(self) -> dict[Cell, None]:
        """Cells without a result."""
        done = set(self.runs["cell"])
        return {cell: None for cell in self.grid.cells() if cell not in done}

    @cached_property
    def _groups(self) -> dict[Cell, pd.DataFrame]:
        return {group: mine.set_index("seed") for group, mine in self.runs.groupby("group", sort=False)}

    def check(self) -> None:
        """Raises Incomplete if a simulated result is missing, or all emulated ones are. The report itself lists the
        emulated results that are missing."""
        simulated = sum(cell.engine == "simulated" for cell in self.missing)
        if simulated:
            raise Incomplete(f"{simulated} simulated results are missing: run the sweep again")
        if all(cell in self.missing for cell in self.grid.headline):
            raise Incomplete("no emulated result is there: run the sweep again")

    def trace(self, cell: Cell) -> Trace:
        """A cell's result. Raises Incomplete."""
        found = self.store.get(cell)
        if found is None:
            raise Incomplete(f"no result for {cell}: run the sweep again")
        return found

    def of(self, cell: Cell) -> pd.DataFrame:
        """The rows of ``runs`` that differ from this cell in the seed alone, by seed."""
        found = self._groups.get(replace(cell, seed=0))
        return self.runs[:0].set_index("seed") if found is None else found

    @cached_property
    def _wanted(self) -> dict[Cell, list[int]]:
        found: dict[Cell, list[int]] = {}
        for cell in self.grid.cells():
            found.setdefault(replace(cell, seed=0), []).append(cell.seed)
        return found

    def wanted(self, cell: Cell, seeds: Sequence[int] | None = None) -> int:
        """How many cells of the grid differ from this one in the seed alone. seeds: those that count; None: all."""
        mine = self._wanted.get(replace(cell, seed=0), [])
        return len([seed for seed in mine if seeds is None or seed in seeds])

    def headline(self, training: Training, share: float) -> list[Cell]:
        """A cell of the headline, of any seed, for each way and strategy, in the grid's order, with or without a
        result."""
        mine = [cell for cell in self.grid.headline if (Training.of(cell), cell.share) == (training, share)]
        return list({replace(cell, seed=0): cell for cell in mine}.values())

    def spread(self, cell: Cell, what: str) -> Spread:
        """The spread of a number over the seeds. what: a field of `Numbers`."""
        return Spread.of(self.of(cell)[what])

    def change(self, cell: Cell, other: Cell, what: str = "target_s", seeds: Sequence[int] | None = None) -> Spread:
        """The relative change of a number from ``other`` to ``cell``, paired by seed: with the same seed, data,
        batches, initial parameters and delays are the same. what: a field of `Numbers`. seeds: which ones to use; None:
        all.

        If only the first of a pair never reached the target, the change is infinite; if only the second, its whole run
        is taken instead, which makes the change an upper bound.
        """
        by_seed = {"left_index": True, "right_index": True, "suffixes": ("", "_other")}
        pairs = self.of(cell).merge(self.of(other), **by_seed)
        if seeds is not None:
            pairs = pairs[pairs.index.isin(seeds)]
        new, old, bounds = pairs[what], pairs[f"{what}_other"], 0
        if what.startswith("target"):
            bound = old.isna() & new.notna()
            old, bounds = old.mask(bound, pairs[f"{what.replace('target', 'whole')}_other"]), int(bound.sum())
        return Spread.of((new / old - 1)[old != 0], self.wanted(cell, seeds), bounds)

    def best(self, cells: Sequence[Cell], seeds: Sequence[int]) -> Cell:
        """The cell whose strategy has the shortest median time to the target, by these seeds alone."""

        def middle(cell: Cell) -> float:
            mine = self.of(cell)
            return Spread.of(mine["target_s"][mine.index.isin(seeds)]).middle

        return min(cells, key=middle)
