"""The paper's open question: does asynchronous exchange need less network?

The time to the accuracy is the time of a round, from the simulation of the network, times the rounds that training
needs, from `efficiency`. The thinnest network is that with the lowest bisection ratio on which training takes at most
SAME times as long as BSP does by the same exchange on the whole network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from serene.experiments.network_study.cells import Answers, TrainingCell
from serene.experiments.network_study.efficiency import Cost
from serene.experiments.network_study.findings import Table
from serene.experiments.network_study.flows.clos import RATIOS
from serene.experiments.network_study.grid import BASE_MS, EXCHANGES, LOCK_STEP, LONG_MS, THINNED, Grid, ratio_name
from serene.experiments.network_study.training import BY_SERVERS
from serene.experiments.shared.style import one_legend, panels, save
from serene.palette import look

SAME = 1.02  # factor, at most, of times that count as the same
NONE = 2.0  # instead of a ratio, where training takes longer even on the whole network
VERDICTS = NO_LESS, NOT_KNOWN, LESS = "no less", "not known", "less"


@dataclass(frozen=True)
class Case:
    """A strategy other than BSP by an exchange on a network. cells: by bisection ratio. bsp: the ratio that BSP needs.
    low, high: the least and the most that the strategy needs, over all optimisers and within the model's error."""

    cell: TrainingCell
    bsp: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """Whether the strategy needs less network than BSP."""
        if self.high < self.bsp:
            return LESS
        return NO_LESS if self.low >= self.bsp else NOT_KNOWN

    @property
    def text(self) -> str:
        """What the strategy needs."""
        low, high = (("more" if ratio == NONE else ratio_name(ratio)) for ratio in (self.low, self.high))
        return low if low == high else f"{low} to {high}"


