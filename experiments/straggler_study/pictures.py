"""The report's figures. Functions write an image to ``path`` and return it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.patches import Rectangle

from serene.experiments.shared.style import fit_names, one_legend, panels, save, strategy_band
from serene.experiments.straggler_study import names
from serene.experiments.straggler_study.cell import Cell
from serene.experiments.straggler_study.grid import CHOOSING, REPORTED
from serene.experiments.straggler_study.measures import curve
from serene.experiments.straggler_study.names import Training, percent, straggler_name
from serene.experiments.straggler_study.study import Spread, Study, Table
from serene.palette import COMPUTING, SENDING, WAITING, colour_of, look

# -- the study's answer: time to accuracy by way and strategy, at each share of the exchange -------

GAP = 0.7  # between the rows of two ways, in rows


def answer(study: Study, training: Training, shares: Sequence[float], path: Path, *, wide: bool) -> Path:
    """A panel for each share. A dot is a run, a bar the median. wide: whether panels are side by side, or one below the
    other, for narrow pages."""
    cases = [study.headline(training, share) for share in shares]
    rows = _places(max(cases, key=len))
    height = 0.235 * (max(rows.values(), default=1) + 1) + 1.1
    count = len(shares)
    if wide:
        figure, axes = panels(1, count, width=16.0 / max(count, 2), height=height, sharey=True)
    else:
        figure, axes = panels(count, 1, width=6.4, height=height)
    for number, (each, share, cells) in enumerate(zip(axes.flat, shares, cases, strict=True)):
        _panel(study, each, cells, rows)
        each.set_title(f"exchange {names.percent(share)} of a step ({cells[0].link_mbit:g} Mbit/s)", fontsize=11)
        each.set_xlabel(f"time until test accuracy {study.grid.targets[training.model]:.2f} [s]")
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
        text = _time_text(times, spread.middle)
        right = max(reached, default=0.0)
        axes.annotate(
            text, (right, at), xytext=(6, 0), textcoords="offset points", va="center", fontsize=7.5, color="#444444",
        )  # fmt: skip
    axes.set_ylim(max(rows.values(), default=0) + 0.8, -0.8)
    axes.grid(axis="y", visible=False)
    _, right = axes.get_xlim()
    axes.set_xlim(0, 1.1 * right)


def _time_text(times: Sequence[float], middle: float) -> str:
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


# -- accuracy over time and over steps -------------------------------------------------------------

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


# -- what takes a step's time, and who waited when -------------------------------------------------


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


# -- the map of strategies, as a table and as figures, and times with many workers -----------------

Case = tuple[int, str, float]  # workers, straggler, share


def best(study: Study, case: Case) -> tuple[Cell, Spread | None]:
    """The strategy that reaches the target first by some seeds, and its change against BSP by the others; None for
    BSP."""
    mine = [cell for cell in study.grid.map if (cell.workers, cell.straggler, cell.share) == case]
    strategies = {cell.strategy: cell for cell in mine}
    found = study.best([*strategies.values()], CHOOSING)
    return found, None if found.strategy == "bsp" else study.change(found, strategies["bsp"], seeds=REPORTED)


def map_rows(study: Study) -> Table:
    """A table of the map."""
    head = ["workers", "straggler", "wanted share", "shortest median time", "against BSP, other seeds"]
    rows = []
    for case in dict.fromkeys((cell.workers, cell.straggler, cell.share) for cell in study.grid.map):
        cell, gain = best(study, case)
        cells = names.strategy(cell), "-" if gain is None else gain.percent()
        rows.append([str(case[0]), straggler_name(case[1]), percent(case[2]), *cells])
    return head, rows


def strategy_map(study: Study, workers: int, path: Path) -> Path:
    """The map for so many workers: a box for each straggler strength and share."""
    cells = [cell for cell in study.grid.map if cell.workers == workers]
    strengths, shares = list(dict.fromkeys(cell.straggler for cell in cells)), sorted({cell.share for cell in cells})
    figure, axes = panels(1, 1, width=5.2, height=0.62 * len(strengths) + 1.1)
    each = axes[0, 0]
    for row, straggler in enumerate(strengths):
        for column, share in enumerate(shares):
            found, gain = best(study, (workers, straggler, share))
            colour = look(found.strategy).colour
            each.add_patch(Rectangle((column - 0.48, row - 0.48), 0.96, 0.96, facecolor=colour, alpha=0.3))
            change = "" if gain is None else f"\n{100 * gain.middle:+.0f} %{_range(gain)}"
            each.text(column, row, f"{look(found.strategy).name}{change}", ha="center", va="center", fontsize=8)
    each.set_xlim(-0.5, len(shares) - 0.5)
    each.set_ylim(len(strengths) - 0.5, -0.5)
    each.set_xticks(range(len(shares)), [percent(share) for share in shares])
    each.set_yticks(range(len(strengths)), _strengths(strengths), fontsize=8)
    each.set_xlabel("wanted share of the exchange")
    each.grid(visible=False)
    each.set_title(f"{workers} workers (simulated)", fontsize=10)
    return save(figure, path)


def _range(gain: Spread) -> str:
    return f" [{100 * gain.low:+.0f}, {100 * gain.high:+.0f}]" if np.isfinite(gain.high) else ""


def _strengths(stragglers: Sequence[str]) -> list[str]:
    parsed = [(text.partition(":")[0], names.settings(text)) for text in stragglers]
    return [
        f"slow with p = {values['probability']}" if name == "slow_worker" else f"one {values['factor']}x slower"
        for name, values in parsed
    ]


def scale(study: Study, path: Path) -> Path:
    """Time per step over the number of workers, for cells that train nothing."""
    cells = study.grid.scale
    figure, axes = panels(1, 1, width=5.2, height=3.6)
    each = axes[0, 0]
    for kind in dict.fromkeys(look(cell.strategy).kind for cell in cells):
        mine = [cell for cell in cells if look(cell.strategy).kind == kind]
        counts = [cell.workers for cell in mine]
        label = f"{kind}, k = 3/4 n" if kind == "k-of-n" else kind
        times = [1e3 * study.spread(cell, "step_s").middle for cell in mine]
        each.plot(counts, times, "o-", color=look(mine[0].strategy).colour, markersize=4, label=label)
    each.set_xscale("log", base=2)
    each.set_xticks(sorted({cell.workers for cell in cells}), sorted({cell.workers for cell in cells}))
    each.set_ylim(bottom=0)
    each.set_xlabel("workers")
    each.set_ylabel("time per step [ms]")
    each.set_title("250 ms of computing, slow_worker p 0.15 (simulated)", fontsize=10)
    one_legend(figure, axes)
    return save(figure, path)
