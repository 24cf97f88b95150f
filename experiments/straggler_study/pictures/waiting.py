"""The figures of what takes a step's time, and of who waited when."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from serene.experiments.shared.style import fit_names, one_legend, panels, save, strategy_band
from serene.experiments.straggler_study import names
from serene.experiments.straggler_study.cell import Cell
from serene.experiments.straggler_study.study import Study
from serene.palette import COMPUTING, SENDING, WAITING, colour_of, look


def split(study: Study, cells: Sequence[Cell], title: str, path: Path) -> Path:
    """The time of an iteration, split into computing, network and waiting, with a line from the lowest to the highest
    seed."""
    chosen = [cell for cell in reversed(cells) if len(study.of(cell))]
    figure, axes = panels(1, 1, width=5.2, height=0.2 * len(chosen) + 1.4)
    each = axes[0, 0]
    left = np.zeros(len(chosen))
    for part, colour, label in (
        ("compute_s", COMPUTING, "computing"), ("network_s", SENDING, "network"), ("waiting_s", WAITING, "waiting"),
    ):  # fmt: skip
        values = np.array([1e3 * study.spread(cell, part).middle for cell in chosen])
        each.barh(range(len(chosen)), values, 0.75, left=left, color=colour, label=label)
        left += values
    for place, cell in enumerate(chosen):
        step = study.spread(cell, "step_s")
        each.plot([1e3 * step.low, 1e3 * step.high], [place, place], color="#222222", linewidth=1.2)
    each.set_yticks(range(len(chosen)), [names.label(cell) for cell in chosen], fontsize=7)
    each.grid(axis="y", visible=False)
    each.set_xlabel("an iteration of a worker [ms]")
    each.set_title(title, fontsize=10)
    one_legend(figure, axes)
    return save(figure, path)


def timeline(study: Study, cells: Sequence[Cell], path: Path, until_s: float) -> Path:
    """When each worker computed, exchanged and waited, and when the strategy changed, up to a time in seconds; a panel
    for each cell."""
    figure, axes = panels(len(cells), 1, width=16, height=1.6, sharex=True)
    bands = []
    for each, cell in zip(axes[:, 0], cells, strict=True):
        trace = study.trace(cell)
        rows = trace.steps[trace.steps["began"] < until_s]
        for worker in range(cell.workers):
            mine = rows[rows["worker"] == worker]
            spans = {
                COMPUTING: (mine["began"], mine["pushed"]),
                SENDING: (mine["pushed"], mine["ended"] - mine["waited"]),
                WAITING: (mine["ended"] - mine["waited"], mine["ended"]),
            }
            for colour, (start, end) in spans.items():
                each.broken_barh(list(zip(start, end - start, strict=True)), (worker - 0.4, 0.8), facecolors=colour)
        swaps = [(swap.t, swap.strategy) for swap in trace.swaps if swap.t < until_s] if cell.automatic else []
        for t, strategy in swaps[1:]:
            each.axvline(t, color=colour_of(strategy), linewidth=1.4)
        if swaps:
            bands.append(strategy_band(each, swaps, until_s))
        each.set_yticks(range(cell.workers), [f"worker {worker}" for worker in range(cell.workers)], fontsize=7)
        each.set_xlim(0, until_s)
        each.grid(visible=False)
        title = f"{names.label(cell)}, seed {cell.seed}"
        each.set_title(title, fontsize=9, loc="left", pad=16 if cell.automatic else 4)
    for colour, label in ((COMPUTING, "computing"), (SENDING, "network"), (WAITING, "waiting for others")):
        axes[-1, 0].plot([], [], color=colour, linewidth=6, label=label)
    axes[-1, 0].set_xlabel("time [s]")
    one_legend(figure, axes)
    for of_axes in bands:
        fit_names(figure, of_axes, until_s)
    return save(figure, path)


def cumulative(study: Study, cells: Sequence[Cell], title: str, path: Path) -> Path:
    """Cumulative waiting, with a group for each way and strategy, and in it a bar for each worker."""
    chosen = [cell for cell in cells if len(study.of(cell))]
    figure, axes = panels(1, 1, width=5.2, height=3.4)
    each = axes[0, 0]
    for place, cell in enumerate(chosen):
        waited = np.array([*study.of(cell)["waited_s"]])
        middle = np.median(waited, axis=0)
        width = 0.8 / cell.workers
        at = place - 0.4 + width * (np.arange(cell.workers) + 0.5)
        error = np.array([middle - waited.min(axis=0), waited.max(axis=0) - middle])
        each.bar(at, middle, width * 0.9, color=look(cell.strategy).colour, alpha=0.85)
        each.errorbar(at, middle, error, fmt="none", ecolor="#444444", elinewidth=0.7)
    each.set_xticks(range(len(chosen)), [names.label(cell) for cell in chosen], fontsize=6, rotation=35, ha="right")
    each.set_title(title, fontsize=10)
    each.set_ylabel("waiting in all [s]")
    each.grid(axis="x", visible=False)
    return save(figure, path)
