"""Who waited, for how long, when, and how old the gradients became."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from experiments.shared.style import fit_names, one_legend, panels, save, strategy_band
from experiments.straggler_study.cell import Cell
from experiments.straggler_study.names import case_title
from experiments.straggler_study.study import Study
from serene.palette import COMPUTING, SENDING, WAITING, colour_of, look


def _layout(study: Study, cells: Sequence[Cell], model: str) -> tuple[list[int], list[str]]:
    cases = [case for case in study.cases(cells) if case[0] == model]
    return sorted({workers for _, workers, _ in cases}), list(dict.fromkeys(straggler for _, _, straggler in cases))


def waiting(study: Study, cells: Sequence[Cell], model: str, path: Path) -> Path:
    """Cumulative waiting of each worker: a group for each strategy, a bar for each worker, lowest to highest seed."""
    counts, stragglers = _layout(study, cells, model)
    figure, axes = panels(len(stragglers), len(counts), width=7, height=2.6)
    for row, straggler in enumerate(stragglers):
        for column, workers in enumerate(counts):
            each, width = axes[row, column], 0.8 / workers
            chosen = study.strategies(cells, model, workers, straggler)
            for place, cell in enumerate(chosen):
                waited = np.array([study.numbers(one).waited_s for one in study.seeds(cell)])
                middle = np.median(waited, axis=0)
                at = place - 0.4 + width * (np.arange(workers) + 0.5)
                error = np.array([middle - waited.min(axis=0), waited.max(axis=0) - middle])
                each.bar(at, middle, width * 0.9, color=look(cell.strategy).colour, alpha=0.85)
                each.errorbar(at, middle, error, fmt="none", ecolor="#444444", elinewidth=0.7)
            names = [look(cell.strategy).name for cell in chosen]
            each.set_xticks(range(len(chosen)), names, fontsize=7, rotation=25, ha="right")
            each.set_title(case_title(workers, straggler), fontsize=9)
            each.grid(axis="x", visible=False)
    for each in axes[:, 0]:
        each.set_ylabel("waited, per worker [s]")
    return save(figure, path)


def split(study: Study, cells: Sequence[Cell], model: str, path: Path) -> Path:
    """What a step's time goes into: medians over the seeds; the whiskers are the lowest and highest whole step."""
    counts, stragglers = _layout(study, cells, model)
    figure, axes = panels(len(stragglers), len(counts), height=2.8)
    for row, straggler in enumerate(stragglers):
        for column, workers in enumerate(counts):
            each = axes[row, column]
            chosen = list(reversed(study.strategies(cells, model, workers, straggler)))
            left = np.zeros(len(chosen))
            for part, colour in (("compute_s", COMPUTING), ("network_s", SENDING), ("waiting_s", WAITING)):
                values = np.array([1e3 * study.spread(cell, part).middle for cell in chosen])
                each.barh(range(len(chosen)), values, 0.7, left=left, color=colour, label=part.removesuffix("_s"))
                left += values
            whole = [
                [1e3 * (one.compute_s + one.network_s + one.waiting_s) for one in map(study.numbers, study.seeds(cell))]
                for cell in chosen
            ]
            for place, ends in enumerate(whole):
                each.plot([min(ends), max(ends)], [place, place], color="#222222", linewidth=1.2)
            each.set_yticks(range(len(chosen)), [look(cell.strategy).name for cell in chosen], fontsize=8)
            each.set_title(case_title(workers, straggler), fontsize=9)
    for each in axes[-1]:
        each.set_xlabel("an iteration of a worker [ms]")
    one_legend(figure, axes)
    return save(figure, path)


def timeline(study: Study, cells: Sequence[Cell], path: Path, until_s: float = 15.0) -> Path:
    """Who computed, exchanged and waited, with every change of strategy."""
    figure, axes = panels(len(cells), 1, width=11, height=1.7, sharex=True)
    names = []
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
        swaps = [(swap.t, swap.strategy) for swap in trace.swaps if 0 < swap.t < until_s]
        for t, strategy in swaps:
            each.axvline(t, color=colour_of(strategy), linewidth=1.4)
        names.append(strategy_band(each, swaps, until_s))
        each.set_yticks(range(cell.workers), [f"worker {worker}" for worker in range(cell.workers)], fontsize=7)
        each.set_xlim(0, until_s)
        each.grid(visible=False)
        each.set_title(look(cell.strategy).name, fontsize=9, loc="left", pad=16 if cell.automatic else 4)
    for colour, label in ((COMPUTING, "computing"), (SENDING, "network"), (WAITING, "waiting for others")):
        axes[-1, 0].plot([], [], color=colour, linewidth=6, label=label)
    axes[-1, 0].set_xlabel("time [s]")
    one_legend(figure, axes)
    for of_axes in names:
        fit_names(figure, of_axes, until_s)
    return save(figure, path)


def staleness(study: Study, cells: Sequence[Cell], model: str, workers: int, path: Path) -> Path:
    """How many rounds old the gradients were when the switch took them, by the switch's own counters."""
    stragglers = list(dict.fromkeys(cell.straggler for cell in cells if cell.workers == workers))
    kinds = [cell.strategy for cell in study.strategies(cells, model, workers, stragglers[0])]
    figure, axes = panels(len(stragglers), len(kinds), width=1.7, height=1.9, sharey=True, sharex=True)
    for row, straggler in enumerate(stragglers):
        for column, cell in enumerate(study.strategies(cells, model, workers, straggler)):
            shares = []
            for one in study.seeds(cell):
                counted = study.trace(one).staleness.sum(axis=0)
                shares.append(counted / counted.sum())
            values, each = np.array(shares), axes[row, column]
            middle = np.median(values, axis=0)
            each.bar(range(16), middle, 0.9, color=look(cell.strategy).colour)
            each.vlines(range(16), values.min(axis=0), values.max(axis=0), color="#333333", linewidth=0.8)
            each.set_xticks([0, 5, 10, 15], ["0", "5", "10", "15+"], fontsize=7)
            each.set_ylim(0, 1)
            if row == 0:
                each.set_title(look(cell.strategy).name, fontsize=7.5)
            if column == 0:
                each.set_ylabel(straggler.partition(":")[0], fontsize=8)
    figure.supxlabel("rounds old", fontsize=9)
    return save(figure, path)
