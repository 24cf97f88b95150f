"""The picture of the study's answer: time to accuracy by way and strategy, at each share of the exchange."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from serene.experiments.shared.style import panels, save
from serene.experiments.straggler_study import grid, names
from serene.experiments.straggler_study.cell import Cell
from serene.experiments.straggler_study.study import Study
from serene.palette import look

GAP = 0.7  # between the rows of two ways, in rows


def answer(study: Study, model: str, straggler: str, shares: Sequence[float], path: Path, *, wide: bool) -> Path:
    """A panel for each share. A dot is a run, a bar the median. wide: whether panels are side by side, or one below the
    other, for narrow pages."""
    cases = [study.headline(model, straggler, share) for share in shares]
    rows = _places(max(cases, key=len))
    height = 0.235 * (max(rows.values(), default=1) + 1) + 1.1
    count = len(shares)
    if wide:
        figure, axes = panels(1, count, width=16.0 / max(count, 2), height=height, sharey=True)
    else:
        figure, axes = panels(count, 1, width=6.4, height=height)
    for number, (each, share, cells) in enumerate(zip(axes.flat, shares, cases, strict=True)):
        _panel(study, each, cells, rows)
        each.set_title(f"exchange {names.percent(share)} of a step ({grid.LINKS[share]:g} Mbit/s)", fontsize=11)
        each.set_xlabel(f"time until test accuracy {study.grid.targets[model]:.2f} [s]")
        _labels(each, max(cases, key=len), rows, shown=number == 0 or not wide)
    return save(figure, path)


def _places(cells: Sequence[Cell]) -> dict[tuple[str, str], float]:
    """The row of each (way, strategy), counted from the top, with the strategies of a way together."""
    found: dict[tuple[str, str], float] = {}
    at = 0.0
    for way, mine in groupby(cells, key=names.way):
        at += GAP if found else 0.0
        for cell in mine:
            found[way, cell.strategy] = at
            at += 1
    return found


def _panel(study: Study, axes: Any, cells: Sequence[Cell], rows: dict[tuple[str, str], float]) -> None:
    for cell in cells:
        at, colour = rows[names.way(cell), cell.strategy], look(cell.strategy).colour
        times = [*study.of(cell)["target_s"]]
        reached = [time for time in times if np.isfinite(time)]
        axes.plot(reached, [at] * len(reached), "o", color=colour, markersize=5, alpha=0.55, markeredgewidth=0)
        if len(reached) > 1:
            axes.plot([min(reached), max(reached)], [at, at], color=colour, linewidth=1.2)
        spread = study.spread(cell, "target_s")
        if np.isfinite(spread.middle):
            axes.plot([spread.middle] * 2, [at - 0.36, at + 0.36], color=colour, linewidth=2.6)
        said = _said(times, spread.middle)
        right = max(reached, default=0.0)
        axes.annotate(
            said, (right, at), xytext=(6, 0), textcoords="offset points", va="center", fontsize=7.5, color="#444444",
        )  # fmt: skip
    axes.set_ylim(max(rows.values(), default=0) + 0.8, -0.8)
    axes.grid(axis="y", visible=False)
    _, right = axes.get_xlim()
    axes.set_xlim(0, 1.1 * right)


def _said(times: Sequence[float], middle: float) -> str:
    if not times:
        return "no result"
    never = sum(not np.isfinite(time) for time in times)
    text = f"{middle:.1f}" if np.isfinite(middle) else "not reached"
    return f"{text} ({never} of {len(times)} never)" if never and np.isfinite(middle) else text


def _labels(axes: Any, cells: Sequence[Cell], rows: dict[tuple[str, str], float], *, shown: bool) -> None:
    axes.tick_params(axis="y", length=0, labelleft=shown)
    if not shown:
        return
    strategies = {place: look(strategy) for (_, strategy), place in rows.items()}
    axes.set_yticks(list(strategies), [each.name for each in strategies.values()], fontsize=8.5)
    for tick, each in zip(axes.get_yticklabels(), strategies.values(), strict=True):
        tick.set_color(each.colour)
    for way, mine in groupby(cells, key=names.way):
        places = [rows[way, cell.strategy] for cell in mine]
        axes.annotate(
            way.replace(", ", ",\n"), (0, (places[0] + places[-1]) / 2), xycoords=axes.get_yaxis_transform(),
            xytext=(-78, 0), textcoords="offset points", ha="right", va="center", fontsize=9, fontweight="bold",
            annotation_clip=False,
        )  # fmt: skip
