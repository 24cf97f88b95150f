"""The study's picture: how losses part, how accuracy grows, and the errors of sums by magnitude."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from serene.experiments.pytorch_study.cells import EXAMPLES, GLOO, SERENE, Results
from serene.experiments.pytorch_study.grid import OPTIMISERS, Grid
from serene.experiments.pytorch_study.measures import Parting, magnitude_errors
from serene.experiments.pytorch_study.mirrored import BACKEND as MIRRORED
from serene.experiments.shared.style import panels, save
from serene.palette import BLACK, BLUE, GREEN, ORANGE, VERMILION

COLOURS = {SERENE: BLUE, GLOO: BLACK, MIRRORED: VERMILION}
COURSES = (
    (GLOO, 32, COLOURS[GLOO], "-"), (SERENE, 32, COLOURS[SERENE], "--"),
    (SERENE, 16, GREEN, "-."), (SERENE, 8, ORANGE, ":"),
)  # fmt: skip
LINES = {"sgd": "-", "adam": ":"}
LEAST = 1e-8  # where a difference of 0 is drawn; float32 has none between 0 and this
NAMES = {"resnet": "ResNet-18, Fashion-MNIST", "transformer": "transformer, license texts"}


def draw(grid: Grid, results: Results, path: Path) -> Path:
    """Draws the results into an image file. Raises NotTrained."""
    figure, axes = panels(2, 3, width=4.4, height=3.3)
    for each, what in zip(axes[0], EXAMPLES, strict=True):
        _partings(each, grid, results, what)
    for each, what in zip(axes[1], grid.task_steps, strict=False):
        _accuracy(each, grid, results, what)
    _magnitudes(axes[1][2], grid, results)
    return save(figure, path)


def _partings(axes: Any, grid: Grid, results: Results, what: str) -> None:
    for optimiser in OPTIMISERS:
        reference = grid.example(what, optimiser, GLOO)
        for backend, name in ((SERENE, "switch"), (MIRRORED, "gloo, ranks reversed")):
            parting = Parting.of(results, grid.example(what, optimiser, backend), reference)
            axes.plot(
                range(1, len(parting.differences) + 1), parting.differences.clip(LEAST),
                color=COLOURS[backend], linestyle=LINES[optimiser], linewidth=1.0, label=f"{name}, {optimiser}",
            )  # fmt: skip
    axes.set_yscale("log")
    axes.set_title(f"examples/{what}.py: losses differ from gloo's", fontsize=10)
    axes.set_xlabel("step")
    axes.set_ylabel("part of the loss")
    axes.legend(frameon=False, fontsize=7)


def _accuracy(axes: Any, grid: Grid, results: Results, what: str) -> None:
    for seed in grid.seeds:
        for backend, bits, colour, line in COURSES:
            looks = results.result(grid.task(what, backend, seed, bits))["accuracies"]
            name = backend if bits == 32 else f"{backend}, {bits} bits"
            axes.plot(
                [step for step, _ in looks], [accuracy for _, accuracy in looks],
                color=colour, linestyle=line, marker="o", markersize=3, linewidth=1.2,
                label=name if seed == grid.seeds[0] else None,
            )  # fmt: skip
    axes.set_title(f"{NAMES[what]}: {len(grid.seeds)} seeds", fontsize=10)
    axes.set_xlabel("step")
    axes.set_ylabel("accuracy in the test")
    axes.legend(frameon=False, fontsize=8)


def _magnitudes(axes: Any, grid: Grid, results: Results) -> None:
    alone = [errors for errors in magnitude_errors(results, grid) if not errors.beside]
    for name, colour, marker in (
        ("fixed", ORANGE, "s"),
        ("gloo", COLOURS[GLOO], "x"),
        ("serene", COLOURS[SERENE], "o"),
    ):
        axes.plot(
            [errors.magnitude for errors in alone], [max(getattr(errors, name).max(), LEAST) for errors in alone],
            color=colour, marker=marker, markersize=4, linewidth=1.2,
            label={"fixed": "fixed scale", "gloo": "gloo", "serene": "switch, by block"}[name],
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_title("largest error in a block", fontsize=10)
    axes.set_xlabel("largest gradient in the block")
    axes.set_ylabel("part of the largest gradient")
    axes.legend(frameon=False, fontsize=8)
