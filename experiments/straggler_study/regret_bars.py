"""What the shipped automatic strategy is worth in all cells together, beside its bars, from the table of runs
(rows.py); and what regret the seeds' scatter alone makes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from serene.experiments.straggler_study.cases import STRAGGLERS
from serene.experiments.straggler_study.grid import fixed

NEVER = 2.0  # a run that does not reach the target counts as so many times its length
OF_A_CELL = ("model", "learning_rate", "momentum", "share", "straggler", "workers")


def bars(rows: Iterable[Mapping[str, object]], strategy: str) -> str:
    """A paragraph. rows: runs, each with the columns of rows.py, as values or as text. strategy: as in these, one of
    the automatic ones; cells that lack it do not count."""
    cells: dict[tuple[str, ...], dict[str, dict[str, float]]] = {}
    for row in rows:
        took = float(str(row["s_to_until"] or NEVER * float(str(row["whole_s"]))))
        of_cell = cells.setdefault(tuple(str(row[name]) for name in OF_A_CELL), {})
        of_cell.setdefault(str(row["strategy"]), {})[str(row["seed"])] = took
    times: list[tuple[float, ...]] = []
    regret, scatter, changing = list[float](), list[float](), list[bool]()
    for cell, by in cells.items():
        if strategy not in by:
            continue
        means = {name: float(np.mean([*by[name].values()])) for name in (*fixed(int(cell[-1])), strategy)}
        own = means.pop(strategy)
        best = min(means.values())
        times.append((own, *means.values()))
        regret.append(own / best)
        scatter.append(float(np.mean([by[_best(by, seed, means)][seed] for seed in by[strategy]])) / best)
        if cell[4] == STRAGGLERS["changing"]:
            changing.append(own < best)
    own_s, *fixed_s = np.sum(times, axis=0)
    return (
        f"Over {len(regret)} cells: regret {np.mean(regret):.2f} in the mean (bar 1.05) and {max(regret):.2f} in the "
        f"worst cell (1.15); {own_s / min(fixed_s):.2f} of the best single fixed strategy's time over all cells "
        f"together (0.90); faster than the best fixed strategy in {sum(changing)} of {len(changing)} cells whose "
        f"regime changes (90 %). The fixed strategy that is best by the other seeds has {np.mean(scatter):.2f} in the "
        f"mean and {max(scatter):.2f} in the worst cell: so much of a regret is scatter."
    )


def _best(by: Mapping[str, Mapping[str, float]], seed: str, names: Iterable[str]) -> str:
    """The fixed strategy with the shortest time by the other seeds."""
    return min(names, key=lambda name: sum(took for other, took in by[name].items() if other != seed))
