"""Where both engines ran the same cell: do they say the same?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from experiments.shared.style import one_legend, panels, save
from experiments.straggler_study import grid
from experiments.straggler_study.cell import Cell
from experiments.straggler_study.study import Study
from serene.palette import look

MEASURES = (
    ("step_s", "time per step [s]"),
    ("target_s", "time to the target [s]"),
    ("waiting_s", "waiting per step [s]"),
)


@dataclass(frozen=True)
class Pair:
    """A cell's numbers by both engines: simulated and emulated, by the names of Numbers."""

    cell: Cell
    simulated: dict[str, float]
    emulated: dict[str, float]


def pairs(study: Study) -> list[Pair]:
    """All cells of the grid that both engines have run."""
    found = []
    for cell in study.grid.emulated:
        twin = replace(cell, engine="simulated", network=grid.LOOPBACK)
        if study.store.get(cell) is None or study.store.get(twin) is None:
            continue
        values = [
            {name: float(getattr(study.numbers(each), name)) for name in (*dict(MEASURES), "target_steps")}
            for each in (twin, cell)
        ]
        found.append(Pair(cell, values[0], values[1]))
    return found


def difference(found: list[Pair], name: str) -> tuple[float, float]:
    """Median and largest |simulated / emulated - 1| of a measure, over the cells where both have it."""
    ratios = [
        abs(pair.simulated[name] / pair.emulated[name] - 1)
        for pair in found
        if np.isfinite([pair.simulated[name], pair.emulated[name]]).all() and pair.emulated[name] > 0
    ]
    return (float(np.median(ratios)), float(max(ratios))) if ratios else (float("nan"), float("nan"))


def draw(found: list[Pair], path: Path) -> Path:
    """Simulated over emulated; on the line they agree."""
    figure, axes = panels(1, len(MEASURES), width=4.2, height=3.8)
    for each, (name, title) in zip(axes[0], MEASURES, strict=True):
        values = [(pair.emulated[name], pair.simulated[name], pair.cell.strategy) for pair in found]
        top = 1.1 * max([value for pair in values for value in pair[:2] if np.isfinite(value)], default=1.0)
        each.plot([0, top], [0, top], color="#888888", linewidth=0.9)
        for real, virtual, strategy in values:
            each.plot(
                [real], [virtual], "o", color=look(strategy).colour, markersize=5, alpha=0.7,
                label=look(strategy).name,
            )  # fmt: skip
        each.set_xlim(0, top)
        each.set_ylim(0, top)
        each.set_xlabel(f"emulated: {title}")
        each.set_ylabel("simulated")
    one_legend(figure, axes)
    return save(figure, path)


def text(found: list[Pair]) -> str:
    """How well they agree, in a sentence."""
    parts = []
    for name, title in MEASURES:
        middle, worst = difference(found, name)
        parts.append(
            f"{title.partition(' [')[0]} differs by {100 * middle:.1f} % (median; at most {100 * worst:.1f} %)"
        )
    steps = difference([pair for pair in found if pair.cell.strategy == "bsp"], "target_steps")
    end = (
        f" Under BSP the steps to the target differ by at most {100 * steps[1]:.2f} %." if steps[1] == steps[1] else ""
    )
    return f"Over {len(found)} cells: " + "; ".join(parts) + "." + end
