"""Grids small enough for tests, with everything in them that a report needs."""

from __future__ import annotations

from dataclasses import replace

from experiments.straggler import grid
from experiments.straggler.cell import NOTHING, SOFTMAX, Cell
from experiments.straggler.grid import Grid

STRATEGIES = ("bsp", "ssp:3", "ssp:10", "asp", "auto:waiting")


def study_cell(strategy: str, seed: int = 1, rate: float | None = None) -> Cell:
    return replace(grid.cell(4, "mlp", grid.SLOW, strategy, seed, rate), steps=6)


def tiny() -> Grid:
    """A study of two seeds and six steps, which no target is reached in."""
    study = [study_cell(strategy, seed) for strategy in STRATEGIES for seed in (1, 2)]
    small = Cell(model=SOFTMAX, steps=40, compute_ms=250, eval_every=2, network=grid.SWITCHED)
    strengths = ("slow_worker:probability=0.3,low=0.5,high=2.0", "heterogeneous:factor=2.0,workers=0")
    return Grid(
        "tiny",
        tuple(study),
        tuple(study_cell("bsp", seed, rate) for rate in (0.1, 0.2) for seed in (1, 2)),
        tuple(
            replace(small, straggler=straggler, strategy=strategy, workers=workers)
            for straggler in strengths
            for strategy in ("bsp", "asp", "auto:waiting")
            for workers in (2, 4)
        ),
        tuple(
            replace(small, model=NOTHING, strategy=strategy, workers=workers, straggler=grid.SLOW)
            for strategy in ("bsp", "asp")
            for workers in (2, 4)
        ),
        (),
    )
