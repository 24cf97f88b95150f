"""What the report computes from the trainings' results: how losses part, accuracies by seed, errors by magnitude."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from serene.experiments.pytorch_study.cells import GLOO, SERENE, Cell, Results
from serene.experiments.pytorch_study.grid import Grid

EARLY = 10  # the first steps
NOTICEABLE = 1e-5  # a difference relative to the loss: a hundred times float32's precision


def losses(results: Results, cell: Cell) -> np.ndarray:
    """The losses of a training, float64[steps]. Raises NotTrained."""
    found = results.result(cell)
    return np.array(found if isinstance(found, list) else found["losses"], np.float64)


@dataclass(frozen=True)
class Parting:
    """How the losses of two trainings part. differences: of each step, relative to the reference's loss;
    float64[steps]."""

    differences: np.ndarray

    @classmethod
    def of(cls, results: Results, cell: Cell, reference: Cell) -> Parting:
        """Compares a training's losses with a reference's. Raises NotTrained."""
        ours, theirs = losses(results, cell), losses(results, reference)
        return cls(np.abs(ours - theirs) / np.abs(theirs))

    @property
    def early(self) -> float:
        """The largest difference in the first EARLY steps."""
        return float(self.differences[:EARLY].max())

    @property
    def largest(self) -> float:
        """The largest difference in all steps."""
        return float(self.differences.max())

    @property
    def noticed(self) -> int | None:
        """The first step, from 1, with a difference above NOTICEABLE; None if there is none."""
        steps = np.flatnonzero(self.differences > NOTICEABLE)
        return int(steps[0]) + 1 if steps.size else None


def last_accuracies(results: Results, grid: Grid, what: str, backend: str, bits: int = 32) -> np.ndarray:
    """The accuracies at the end of a task's trainings, float64[seeds]. Raises NotTrained."""
    cells = [grid.task(what, backend, seed, bits) for seed in grid.seeds]
    return np.array([results.result(cell)["accuracies"][-1][1] for cell in cells], np.float64)


def step_ms(results: Results, grid: Grid, what: str, backend: str) -> float:
    """The median time of a step in milliseconds, over all seeds. Raises NotTrained."""
    cells = [grid.task(what, backend, seed) for seed in grid.seeds]
    return 1e3 * float(np.median([results.result(cell)["seconds"] for cell in cells]))


@dataclass(frozen=True)
class MagnitudeErrors:
    """The errors of sums of gradients of one magnitude. serene, gloo, fixed: for each block, or segment of one, the
    largest error relative to the largest exact value. beside: the largest magnitude of other layers in those blocks; 0
    if they have no other layer."""

    magnitude: float
    beside: float
    serene: np.ndarray
    gloo: np.ndarray
    fixed: np.ndarray


def magnitude_errors(results: Results, grid: Grid) -> list[MagnitudeErrors]:
    """By magnitude, first those of blocks with one layer only. Raises NotTrained."""
    ours, theirs = (results.result(grid.magnitudes(backend)) for backend in (SERENE, GLOO))
    groups: dict[tuple[float, float], list[tuple[dict[str, Any], dict[str, Any]]]] = {}
    for row, other in zip(ours, theirs, strict=True):
        groups.setdefault((max(row["beside"], default=0.0), row["magnitude"]), []).append((row, other))
    return [
        MagnitudeErrors(magnitude, beside, *_columns(rows))
        for (beside, magnitude), rows in sorted(
            groups.items(), key=lambda item: (item[0][0] > 0, item[0][1], item[0][0])
        )
    ]


def _columns(rows: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return (
        np.array([ours["error"] for ours, _ in rows]),
        np.array([theirs["error"] for _, theirs in rows]),
        np.array([ours["fixed"] for ours, _ in rows]),
    )
