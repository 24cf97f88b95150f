"""The map of strategies, as a table and as figures, and times with many workers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.patches import Rectangle

from serene.experiments.shared.style import one_legend, panels, save
from serene.experiments.straggler_study import names
from serene.experiments.straggler_study.cell import Cell
from serene.experiments.straggler_study.grid import CHOOSING, REPORTED
from serene.experiments.straggler_study.names import percent, straggler_name
from serene.experiments.straggler_study.study import Spread, Study, Table
from serene.palette import look

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
        told = names.strategy(cell), "-" if gain is None else gain.percent()
        rows.append([str(case[0]), straggler_name(case[1]), percent(case[2]), *told])
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
            said = "" if gain is None else f"\n{100 * gain.middle:+.0f} %{_range(gain)}"
            each.text(column, row, f"{look(found.strategy).name}{said}", ha="center", va="center", fontsize=8)
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
    told = [(text.partition(":")[0], names.settings(text)) for text in stragglers]
    return [
        f"slow with p = {values['probability']}" if name == "slow_worker" else f"one {values['factor']}x slower"
        for name, values in told
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
