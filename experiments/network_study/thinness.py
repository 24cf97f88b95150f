"""The paper's open question: does asynchronous exchange need less network?

The time to the accuracy is the time of a round, from the simulation of the network, times the rounds that training
needs, from `efficiency`. The thinnest network is that with the lowest bisection ratio on which training takes at most
SAME times as long as BSP does by the same exchange on the whole network.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from serene.experiments.network_study.cells import Answers
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


SETTING = ["hosts", "ms", "how", "straggler"]  # ms: of computing an iteration


class Thinness:
    """What each strategy needs, by a grid's answers and the costs of lateness by optimiser."""

    def __init__(self, answers: Answers, grid: Grid, costs: Mapping[str, Cost]) -> None:
        first, *others = grid.training
        self.costs = costs
        self.groups = [(first, BASE_MS), (first, LONG_MS), *((size, BASE_MS) for size in others)]
        rows = [
            (cell.network.hosts, ms, cell.how, cell.straggler, cell.strategy, cell.network.ratio,
             1 / answers[cell]["rounds_per_s"], answers[cell]["lateness"])
            for size, ms in self.groups for cell in grid.thinned(size, ms)
        ]  # fmt: skip
        runs = pd.DataFrame(rows, columns=[*SETTING, "strategy", "ratio", "seconds", "lateness"])
        whole = runs[(runs["strategy"] == "bsp") & (runs["ratio"] == 1)].set_index(SETTING)["seconds"]
        self.runs = runs.join(whole.rename("whole_s"), on=SETTING)  # BSP's time of a round on the whole network

    def _over_bsp(self, cost: Cost, sigmas: float) -> pd.Series:
        """Each run's time to the accuracy over that of BSP on the whole network. sigmas: as of `Cost.factor`."""
        late = [1.0 if strategy == "bsp" else cost.factor(late, sigmas)
                for strategy, late in zip(self.runs["strategy"], self.runs["lateness"], strict=True)]  # fmt: skip
        return self.runs["seconds"] * late / self.runs["whole_s"]

    def cases(self) -> pd.DataFrame:
        """By setting and strategy: ``low`` and ``high``, the lowest ratios at which training takes no longer than BSP
        on the whole network, at the least and at the most over all optimisers and within the model's error; NONE if
        there is no such ratio. ``bsp``: what BSP needs in the same setting. ``verdict``: whether a strategy needs less
        network than that."""
        by = [*SETTING, "strategy"]
        needed = []
        for cost in self.costs.values():
            for sigmas in (-1, 1):
                enough = self.runs["ratio"].where(self._over_bsp(cost, sigmas) <= SAME, NONE)
                needed.append(enough.groupby([self.runs[name] for name in by], sort=False).min())
        found = pd.DataFrame({"low": np.min(needed, axis=0), "high": np.max(needed, axis=0)}, needed[0].index)
        found = found.reset_index()
        bsp = found[found["strategy"] == "bsp"].set_index(SETTING)["low"].rename("bsp")
        found = found.join(bsp, on=SETTING)
        known = np.where(found["low"] >= found["bsp"], NO_LESS, NOT_KNOWN)
        found["verdict"] = np.where(found["high"] < found["bsp"], LESS, known)
        return found

    def table(self) -> Table:
        """What each exchange needs; for those in lock step BSP alone."""
        texts = {}
        for case in self.cases().itertuples():
            low, high = ("more" if ratio == NONE else ratio_name(ratio) for ratio in (case.low, case.high))
            text = low if low == high else f"{low} to {high}"
            bold = case.strategy != "bsp" and case.verdict == LESS
            texts[case.hosts, case.ms, case.how, case.straggler, case.strategy] = f"**{text}**" if bold else text
        rows = []
        for (_, hosts), ms in self.groups:
            mine = self.runs[(self.runs["hosts"] == hosts) & (self.runs["ms"] == ms)]
            for how in (*EXCHANGES, *LOCK_STEP):
                for straggler in mine["straggler"][mine["how"] == how].unique():
                    cells = [texts.get((hosts, ms, how, straggler, strategy), "") for strategy in THINNED]
                    rows.append([f"{hosts:,}", f"{ms:g} ms", how, straggler.partition(":")[0], *cells])
        head = ["workers", "computing", "exchange", "straggler", *(look(strategy).name for strategy in THINNED)]
        return head, _merged(rows)

    def verdict(self) -> Table:
        """The answer: in how many cases strategies other than BSP need how much network, by exchange."""
        found = self.cases().query("strategy != 'bsp'")
        counts = pd.crosstab(found["how"], found["verdict"]).reindex(EXCHANGES).reindex(columns=VERDICTS, fill_value=0)
        rows = [[how, *map(str, row), str(sum(row))] for how, *row in counts.itertuples()]
        rows.append(["all", *map(str, counts.sum()), str(len(found))])
        return ["exchange", f"{NO_LESS} network than BSP", NOT_KNOWN, f"{LESS} network than BSP", "cases"], rows

    def speeds(self) -> Table:
        """Rounds a second on the largest network: of the fastest exchange under BSP on an eighth of it, and of the
        fastest strategy by servers on the whole."""
        (_, hosts), ms = self.groups[-1]
        runs = self.runs[self.runs[["hosts", "ms", "straggler"]].eq([hosts, ms, "none"]).all(axis=1)]
        thin = runs[(runs["ratio"] == RATIOS[-1]) & (runs["strategy"] == "bsp") & ~runs["how"].isin(BY_SERVERS)]
        whole = runs[(runs["ratio"] == 1) & runs["how"].isin(BY_SERVERS)]
        best = [each.loc[each["seconds"].idxmin()] for each in (thin, whole)]
        cells = [[f"{look(row['strategy']).name} by {row['how']}", f"{1 / row['seconds']:.2f}"] for row in best]
        head = ["workers", "r = 1/8", "rounds/s", "r = 1, servers", "rounds/s", "ratio"]
        return head, [[f"{hosts:,}", *cells[0], *cells[1], f"{best[1]['seconds'] / best[0]['seconds']:.1f}"]]

    def picture(self, path: Path, optimiser: str = "mlp mild") -> Path:
        """The time to the accuracy over that of BSP on the whole network by the same exchange, without stragglers."""
        runs = self.runs.assign(**{f"at {sigmas}": self._over_bsp(self.costs[optimiser], sigmas)
                                   for sigmas in (-1, 0, 1)})  # fmt: skip
        runs, places = runs[runs["straggler"] == "none"], range(len(RATIOS))
        figure, axes = panels(len(self.groups), len(EXCHANGES), width=3.4, height=2.5)
        for row, ((_, hosts), ms) in zip(axes, self.groups, strict=True):
            for each, how in zip(row, EXCHANGES, strict=True):
                mine = runs[(runs["hosts"] == hosts) & (runs["ms"] == ms) & (runs["how"] == how)]
                for strategy, of in mine.groupby("strategy", sort=False):
                    times, colour = of.set_index("ratio").loc[[*RATIOS]], look(strategy).colour
                    each.fill_between(places, times["at -1"], times["at 1"], color=colour, alpha=0.15)
                    each.plot(places, times["at 0"], marker="o", color=colour, label=look(strategy).name)
                each.axhline(1, color="#888888", linewidth=0.8, linestyle="--")
                each.set_ylim(bottom=0)
                each.set_xticks(places, [ratio_name(ratio) for ratio in RATIOS])
                each.set_title(f"{how}, {hosts:,} workers, {ms:g} ms", fontsize=9)
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
