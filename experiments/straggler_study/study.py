"""All results of a grid, and the questions that are asked of them: medians over seeds, changes against BSP."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from experiments.straggler_study.cell import Cell
from experiments.straggler_study.grid import Grid
from experiments.straggler_study.measures import Numbers, numbers
from experiments.straggler_study.store import Store
from experiments.straggler_study.trace import Trace
from serene.errors import SereneError


class Incomplete(SereneError):
    """Results that a report needs and that are not there."""


@dataclass(frozen=True)
class Spread:
    """A number with its spread over the seeds: median, lowest, highest; NaN where a seed did not get there.

    count: seeds that have it; wanted: those that should. bounds: of how many seeds it is an upper bound only, because
    what it is compared with never got there.
    """

    middle: float
    low: float
    high: float
    count: int
    wanted: int = 0
    bounds: int = 0

    @classmethod
    def of(cls, values: Iterable[float], wanted: int = 0, bounds: int = 0) -> Spread:
        """A run that never reached its target counts as infinitely slow, so that the median is not biased."""
        given = np.array([np.inf if np.isnan(value) else value for value in values])
        if not given.size:
            return cls(np.nan, np.nan, np.nan, 0, wanted, bounds)
        middle = float(np.median(given))
        return cls(middle, float(given.min()), float(given.max()), int(given.size), wanted, bounds)

    def percent(self) -> str:
        """As a change: -12.3 % [-15.0, -10.1]."""
        if not self.count:
            return "no result" if self.wanted else "-"
        seeds = f", {self.count} of {self.wanted} seeds" if self.count < self.wanted else ""
        if not np.isfinite(self.middle):
            return f"not reached{seeds}"
        bound = f", or less: the other never got there in {self.bounds} of {self.count}" if self.bounds else ""
        return f"{100 * self.middle:+.1f} % [{100 * self.low:+.1f}, {_shown(100 * self.high, '+.1f')}]{bound}{seeds}"

    def text(self, form: str = ".1f", unit: str = "") -> str:
        if not np.isfinite(self.middle):
            return "not reached" if self.count else "-"
        return f"{self.middle:{form}}{unit} [{self.low:{form}}, {_shown(self.high, form)}]"


def _shown(value: float, form: str) -> str:
    return f"{value:{form}}" if np.isfinite(value) else "never"


def _change(name: str, pairs: Sequence[tuple[Numbers, Numbers]], wanted: int) -> Spread:
    """Of what a target took (``target_s``, for instance): what never got there is infinitely more than what did. Where
    only the other one never got there, it is compared with all that the other took, which bounds the change."""
    changes, bounds = [], 0
    for mine, theirs in pairs:
        one, other = float(getattr(mine, name)), float(getattr(theirs, name))
        if np.isnan(other) and not np.isnan(one):
            other, bounds = float(getattr(theirs, name.replace("target", "whole"))), bounds + 1
        changes.append(one / other - 1)
    return Spread.of(changes, wanted, bounds)


def _in_exchange(numbers: Numbers) -> float:
    """Seconds a step."""
    return numbers.network_s + numbers.waiting_s


@dataclass(frozen=True)
class Changes:
    """A strategy against BSP, seed by seed: whole time to the target, time per step, steps to the target, waiting, and
    all time in the exchange, waiting included."""

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
        """Raises Incomplete where a simulated result is missing, naming how many; an emulated one that is missing is
        reported on the page."""
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
        found = self.store.get(cell)
        if found is None:
            raise Incomplete(f"no result for {cell}: run the sweep again")
        return found

    def numbers(self, cell: Cell) -> Numbers:
        if cell not in self._numbers:
            self._numbers[cell] = numbers(self.trace(cell), self.grid.targets.get(cell.model, float("nan")))
        return self._numbers[cell]

    # -- what there is ---------------------------------------------------------------------------------------

    @cached_property
    def _wanted(self) -> dict[Cell, list[Cell]]:
        """Cells that differ in their seed alone."""
        groups: dict[Cell, list[Cell]] = {}
        for cell in self.grid.cells():
            groups.setdefault(replace(cell, seed=0), []).append(cell)
        return groups

    @cached_property
    def _groups(self) -> dict[Cell, list[Cell]]:
        """Those of them that have a result."""
        missing = set(self.missing)
        found = {key: [cell for cell in mine if cell not in missing] for key, mine in self._wanted.items()}
        return {key: mine for key, mine in found.items() if mine}

    def seeds(self, cell: Cell) -> list[Cell]:
        """The cell with each of the grid's seeds that has a result."""
        return self._groups.get(replace(cell, seed=0), [])

    def wanted(self, cell: Cell) -> list[Cell]:
        """The cell with each of the grid's seeds."""
        return self._wanted.get(replace(cell, seed=0), [])

    def strategies(self, cells: Sequence[Cell], workers: int, straggler: str, share: float) -> list[Cell]:
        """One cell (of any seed) for each strategy that a case has."""
        mine = [cell for cell in cells if (cell.workers, cell.straggler, cell.share) == (workers, straggler, share)]
        return list({cell.strategy: cell for cell in mine}.values())

    def headline(self, model: str, straggler: str, share: float) -> list[Cell]:
        """One cell (of any seed) for each way and strategy, in the order of the grid, whether or not it has results."""
        mine = [
            cell for cell in self.grid.headline if (cell.model, cell.straggler, cell.share) == (model, straggler, share)
        ]
        return list({replace(cell, seed=0): cell for cell in mine}.values())

    def cases(self) -> list[tuple[str, str, list[float]]]:
        """Model, straggler and the shares that were run, in the order of the grid: the headline first."""
        found: dict[tuple[str, str], dict[float, None]] = {}
        for cell in self.grid.headline:
            found.setdefault((cell.model, cell.straggler), {})[cell.share] = None
        return [(*case, list(shares)) for case, shares in found.items()]

    # -- numbers ---------------------------------------------------------------------------------------------

    def spread(self, cell: Cell, what: str) -> Spread:
        """Of one of the Numbers, over the seeds."""
        return Spread.of(float(getattr(self.numbers(each), what)) for each in self.seeds(cell))

    def against(self, cell: Cell, other: Cell, seeds: Sequence[int] | None = None) -> Changes:
        """Changes, paired by seed: the same seed has the same data, batches, initial parameters and delays.
        seeds: those that count; None: all."""
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
        """The one with the shortest median time to the target, by these seeds alone."""

        def middle(cell: Cell) -> float:
            return Spread.of(self.numbers(each).target_s for each in self.seeds(cell) if each.seed in seeds).middle

        return min(cells, key=middle)
