"""The study's results as one table of trainings, and as the page's table, which is made from that alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from serene.experiments.pytorch_study.grid import Cell, Grid
from serene.experiments.pytorch_study.tasks import TARGETS
from serene.experiments.shared import page_tables
from serene.experiments.shared.store import Store

WAY = ["task", "optimizer", "way", "strategy", "every"]
SETTINGS = [*WAY, "stragglers", "seed", "steps"]
FOUND = ["s_to_target", "seconds", "accuracy", "mbit_sent", "equal", "load", "date"]


def rows(grid: Grid, store: Store[Cell, dict[str, Any]]) -> pd.DataFrame:
    """A row with SETTINGS and FOUND for each training that is done."""
    found = []
    for cell in grid.cells():
        if (result := store.get(cell)) is not None:
            reached = [seconds for seconds, _, accuracy in result["accuracies"] if accuracy >= TARGETS[cell.task]]
            found.append([
                *(getattr(cell, name) for name in SETTINGS), f"{reached[0]:.2f}" if reached else "",
                f"{result['seconds']:.2f}", f"{result['accuracy']:.4f}", f"{result['sent'] * 8 / 1e6:.2f}",
                "yes" if result["equal"] else "no", f"{result['load']:.1f}", result["date"],
            ])  # fmt: skip
    return pd.DataFrame(found, columns=[*SETTINGS, *FOUND])


def read_csv(path: Path) -> pd.DataFrame:
    return pd.read_csv(path)


def parts(found: pd.DataFrame, grid: Grid) -> dict[str, str]:
    """What the page has of the results, by `page_tables` parts."""
    return {"pytorch-study": page_tables.markdown(*table(found, grid))}


def table(found: pd.DataFrame, grid: Grid) -> tuple[list[str], list[list[str]]]:
    """Of each way of training a row: by stragglers the accuracies at the end (mean and standard deviation of the seeds)
    and the seconds to the target (median of the seeds; a seed that never got there counts as endless)."""
    found = found.assign(**{name: pd.to_numeric(found[name]) for name in ("s_to_target", "accuracy", "mbit_sent")})
    by = dict(iter(found.fillna({"s_to_target": np.inf}).groupby(WAY)))
    lines = []
    for task in grid.tasks:
        for optimizer in grid.optimizers:
            for way, strategy, every in grid.ways():
                if (mine := by.get((task, optimizer, way, strategy, every))) is not None:
                    name = strategy if way.startswith("shared") else way
                    lines.append([task, optimizer, name, str(every), *_cells(mine, grid)])
    head = ["task", "optimizer", "way", "every", "seeds"]
    head += [f"{what}, {stragglers}" for what in ("accuracy", "s to target") for stragglers in grid.stragglers]
    return [*head, "Mbit a worker sends", "replicas equal"], lines


def _cells(mine: pd.DataFrame, grid: Grid) -> list[str]:
    parts = [mine[mine["stragglers"] == stragglers] for stragglers in grid.stragglers]
    counts, equal = list(map(len, parts)), (mine["equal"] == "yes").sum()
    return [
        "/".join(map(str, counts)) if len(set(counts)) > 1 else str(counts[0]),
        *(_accuracy(some["accuracy"]) for some in parts),
        *(_to_target(some["s_to_target"]) for some in parts),
        f"{mine['mbit_sent'].mean():.1f}",
        "yes" if equal == len(mine) else f"{equal} of {len(mine)}",
    ]


def _accuracy(some: pd.Series) -> str:
    spread = f" ± {some.std():.3f}" if len(some) > 1 else ""
    return f"{some.mean():.3f}{spread}" if len(some) else "-"


def _to_target(some: pd.Series) -> str:
    return "-" if some.empty else "never" if np.isinf(some.median()) else f"{some.median():.1f}"
