"""What strategies are worth, from a table of runs, which has the columns of `measures.row`: regrets, and the tables of
a page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from serene.experiments.shared import page_tables
from serene.experiments.straggler_study.cases import STRAGGLERS
from serene.experiments.straggler_study.grid import fixed
from serene.experiments.straggler_study.study import Table

NEVER = 2.0  # a run that does not reach the target counts as so many times its length
OF_A_CELL = ["engine", "target", "model", "learning_rate", "momentum", "share", "straggler", "workers"]


def read(path: Path) -> pd.DataFrame:
    """A CSV file of results. Raises OSError."""
    return pd.read_csv(path)


def took_s(runs: pd.DataFrame) -> pd.Series:
    """Seconds of each run to the accuracy; NEVER times the run's length, if it is not reached."""
    return pd.to_numeric(runs["s_to_until"]).fillna(NEVER * runs["whole_s"])


def regrets(runs: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    """Columns ``cell``, ``strategy`` and ``regret``: each strategy's mean time over that of the best fixed strategy of
    the same cell. runs: with the columns ``cell``, the cell's name, and ``took_s``. names: of strategies, if they are
    called otherwise; k-of-n for k = 3/4 n is "quorum"."""
    means = runs.groupby(["cell", "workers", "strategy"], sort=False)["took_s"].mean().reset_index()
    is_fixed = [
        strategy in fixed(workers) for workers, strategy in zip(means["workers"], means["strategy"], strict=True)
    ]
    best = means["cell"].map(means[is_fixed].groupby("cell")["took_s"].min())
    called = {text: name for name, text in names.items()}
    strategy = [called.get(text, "quorum" if text.startswith("quorum") else text) for text in means["strategy"]]
    return pd.DataFrame({"cell": means["cell"], "strategy": strategy, "regret": (means["took_s"] / best).round(3)})


def summary(found: pd.DataFrame) -> Table:
    """A table with a row for each strategy, the best mean first. Its last columns are means by straggler."""
    by = found.groupby("strategy", sort=False)["regret"]
    kinds = found.assign(kind=found["cell"].str.split(", ").str[2]).pivot_table("regret", "strategy", "kind")
    shown = kinds.reindex(columns=[kind for kind in STRAGGLERS if kind in kinds])
    rows = [
        [name, str(len(mine)), f"{mine.mean():.2f}", f"{mine.max():.2f}", f"{(mine <= 1.05).mean():.0%}",
         *(f"{mean:.2f}" if np.isfinite(mean) else "-" for mean in shown.loc[name])]
        for name, mine in sorted(by, key=lambda each: each[1].mean())
    ]  # fmt: skip
    return ["strategy", "cells", "mean", "worst", "at most 1.05", *shown], rows


def worth(runs: pd.DataFrame, strategy: str) -> Table:
    """A table of what an automatic strategy is worth in all cells together, beside its targets, and of what regret the
    seeds' scatter alone makes ("-": of one seed). strategy: as in ``runs``; cells that lack it do not count."""
    times, regret, scatter, changing = [], [], [], []
    for cell, mine in runs.assign(took_s=took_s(runs)).groupby(OF_A_CELL, sort=False):
        by = mine.pivot(index="seed", columns="strategy", values="took_s")
        if strategy not in by:
            continue
        others = by[[*fixed(int(cell[-1]))]]
        own, means = by[strategy].mean(), others.mean()
        times.append([own, *means])
        regret.append(own / means.min())
        if len(others) > 1:
            # For each seed, the fixed strategy with the shortest time by the other seeds.
            chosen = (others.sum() - others).idxmin(axis=1)
            scatter.append(np.mean([others.at[seed, name] for seed, name in chosen.items()]) / means.min())
        if cell[-2] == STRAGGLERS["changing"]:
            changing.append(own < means.min())
    own_s, *fixed_s = np.sum(times, axis=0)
    head = [f"over {len(regret)} cells", strategy.partition(":")[2], "target", "the fixed one best by other seeds"]
    return head, [
        ["regret, mean", f"{np.mean(regret):.2f}", "1.05", f"{np.mean(scatter):.2f}" if scatter else "-"],
        ["regret, worst cell", f"{max(regret):.2f}", "1.15", f"{max(scatter):.2f}" if scatter else "-"],
        ["time of all cells over that of the best single fixed strategy", f"{own_s / min(fixed_s):.2f}", "0.90", ""],
        ["faster than the best fixed strategy where the regime changes", f"{sum(changing)} of {len(changing)} cells",
         "90 %", ""],
    ]  # fmt: skip


def write_page(page: Path, found: pd.DataFrame, runs: pd.DataFrame, strategy: str, part: str = "regret") -> None:
    """Writes the tables into this part of the page. Raises SereneError if there is none."""
    tables = [*([worth(runs, strategy)] if strategy in set(runs["strategy"]) else []), summary(found)]
    page_tables.write(page, {part: "\n\n".join(page_tables.markdown(*table) for table in tables)})
