"""The results of a grid, and what the report computes from them: medians over seeds, and changes seed by seed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from serene.errors import SereneError
from serene.experiments.straggler_study.cell import Cell
from serene.experiments.straggler_study.grid import Grid
from serene.experiments.straggler_study.measures import Numbers, numbers
from serene.experiments.straggler_study.store import Store
from serene.experiments.straggler_study.trace import Trace


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

    def percent(self) -> str:
        """A change as text: -12.3 % [-15.0, -10.1]."""
        if not self.count:
            return "no result" if self.wanted else "-"
        seeds = f", {self.count} of {self.wanted} seeds" if self.count < self.wanted else ""
        if not np.isfinite(self.middle):
            return f"not reached{seeds}"
        bound = f", or less: the other never got there in {self.bounds} of {self.count}" if self.bounds else ""
        return f"{100 * self.middle:+.1f} % [{100 * self.low:+.1f}, {_shown(100 * self.high, '+.1f')}]{bound}{seeds}"

    def text(self, form: str = ".1f", unit: str = "") -> str:
        """A number as text: 12.3 [10.1, 15.0]."""
        if not np.isfinite(self.middle):
            return "not reached" if self.count else "-"
        return f"{self.middle:{form}}{unit} [{self.low:{form}}, {_shown(self.high, form)}]"


def _shown(value: float, form: str) -> str:
    return f"{value:{form}}" if np.isfinite(value) else "never"


def _change(name: str, pairs: Sequence[tuple[Numbers, Numbers]], wanted: int) -> Spread:
    """The relative change, pair by pair, of what it took to reach the target. name: ``target_s`` or ``target_steps``.
    If only the first of a pair never reached it, the change is infinite; if only the second, its whole run is taken
    instead, which makes the change an upper bound."""
    changes, bounds = [], 0
    for mine, theirs in pairs:
        one, other = float(getattr(mine, name)), float(getattr(theirs, name))
        if np.isnan(other) and not np.isnan(one):
            other, bounds = float(getattr(theirs, name.replace("target", "whole"))), bounds + 1
        changes.append(one / other - 1)
    return Spread.of(changes, wanted, bounds)


def _in_exchange(numbers: Numbers) -> float:
    """Seconds of a step that are spent in the exchange, with waiting."""
    return numbers.network_s + numbers.waiting_s


@dataclass(frozen=True)
class Changes:
    """Relative changes from one cell to another, seed by seed. time: to the target. step: time per step. steps: to the
    target. waiting: of all workers together. exchange: all time in the exchange, with waiting."""

    time: Spread
    step: Spread
    steps: Spread
    waiting: Spread
    exchange: Spread


@dataclass
class Study:
    """A grid's results."""

    grid: Grid
    store: Store
    _numbers: dict[Cell, Numbers] = field(default_factory=dict)

    def check(self) -> None:
        """Raises Incomplete if a simulated result is missing, or all emulated ones are. The report itself lists the
        emulated results that are missing."""
        missing = [cell for cell in self.missing if cell.engine == "simulated"]
        if missing:
            raise Incomplete(f"{len(missing)} simulated results are missing: run the sweep again")
        if not any(cell not in self.missing for cell in self.grid.headline):
            raise Incomplete("no emulated result is there: run the sweep again")

    @cached_property
    def missing(self) -> list[Cell]:
        """Cells without a result."""
        return self.store.missing(self.grid.cells())

    def trace(self, cell: Cell) -> Trace:
        """A cell's result. Raises Incomplete."""
        found = self.store.get(cell)
        if found is None:
            raise Incomplete(f"no result for {cell}: run the sweep again")
        return found

    def numbers(self, cell: Cell) -> Numbers:
        """A cell's numbers. Raises Incomplete."""
        if cell not in self._numbers:
            self._numbers[cell] = numbers(self.trace(cell), self.grid.targets.get(cell.model, float("nan")))
        return self._numbers[cell]

    # -- what there is ---------------------------------------------------------------------------------------

    @cached_property
    def _wanted(self) -> dict[Cell, list[Cell]]:
        """The grid's cells in groups that differ in the seed alone, by the cell with seed 0."""
        groups: dict[Cell, list[Cell]] = {}
        for cell in self.grid.cells():
            groups.setdefault(replace(cell, seed=0), []).append(cell)
        return groups

    @cached_property
    def _groups(self) -> dict[Cell, list[Cell]]:
        """The wanted groups without the cells that have no result."""
        missing = set(self.missing)
        found = {key: [cell for cell in mine if cell not in missing] for key, mine in self._wanted.items()}
        return {key: mine for key, mine in found.items() if mine}

    def seeds(self, cell: Cell) -> list[Cell]:
        """The cells that differ from this one in the seed alone, and have a result."""
        return self._groups.get(replace(cell, seed=0), [])

    def wanted(self, cell: Cell) -> list[Cell]:
        """The cells of the grid that differ from this one in the seed alone."""
        return self._wanted.get(replace(cell, seed=0), [])

    def strategies(self, cells: Sequence[Cell], workers: int, straggler: str, share: float) -> list[Cell]:
        """A cell, of any seed, for each strategy of a case."""
        mine = [cell for cell in cells if (cell.workers, cell.straggler, cell.share) == (workers, straggler, share)]
        return list({cell.strategy: cell for cell in mine}.values())

    def headline(self, model: str, straggler: str, share: float) -> list[Cell]:
        """A cell of the headline, of any seed, for each way and strategy, in the grid's order, with or without a
        result."""
        mine = [
            cell for cell in self.grid.headline if (cell.model, cell.straggler, cell.share) == (model, straggler, share)
        ]
        return list({replace(cell, seed=0): cell for cell in mine}.values())

    def cases(self) -> list[tuple[str, str, list[float]]]:
        """The headline's models and stragglers, each with its shares, in the grid's order."""
        found: dict[tuple[str, str], dict[float, None]] = {}
        for cell in self.grid.headline:
            found.setdefault((cell.model, cell.straggler), {})[cell.share] = None
        return [(*case, list(shares)) for case, shares in found.items()]

    # -- numbers ---------------------------------------------------------------------------------------------

    def spread(self, cell: Cell, what: str) -> Spread:
        """The spread of a number over the seeds. what: a field of `Numbers`."""
        return Spread.of(float(getattr(self.numbers(each), what)) for each in self.seeds(cell))

    def against(self, cell: Cell, other: Cell, seeds: Sequence[int] | None = None) -> Changes:
        """The changes from ``other`` to ``cell``, paired by seed: with the same seed, data, batches, initial parameters
        and delays are the same. seeds: which ones to use; None: all."""
        others = {each.seed: each for each in self.seeds(other) if seeds is None or each.seed in seeds}
        pairs = [
            (self.numbers(each), self.numbers(others[each.seed])) for each in self.seeds(cell) if each.seed in others
        ]
        wanted = len({each.seed for each in self.wanted(cell) if seeds is None or each.seed in seeds})
        return Changes(
            _change("target_s", pairs, wanted),
            Spread.of((mine.step_s / theirs.step_s - 1 for mine, theirs in pairs), wanted),
            _change("target_steps", pairs, wanted),
            Spread.of(
                (
                    mine.waited_s.sum() / theirs.waited_s.sum() - 1
                    for mine, theirs in pairs
                    if theirs.waited_s.sum() > 0
                ),
                wanted,
            ),
            Spread.of(
                (_in_exchange(mine) / _in_exchange(theirs) - 1 for mine, theirs in pairs if _in_exchange(theirs)),
                wanted,
            ),
        )

    def best(self, cells: Sequence[Cell], seeds: Sequence[int]) -> Cell:
        """The cell whose strategy has the shortest median time to the target, by these seeds alone."""

        def middle(cell: Cell) -> float:
            return Spread.of(self.numbers(each).target_s for each in self.seeds(cell) if each.seed in seeds).middle

        return min(cells, key=middle)
