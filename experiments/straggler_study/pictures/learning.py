"""How accuracy grows, over time and over steps, and when the target is reached."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.shared.style import one_legend, panels, save
from experiments.straggler_study import grid
from experiments.straggler_study.cell import Cell
from experiments.straggler_study.measures import curve
from experiments.straggler_study.names import case_title
from experiments.straggler_study.study import Study
from serene.palette import look

POINTS = 200


def accuracy(study: Study, cells: Sequence[Cell], model: str, over: str, path: Path) -> Path:
    """Test accuracy over ``t`` or ``steps``: the median of the seeds, and where all of them are."""
    cases = [case for case in study.cases(cells) if case[0] == model]
    counts = sorted({workers for _, workers, _ in cases})
    stragglers = list(dict.fromkeys(straggler for _, _, straggler in cases))
    figure, axes = panels(len(stragglers), len(counts))
    for row, straggler in enumerate(stragglers):
        for column, workers in enumerate(counts):
            _case(study, study.strategies(cells, model, workers, straggler), over, axes[row, column])
            axes[row, column].set_title(case_title(workers, straggler), fontsize=9)
    for each in axes[-1]:
        each.set_xlabel("time [s]" if over == "t" else "steps per worker")
    for each in axes[:, 0]:
        each.set_ylabel("test accuracy")
    one_legend(figure, axes)
    return save(figure, path)


def _case(study: Study, cells: Sequence[Cell], over: str, axes: Any) -> None:
    for cell in cells:
        curves = [curve(study.trace(each)) for each in study.seeds(cell)]
        positions = [getattr(each, over) for each in curves]
        shared = np.linspace(0, min(float(position[-1]) for position in positions), POINTS)
        values = np.array(
            [np.interp(shared, position, each.accuracy) for position, each in zip(positions, curves, strict=True)]
        )
        colour = look(cell.strategy).colour
        axes.plot(
            shared, np.median(values, axis=0), look(cell.strategy).line, color=colour, linewidth=1.2,
            label=look(cell.strategy).name,
        )  # fmt: skip
        if cell.strategy in ("bsp", "ssp:10"):  # bands of all would hide each other
            axes.fill_between(shared, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.15, linewidth=0)
    axes.axhline(grid.TARGETS[cells[0].model], color="#888888", linewidth=0.8, linestyle=":")
    axes.set_ylim(0.4, 1.0)


def target_time(study: Study, cells: Sequence[Cell], model: str, path: Path) -> Path:
    """Time to the target: a dot for each seed, a bar at the median."""
    cases = [case for case in study.cases(cells) if case[0] == model]
    counts = sorted({workers for _, workers, _ in cases})
    stragglers = list(dict.fromkeys(straggler for _, _, straggler in cases))
    figure, axes = panels(len(stragglers), len(counts), height=2.8)
    for row, straggler in enumerate(stragglers):
        for column, workers in enumerate(counts):
            each = axes[row, column]
            chosen = study.strategies(cells, model, workers, straggler)
            for place, cell in enumerate(reversed(chosen)):
                times = [study.numbers(one).target_s for one in study.seeds(cell)]
                colour = look(cell.strategy).colour
                each.plot(times, [place] * len(times), "o", color=colour, markersize=4, alpha=0.6)
                middle = study.spread(cell, "target_s").middle
                if np.isfinite(middle):
                    each.plot([middle, middle], [place - 0.35, place + 0.35], color=colour, linewidth=2.2)
            each.set_yticks(range(len(chosen)), [look(cell.strategy).name for cell in reversed(chosen)], fontsize=8)
            each.set_xlim(left=0)
            each.set_title(case_title(workers, straggler), fontsize=9)
    for each in axes[-1]:
        each.set_xlabel(f"time until test accuracy {grid.TARGETS[model]:.2f} [s]")
    return save(figure, path)
