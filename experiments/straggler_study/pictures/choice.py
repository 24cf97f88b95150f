"""Which strategy when: the map, what many workers change, and how near the automatic strategies come."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from experiments.shared.style import one_legend, panels, save
from experiments.straggler_study import grid
from experiments.straggler_study.cell import Cell
from experiments.straggler_study.names import case_title
from experiments.straggler_study.study import Study
from serene.palette import look


def strength_name(straggler: str) -> str:
    """The one number that the map varies."""
    name, _, rest = straggler.partition(":")
    values = dict(item.split("=") for item in rest.split(",") if item)
    return f"p = {values['probability']}" if name == "slow_worker" else f"{values['factor']}x"


def strategy_map(study: Study, path: Path) -> Path:
    """Straggler strength x workers: the strategy that reaches the target first, and what it gains over BSP."""
    cells = study.grid.map
    kinds = [kind for kind in ("slow_worker", "heterogeneous") if any(c.straggler.startswith(kind) for c in cells)]
    figure, axes = panels(1, len(kinds), width=6.4, height=4.2)
    for each, kind in zip(axes[0], kinds, strict=True):
        mine = [cell for cell in cells if cell.straggler.startswith(kind)]
        strengths = list(dict.fromkeys(cell.straggler for cell in mine))
        counts = sorted({cell.workers for cell in mine})
        for row, straggler in enumerate(strengths):
            for column, workers in enumerate(counts):
                case = study.strategies(mine, mine[0].model, workers, straggler)
                if not case:  # larger jobs have fewer strengths
                    continue
                fixed = [cell for cell in case if not cell.automatic]
                best, base = study.best(fixed), next(cell for cell in fixed if cell.strategy == "bsp")
                gain = study.against(best, base).time
                each.add_patch(_square(column, row, look(best.strategy).colour))
                spread = f"[{100 * gain.low:+.0f}, {100 * gain.high:+.0f}]" if np.isfinite(gain.high) else ""
                each.text(
                    column, row, f"{look(best.strategy).kind}\n{100 * gain.middle:+.0f} %\n{spread}",
                    ha="center", va="center", fontsize=8,
                )  # fmt: skip
        each.set_xlim(-0.5, len(counts) - 0.5)
        each.set_ylim(-0.5, len(strengths) - 0.5)
        each.set_xticks(range(len(counts)), counts)
        each.set_yticks(range(len(strengths)), [strength_name(straggler) for straggler in strengths])
        each.set_xlabel("workers")
        each.grid(visible=False)
        title = "each iteration slow with probability p" if kind == "slow_worker" else "one worker slower for good"
        each.set_title(title, fontsize=10)
    return save(figure, path)


def _square(column: int, row: int, colour: str):  # type: ignore[no-untyped-def]
    from matplotlib.patches import Rectangle

    return Rectangle((column - 0.48, row - 0.48), 0.96, 0.96, facecolor=colour, alpha=0.35, edgecolor="none")


def automatic(study: Study, cells: Sequence[Cell], path: Path) -> Path:
    """Time to the target of each automatic strategy, in units of the best fixed one's median; BSP for comparison."""
    cases = [case for case in study.cases(cells) if any(c.automatic for c in study.strategies(cells, *case))]
    figure, axes = panels(1, 1, width=2.0 + 1.25 * len(cases), height=4.2)
    each, shown = axes[0, 0], set()
    for place, case in enumerate(cases):
        strategies = study.strategies(cells, *case)
        best = study.spread(study.best([cell for cell in strategies if not cell.automatic]), "target_s").middle
        chosen = [cell for cell in strategies if cell.automatic or cell.strategy == "bsp"]
        for number, cell in enumerate(chosen):
            spread, at = study.spread(cell, "target_s"), place + 0.8 * (number + 0.5) / len(chosen) - 0.4
            if not np.isfinite(spread.middle):
                continue
            high = spread.high if np.isfinite(spread.high) else spread.middle
            label = None if cell.strategy in shown else look(cell.strategy).name
            shown.add(cell.strategy)
            each.errorbar(
                [at], [spread.middle / best], [[(spread.middle - spread.low) / best], [(high - spread.middle) / best]],
                fmt="o", color=look(cell.strategy).colour, markersize=5, elinewidth=1, label=label,
            )  # fmt: skip
    each.axhline(1, color="#444444", linewidth=0.9)
    names = [f"{model}, {workers}\n{straggler.partition(':')[0]}" for model, workers, straggler in cases]
    each.set_xticks(range(len(cases)), names, fontsize=8)
    each.set_ylabel("time to the target, best fixed strategy = 1")
    one_legend(figure, axes)
    return save(figure, path)


def scale(study: Study, path: Path) -> Path:
    """Time per step as workers are added: timing alone."""
    cells = study.grid.scale
    figure, axes = panels(1, 1, width=7, height=4)
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
    each.legend(fontsize=8, frameon=False)
    return save(figure, path)


def tuning(study: Study, path: Path) -> Path:
    """Time to the target over the learning rate, for the straggler that the paper reports most of."""
    cells = [cell for cell in study.grid.tuning if cell.straggler == grid.SLOW]
    counts = sorted({cell.workers for cell in cells})
    figure, axes = panels(1, len(counts))
    for each, workers in zip(axes[0], counts, strict=True):
        for strategy in dict.fromkeys(cell.strategy for cell in cells if cell.workers == workers):
            mine = [cell for cell in cells if (cell.workers, cell.strategy) == (workers, strategy)]
            found = {}
            for cell in mine:
                found[cell.learning_rate or grid.OWN_RATE[cell.model]] = study.spread(cell, "target_s")
            rates = sorted(rate for rate, spread in found.items() if np.isfinite(spread.middle))
            middle = np.array([found[rate].middle for rate in rates])
            low = np.array([found[rate].low for rate in rates])
            high = np.array(
                [found[rate].high if np.isfinite(found[rate].high) else found[rate].middle for rate in rates]
            )
            each.errorbar(
                rates, middle, [middle - low, high - middle], fmt="o-", color=look(strategy).colour, markersize=4,
                linewidth=1.2, elinewidth=0.8, capsize=2, label=look(strategy).name,
            )  # fmt: skip
        each.set_ylim(bottom=0)
        each.set_xlabel("learning rate")
        each.set_title(case_title(workers, grid.SLOW), fontsize=9)
    axes[0, 0].set_ylabel("time to the target [s]")
    one_legend(figure, axes)
    return save(figure, path)
