"""Compares the simulated engine with the emulated one, on cells that both have run."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.ticker import NullFormatter

from serene.experiments.shared.style import one_legend, panels, save
from serene.experiments.straggler_study import names
from serene.experiments.straggler_study.grid import simulated
from serene.experiments.straggler_study.study import Study, Table
from serene.palette import look

MEASURES = {"step_s": "time per step [s]", "target_s": "time to the target [s]", "network_s": "network per step [s]"}


def pairs(study: Study) -> pd.DataFrame:
    """A row for each emulated cell that both engines have run: ``cell``, its numbers, and those of the simulated cell,
    which end in ``_simulated``."""
    runs = study.runs.assign(twin=study.runs["cell"].map(simulated))
    headline, twins = (
        runs[runs["cell"].isin(study.grid.headline)],
        study.runs[study.runs["cell"].isin(study.grid.twins)],
    )
    return headline.merge(twins, left_on="twin", right_on="cell", suffixes=("", "_simulated"))


def errors(found: pd.DataFrame, name: str) -> pd.Series:
    """|simulated / emulated - 1| of a measure, of the rows where both are known."""
    known = found[found[name] > 0]
    return (known[f"{name}_simulated"] / known[name] - 1).abs().dropna()


def summary(found: pd.DataFrame) -> Table:
    """A table of how far the engines differ, by the exchange's share."""
    rows = []
    for share, mine in found.groupby(found["cell"].map(lambda cell: cell.share)):
        by = [errors(mine, name) for name in MEASURES]
        cells = [f"{each.median():.0%} (at most {each.max():.0%})" if len(each) else "-" for each in by]
        rows.append([names.percent(share), str(len(mine)), *cells])
    return ["wanted share", "cells", *(f"{title.partition(' [')[0]} differs by" for title in MEASURES.values())], rows


def draw(found: pd.DataFrame, name: str, path: Path) -> Path:
    """Draws simulated over emulated numbers into an image file. name: of MEASURES. On the line, both agree."""
    figure, axes = panels(1, 1, width=5.2, height=4.4)
    each = axes[0, 0]
    finite = pd.concat([found[name], found[f"{name}_simulated"]]).dropna()
    low, high = (0.8 * finite.min(), 1.25 * finite.max()) if len(finite) else (0.1, 1.0)
    each.plot([low, high], [low, high], color="#888888", linewidth=0.9)
    for cell, real, virtual in zip(found["cell"], found[name], found[f"{name}_simulated"], strict=True):
        shown = look(cell.strategy)
        each.plot([real], [virtual], "o", color=shown.colour, markersize=5, alpha=0.7, label=shown.name)
    each.set_xscale("log")
    each.set_yscale("log")
    for axis in (each.xaxis, each.yaxis):  # labels as plain numbers instead of powers
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("{x:g}" if high < 10 * low else NullFormatter())
    each.set_xlabel(f"emulated: {MEASURES[name]}")
    each.set_ylabel("simulated")
    one_legend(figure, axes)
    return save(figure, path)


def rows(found: pd.DataFrame) -> Table:
    """A table with both engines' numbers for each cell."""
    head = ["training", "strategy", "share", "seed"]
    head += [f"{title}: {engine}" for title in MEASURES.values() for engine in ("emulated", "simulated")]
    columns = [f"{name}{end}" for name in MEASURES for end in ("", "_simulated")]
    return head, [
        [names.Training.of(cell).title, names.strategy(cell), names.percent(cell.share), str(cell.seed),
         *(f"{value:.3f}" for value in values)]
        for cell, *values in found[["cell", *columns]].itertuples(index=False)
    ]  # fmt: skip
