"""The style of all figures."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib

from serene.palette import colour_of

matplotlib.use("Agg")
import matplotlib.pyplot as plt

GRID = "#dddddd"
DPI = 110
LETTER, HANDLE = 0.055, 0.6  # inches that a legend's entry takes: for each letter, and for its handle and the gaps


def panels(rows: int, columns: int, width: float = 5.2, height: float = 3.2, **options: Any) -> tuple[Any, Any]:
    """A figure and its axes, an array of rows x columns. width, height: of each, in inches. options: of
    plt.subplots."""
    figure, axes = plt.subplots(
        rows, columns, figsize=(width * columns, height * rows), squeeze=False, layout="constrained", **options
    )
    for each in axes.flat:
        each.grid(color=GRID, linewidth=0.6)
        each.set_axisbelow(True)
        for side in ("top", "right"):
            each.spines[side].set_visible(False)
    return figure, axes


def strategy_band(axes: Any, changes: Sequence[tuple[float, str]], end: float) -> list[Any]:
    """Draws, above the axes, a line in the strategy's colour with its name for the time in which it was in force.

    changes: when, in the unit of the x axis, and to which strategy. end: of the last one. Returns the names' texts, for
    `fit_names`.
    """
    names = []
    for (begin, name), (until, _) in pairwise([*changes, (end, "")]):
        where = axes.get_xaxis_transform()  # x in data, y as a share of the height
        axes.plot([begin, until], [1, 1], color=colour_of(name), linewidth=5, solid_capstyle="butt", transform=where,
                  clip_on=False)  # fmt: skip
        names.append(axes.annotate(
            name, (begin, 1), xycoords=where, xytext=(1, 5), textcoords="offset points", fontsize=8, va="bottom",
            annotation_clip=False,
        ))  # fmt: skip
    return names


def fit_names(figure: Any, names: Sequence[Any], end: float) -> list[str]:
    """Hides the names of a `strategy_band` that are longer than their line, and returns those that can be read nowhere,
    for the legend. Call it when all else is drawn. end: of the band."""
    figure.draw_without_rendering()  # computes the positions
    begins = [*(name.xy[0] for name in names), end]
    for name, begin in zip(names, begins[1:], strict=True):  # a strategy that never changed has no band, and no names
        limit = name.axes.transData.transform((begin, 0))[0]
        name.set_visible(name.get_window_extent().x1 < limit)
    there = {name.get_text() for name in names if name.get_visible()}
    return [text for text in dict.fromkeys(name.get_text() for name in names) if text not in there]


def one_legend(figure: Any, axes: Any) -> None:
    """One legend for all axes, below the figure, where it hides nothing; each label once, in as many columns as fit."""
    found: dict[str, Any] = {}
    for each in axes.flat:
        for handle, label in zip(*each.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    longest = max(map(len, found), default=0)
    columns = max(int(figure.get_figwidth() / max(LETTER * longest + HANDLE, 1.5)), 1)
    figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=columns, frameon=False, fontsize=8)


def save(figure: Any, path: Path, dpi: int = DPI) -> Path:
    """Writes a figure to a file, closes it, and returns the path."""
    figure.savefig(path, dpi=dpi)
    plt.close(figure)
    return path
