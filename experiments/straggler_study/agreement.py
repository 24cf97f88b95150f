"""Compares the simulated engine with the emulated one, on cells that both have run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.ticker import NullFormatter

from serene.experiments.shared.style import one_legend, panels, save
from serene.experiments.straggler_study import names
from serene.experiments.straggler_study.cell import Cell
from serene.experiments.straggler_study.grid import simulated
from serene.experiments.straggler_study.study import Study
from serene.palette import look

MEASURES = (
    ("step_s", "time per step [s]"),
    ("target_s", "time to the target [s]"),
    ("network_s", "network per step [s]"),
)


@dataclass(frozen=True)
class Pair:
    """An emulated cell. simulated, emulated: its MEASURES by both engines, by their names in `Numbers`."""

    cell: Cell
    simulated: dict[str, float]
    emulated: dict[str, float]


def pairs(study: Study) -> list[Pair]:
    """The cells of the grid that both engines have run."""
    twins, missing = set(study.grid.twins), set(study.missing)
    found = []
    for cell in study.grid.headline:
        twin = simulated(cell)
        if twin not in twins or twin in missing or cell in missing:
            continue
        values = [{name: float(getattr(study.numbers(each), name)) for name, _ in MEASURES} for each in (twin, cell)]
        found.append(Pair(cell, values[0], values[1]))
    return found


def difference(found: Sequence[Pair], name: str) -> tuple[float, float]:
    """Median and largest |simulated / emulated - 1| of a measure, over the cells where both are known; else NaN."""
    ratios = [
        abs(pair.simulated[name] / pair.emulated[name] - 1)
        for pair in found
        if np.isfinite([pair.simulated[name], pair.emulated[name]]).all() and pair.emulated[name] > 0
    ]
    return (float(np.median(ratios)), float(max(ratios))) if ratios else (float("nan"), float("nan"))


def draw(found: Sequence[Pair], measure: tuple[str, str], path: Path) -> Path:
    """Draws simulated over emulated numbers into an image file. measure: of MEASURES. On the line, both agree."""
    name, title = measure
    figure, axes = panels(1, 1, width=5.2, height=4.4)
    each = axes[0, 0]
    values = [(pair.emulated[name], pair.simulated[name], pair.cell.strategy) for pair in found]
    finite = [value for pair in values for value in pair[:2] if np.isfinite(value)]
    low, high = 0.8 * min(finite, default=0.1), 1.25 * max(finite, default=1.0)
    each.plot([low, high], [low, high], color="#888888", linewidth=0.9)
    for real, virtual, strategy in values:
        shown = look(strategy)
        each.plot([real], [virtual], "o", color=shown.colour, markersize=5, alpha=0.7, label=shown.name)
    each.set_xscale("log")
    each.set_yscale("log")
    for axis in (each.xaxis, each.yaxis):  # labels as plain numbers instead of powers
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("{x:g}" if high < 10 * low else NullFormatter())
    each.set_xlabel(f"emulated: {title}")
    each.set_ylabel("simulated")
    one_legend(figure, axes)
    return save(figure, path)


def text(found: Sequence[Pair]) -> str:
    """A sentence for each share on how well the engines agree."""
    parts = []
    for share in sorted({pair.cell.share for pair in found}):
        mine = [pair for pair in found if pair.cell.share == share]
        said = []
        for name, title in MEASURES:
            middle, worst = difference(mine, name)
            said.append(f"{title.partition(' [')[0]} by {100 * middle:.0f} % (median; at most {100 * worst:.0f} %)")
        parts.append(f"At {names.percent(share)}, {len(mine)} cells differ in {', '.join(said)}.")
    return " ".join(parts)


def rows(found: Sequence[Pair]) -> tuple[list[str], list[list[str]]]:
    """A table, head and rows, with both engines' numbers for each cell."""
    head = ["model", "straggler", "strategy", "share", "seed"]
    head += [f"{title}: {engine}" for _, title in MEASURES for engine in ("emulated", "simulated")]
    told = []
    for pair in found:
        cell = pair.cell
        row = [
            cell.model,
            cell.straggler.partition(":")[0],
            names.strategy(cell),
            names.percent(cell.share),
            str(cell.seed),
        ]
        row += [f"{values[name]:.3f}" for name, _ in MEASURES for values in (pair.emulated, pair.simulated)]
        told.append(row)
    return head, told
