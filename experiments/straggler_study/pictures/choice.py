"""The figures of the simulated cells: the map of strategies, and times with many workers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.patches import Rectangle

from serene.experiments.shared.style import one_legend, panels, save
from serene.experiments.straggler_study.grid import CHOOSING, REPORTED
from serene.experiments.straggler_study.names import percent
from serene.experiments.straggler_study.study import Study
from serene.palette import look


def strength_name(straggler: str) -> str:
    """The strength of a straggler of the map, in words."""
    name, _, rest = straggler.partition(":")
    values = dict(item.split("=") for item in rest.split(",") if item)
    return f"slow with p = {values['probability']}" if name == "slow_worker" else f"one {values['factor']}x slower"


def strategy_map(study: Study, workers: int, path: Path) -> Path:
    """For each straggler strength and share, the strategy that reaches the target first by some seeds, and its change
    against BSP by the others."""
    cells = [cell for cell in study.grid.map if cell.workers == workers]
    strengths = list(dict.fromkeys(cell.straggler for cell in cells))
    shares = sorted({cell.share for cell in cells})
    figure, axes = panels(1, 1, width=5.2, height=0.62 * len(strengths) + 1.1)
    each = axes[0, 0]
    for row, straggler in enumerate(strengths):
        for column, share in enumerate(shares):
            case = study.strategies(cells, workers, straggler, share)
            best, base = study.best(case, CHOOSING), next(cell for cell in case if cell.strategy == "bsp")
            gain = study.against(best, base, REPORTED).time
            each.add_patch(
                Rectangle((column - 0.48, row - 0.48), 0.96, 0.96, facecolor=look(best.strategy).colour, alpha=0.3)
            )
            said = "" if best == base else f"\n{100 * gain.middle:+.0f} %"
            spread = f" [{100 * gain.low:+.0f}, {100 * gain.high:+.0f}]" if said and np.isfinite(gain.high) else ""
            each.text(column, row, f"{look(best.strategy).name}{said}{spread}", ha="center", va="center", fontsize=8)
    each.set_xlim(-0.5, len(shares) - 0.5)
    each.set_ylim(len(strengths) - 0.5, -0.5)
    each.set_xticks(range(len(shares)), [percent(share) for share in shares])
    each.set_yticks(range(len(strengths)), [strength_name(straggler) for straggler in strengths], fontsize=8)
    each.set_xlabel("wanted share of the exchange")
    each.grid(visible=False)
    each.set_title(f"{workers} workers (simulated)", fontsize=10)
    return save(figure, path)


def scale(study: Study, path: Path) -> Path:
    """Time per step over the number of workers, for cells that train nothing."""
    cells = study.grid.scale
    figure, axes = panels(1, 1, width=5.2, height=3.6)
    each = axes[0, 0]
    for kind in dict.fromkeys(look(cell.strategy).kind for cell in cells):
        mine = [cell for cell in cells if look(cell.strategy).kind == kind]
        counts = [cell.workers for cell in mine]
        label = f"{kind}, k = 3/4 n" if kind == "k-of-n" else kind
        times = [study.numbers(cell).step_s * 1e3 for cell in mine]
        each.plot(counts, times, "o-", color=look(mine[0].strategy).colour, markersize=4, label=label)
    each.set_xscale("log", base=2)
    each.set_xticks(sorted({cell.workers for cell in cells}), sorted({cell.workers for cell in cells}))
    each.set_ylim(bottom=0)
    each.set_xlabel("workers")
    each.set_ylabel("time per step [ms]")
    each.set_title("250 ms of computing, slow_worker p 0.15 (simulated)", fontsize=10)
    one_legend(figure, axes)
    return save(figure, path)
