"""The figures of accuracy over time and over steps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from serene.experiments.shared.style import one_legend, panels, save
from serene.experiments.straggler_study import names
from serene.experiments.straggler_study.cell import Cell
from serene.experiments.straggler_study.measures import curve
from serene.experiments.straggler_study.study import Study
from serene.palette import look

POINTS = 200
LINES = {names.EMBEDDED: "-", names.BMV2: (0, (6, 1)), names.SERVER: "--", names.SHARDED: "-.", names.GLOO: ":"}


def accuracy(study: Study, cells: Sequence[Cell], over: str, title: str, path: Path) -> Path:
    """Test accuracy, the median of the seeds, with a colour for each strategy and a line style for each way. over:
    ``t`` or ``steps``, the field of `Curve` on the x axis."""
    figure, axes = panels(1, 1, width=5.2, height=4.6)
    each = axes[0, 0]
    ends = []
    for cell in cells:
        curves = [curve(study.trace(one)) for one in study.of(cell)["cell"]]
        if not curves:
            continue
        positions = [getattr(one, over) for one in curves]
        shared = np.linspace(0, min(float(position[-1]) for position in positions), POINTS)
        values = [np.interp(shared, position, one.accuracy) for position, one in zip(positions, curves, strict=True)]
        shown = look(cell.strategy)
        each.plot(
            shared, np.median(values, axis=0), linestyle=LINES[names.way(cell)], color=shown.colour, linewidth=1.4,
            label=names.label(cell),
        )  # fmt: skip
        ends.append(shared[-1])
    if cells:
        each.axhline(study.grid.targets[cells[0].model], color="#888888", linewidth=0.8, linestyle=":")
    if ends:
        each.set_xlim(0, 1.3 * float(np.median(ends)))
    each.set_xlabel("time [s]" if over == "t" else "steps per worker")
    each.set_ylabel("test accuracy")
    each.set_title(title, fontsize=10)
    one_legend(figure, axes)
    return save(figure, path)