class Thinness:
    """What each strategy needs, by a grid's answers and the costs of lateness by optimiser."""

    def __init__(self, answers: Answers, grid: Grid, costs: Mapping[str, Cost]) -> None:
        self._answers, self._grid, self.costs = answers, grid, costs

    def groups(self) -> list[tuple[tuple[int, int], float]]:
        """The networks with the computing of an iteration in ms."""
        first, *others = self._grid.training
        return [(first, BASE_MS), (first, LONG_MS), *((size, BASE_MS) for size in others)]

    def _simulated(self, size: tuple[int, int], ms: float, how: str) -> tuple[list[str], list[str]]:
        """The stragglers and the strategies that are simulated by an exchange on a network."""
        cells = [cell for cell in self._grid.thinned(size, ms) if cell.how == how]
        return list(dict.fromkeys(cell.straggler for cell in cells)), list(
            dict.fromkeys(cell.strategy for cell in cells)
        )

    def _cells(
        self, how: str, strategy: str, straggler: str, size: tuple[int, int], ms: float
    ) -> dict[float, TrainingCell]:
        return {
            cell.network.ratio: cell for cell in self._grid.thinned(size, ms)
            if (cell.how, cell.strategy, cell.straggler) == (how, strategy, straggler)
        }  # fmt: skip

    def _seconds(self, cell: TrainingCell, factor: float) -> float:
        """Seconds for as many rounds as BSP needs, times a factor."""
        return factor / float(self._answers[cell]["rounds_per_s"])

    def needs(
        self, cells: Mapping[float, TrainingCell], whole_s: float, cost: Cost | None = None, sigmas: float = 0.0
    ) -> float:
        """The lowest ratio at which training takes no longer than ``whole_s``; NONE if there is none. cost: None for
        BSP."""
        enough = []
        for ratio, cell in cells.items():
            factor = cost.factor(self._answers[cell]["lateness"], sigmas) if cost else 1.0
            if self._seconds(cell, factor) <= SAME * whole_s:
                enough.append(ratio)
        return min(enough, default=NONE)

    def cases(self) -> list[Case]:
        """All cases, with the exchanges that know other strategies than BSP."""
        found = []
        for size, ms in self.groups():
            for how in EXCHANGES:
                names, strategies = self._simulated(size, ms, how)
                for straggler, strategy in product(names, strategies[1:]):
                    bsp = self._cells(how, "bsp", straggler, size, ms)
                    whole_s = self._seconds(bsp[1.0], 1.0)
                    cells = self._cells(how, strategy, straggler, size, ms)
                    needed = [
                        self.needs(cells, whole_s, cost, sigmas) for cost in self.costs.values() for sigmas in (-1, 1)
                    ]
                    found.append(Case(cells[1.0], self.needs(bsp, whole_s, None), min(needed), max(needed)))
        return found

    def table(self) -> Table:
        """What each exchange needs; for those in lock step BSP alone."""
        head = ["workers", "computing", "exchange", "straggler", *(look(strategy).name for strategy in THINNED)]
        rows = []
        cases = {case.cell: case for case in self.cases()}
        for size, ms in self.groups():
            for how in (*EXCHANGES, *LOCK_STEP):
                names, strategies = self._simulated(size, ms, how)
                for straggler in names:
                    bsp = self._cells(how, "bsp", straggler, size, ms)
                    needed = [ratio_name(self.needs(bsp, self._seconds(bsp[1.0], 1.0)))]
                    for strategy in THINNED[1:]:
                        case = cases.get(replace(bsp[1.0], strategy=strategy)) if strategy in strategies else None
                        text = case.text if case else ""
                        needed.append(f"**{text}**" if case and case.verdict == LESS else text)
                    rows.append([f"{size[1]:,}", f"{ms:g} ms", how, straggler.partition(":")[0], *needed])
        return head, _merged(rows)

    def verdict(self) -> Table:
        """The answer: in how many cases strategies other than BSP need how much network, by exchange. And how fast BSP
        by a good exchange on a thin network is, beside the best that servers do."""
        found = pd.DataFrame([(case.verdict, case.cell.how) for case in self.cases()], columns=["verdict", "how"])
        counts = pd.crosstab(found["how"], found["verdict"]).reindex(EXCHANGES).reindex(columns=VERDICTS, fill_value=0)
        rows = [[how, *map(str, row), str(sum(row))] for how, *row in counts.itertuples()]
        rows.append(["all", *map(str, counts.sum()), str(len(found))])
        return [
            "exchange",
            *(f"{verdict} network than BSP" if verdict != NOT_KNOWN else verdict for verdict in VERDICTS),
            "cases",
        ], rows

    def speeds(self) -> Table:
        """Rounds a second on the largest network: of the fastest exchange under BSP on an eighth of it, and of the
        fastest strategy by servers on the whole."""
        size, ms = self._grid.training[-1], BASE_MS
        thin = max((self._rate(how, size, ms, RATIOS[-1]), how) for how in (*EXCHANGES[:1], *LOCK_STEP))
        servers = max((self._rate(how, size, ms, 1.0, strategy), f"{look(strategy).name} by {how}")
                      for how in BY_SERVERS for strategy in self._simulated(size, ms, how)[1])  # fmt: skip
        head = ["workers", "r = 1/8", "rounds/s", "r = 1, servers", "rounds/s", "ratio"]
        return head, [[f"{size[1]:,}", f"BSP by {thin[1]}", f"{thin[0]:.2f}", servers[1], f"{servers[0]:.2f}",
                       f"{thin[0] / servers[0]:.1f}"]]  # fmt: skip

    def _rate(self, how: str, size: tuple[int, int], ms: float, ratio: float, strategy: str = "bsp") -> float:
        return float(self._answers[self._cells(how, strategy, "none", size, ms)[ratio]]["rounds_per_s"])

    def picture(self, path: Path, optimiser: str = "mlp mild") -> Path:
        """The time to the accuracy over that of BSP on the whole network by the same exchange, without stragglers."""
        figure, axes = panels(len(self.groups()), len(EXCHANGES), width=3.4, height=2.5)
        for row, (size, ms) in zip(axes, self.groups(), strict=True):
            for each, how in zip(row, EXCHANGES, strict=True):
                for strategy in self._simulated(size, ms, how)[1]:
                    cells = self._cells(how, strategy, "none", size, ms)
                    cost = self.costs[optimiser]
                    whole_s = self._seconds(self._cells(how, "bsp", "none", size, ms)[1.0], 1.0)
                    late = [self._answers[cells[ratio]]["lateness"] for ratio in RATIOS]
                    times = [
                        [self._seconds(cells[ratio], cost.factor(after, sigmas)) / whole_s if strategy != "bsp" else
                         self._seconds(cells[ratio], 1.0) / whole_s for ratio, after in zip(RATIOS, late, strict=True)]
                        for sigmas in (-1, 0, 1)
                    ]  # fmt: skip
                    colour = look(strategy).colour
                    each.fill_between(range(len(RATIOS)), times[0], times[2], color=colour, alpha=0.15)
                    each.plot(range(len(RATIOS)), times[1], marker="o", color=colour, label=look(strategy).name)
                each.axhline(1, color="#888888", linewidth=0.8, linestyle="--")
                each.set_ylim(bottom=0)
                each.set_xticks(range(len(RATIOS)), [ratio_name(ratio) for ratio in RATIOS])
                each.set_title(f"{how}, {size[1]:,} workers, {ms:g} ms", fontsize=9)
            row[0].set_ylabel("time / BSP's at r = 1")
        for each in axes[-1]:
            each.set_xlabel("bisection ratio r")
        one_legend(figure, axes)
        return save(figure, path)


def _merged(rows: list[list[str]]) -> list[list[str]]:
    """The rows, with those that differ in the straggler alone as one."""
    merged: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        merged.setdefault((*row[:3], *row[4:]), []).append(row[3])
    return [[*key[:3], ", ".join(names), *key[3:]] for key, names in merged.items()]


def efficiency_table(costs: Mapping[str, Cost]) -> Table:
    """What lateness costs each optimiser, and how far the model is off."""
    head = ["optimiser", "rounds of ASP over BSP's", "error, left out", "error, 128 workers replayed"]
    return head, [
        [name, f"{cost.factor(1.0):.2f}", _percent(cost.error), _percent(cost.far)] for name, cost in costs.items()
    ]


def _percent(error: float) -> str:
    return "not replayed" if np.isnan(error) else f"{100 * error:.0f} %"
