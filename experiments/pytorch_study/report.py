"""The study's report: tables in Markdown, all numbers as CSV, and the picture. Functions raise NotTrained."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from serene import outputs
from serene.client.blocks import BITS
from serene.experiments.pytorch_study.cells import EXAMPLES, GLOO, SERENE, Cell, Results
from serene.experiments.pytorch_study.grid import OPTIMISERS, Grid
from serene.experiments.pytorch_study.measures import (
    EARLY,
    NOTICEABLE,
    Parting,
    last_accuracies,
    losses,
    magnitude_errors,
    step_ms,
)
from serene.experiments.pytorch_study.mirrored import BACKEND as MIRRORED
from serene.experiments.pytorch_study.picture import draw

LAST = 10  # steps at the end, whose losses are averaged
Row = Sequence[str | float | int]


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def examples(grid: Grid, results: Results) -> str:
    """The table of the examples: how their losses part from gloo's, and gloo mirrored from gloo."""
    head = [
        "program", "optimiser", "loss, first and last step", f"differs, steps 1-{EARLY}", f"steps 1-{grid.steps}",
        f"from step on above {NOTICEABLE:.0e}", f"gloo mirrored, 1-{EARLY}", f"1-{grid.steps}", "from step on",
    ]  # fmt: skip
    return markdown(head, [line for what in EXAMPLES for line in _example(grid, results, what)])


def _example(grid: Grid, results: Results, what: str) -> Iterable[list[str]]:
    for optimiser in OPTIMISERS:
        reference = grid.example(what, optimiser, GLOO)
        course = losses(results, reference)
        mirrored = Parting.of(results, grid.example(what, optimiser, MIRRORED), reference)
        cells = {what: grid.example(what, optimiser, SERENE)}
        if what == "restarts":
            cells[f"{what}, a rank killed at step {grid.killed(optimiser).die_at}"] = grid.killed(optimiser)
        for name, cell in cells.items():
            ours = Parting.of(results, cell, reference)
            ends = f"{course[0]:.4f}, {course[-1]:.4f}"
            yield [name, optimiser, ends, *_parting(ours), *_parting(mirrored)]


def _parting(parting: Parting) -> list[str]:
    return [f"{parting.early:.1e}", f"{parting.largest:.1e}", str(parting.noticed or "never")]


def tasks(grid: Grid, results: Results) -> str:
    """The table of the tasks: their accuracies at the end, through the switch and by gloo."""
    head = ["model", "parameters", "steps", *(f"{name}, seeds {_listed(grid.seeds)}" for name in (SERENE, GLOO)),
            "means", "seeds' standard deviation", "ms a step"]  # fmt: skip
    rows = []
    for what, steps in grid.task_steps.items():
        ours, theirs = (last_accuracies(results, grid, what, backend) for backend in (SERENE, GLOO))
        parameters = results.result(grid.task(what, SERENE, grid.seeds[0]))["parameters"]
        rows.append(
            [
                what, f"{parameters:,}", str(steps),
                *(", ".join(f"{value:.4f}" for value in accuracies) for accuracies in (ours, theirs)),
                f"{ours.mean():.4f} and {theirs.mean():.4f}",
                f"{ours.std(ddof=1):.4f} and {theirs.std(ddof=1):.4f}",
                " and ".join(f"{step_ms(results, grid, what, backend):.0f}" for backend in (SERENE, GLOO)),
            ]
        )  # fmt: skip
    return markdown(head, rows)


def precision(grid: Grid, results: Results) -> str:
    """The table of the tasks with fewer bits: accuracies and losses at the end."""
    head = ["model", "bits", f"accuracy, seeds {_listed(grid.seeds)}", "mean", "mean of the losses at the end"]
    rows = []
    for what in grid.task_steps:
        for backend, bits in ((GLOO, 32), *((SERENE, bits) for bits in BITS)):
            accuracies = last_accuracies(results, grid, what, backend, bits)
            ends = [losses(results, grid.task(what, backend, seed, bits))[-LAST:].mean() for seed in grid.seeds]
            rows.append(
                [
                    what, "gloo" if backend == GLOO else str(bits), ", ".join(f"{value:.4f}" for value in accuracies),
                    f"{accuracies.mean():.4f}", f"{np.mean(ends):.4f}",
                ]
            )  # fmt: skip
    return markdown(head, rows)


def growth(grid: Grid, results: Results) -> str:
    """The table of how fast losses part in the tasks' trainings."""
    head = ["model", "losses differ", "step 1", "10", "20", "50", "last"]
    rows = []
    for what in grid.task_steps:
        seed = grid.seeds[0]
        reference = grid.task(what, GLOO, seed)
        for backend, name in ((SERENE, "through the switch"), (MIRRORED, "gloo mirrored")):
            differences = Parting.of(results, grid.task(what, backend, seed), reference).differences
            at = [0, *(step - 1 for step in (10, 20, 50)), len(differences) - 1]
            rows.append([what, name, *(f"{differences[step]:.1e}" if step < len(differences) else "" for step in at)])
    return markdown(head, rows)


def magnitudes(grid: Grid, results: Results) -> str:
    """The table of errors by magnitude."""
    head = ["largest gradient", "in its block", "blocks", "switch, median and worst", "gloo", "fixed scale"]
    return markdown(
        head,
        [
            [
                f"{errors.magnitude:.0e}",
                f"also {errors.beside:.0e}" if errors.beside else "nothing else",
                str(len(errors.serene)),
                *(
                    f"{np.median(column):.1e}, {column.max():.1e}"
                    for column in (errors.serene, errors.gloo, errors.fixed)
                ),
            ]
            for errors in magnitude_errors(results, grid)
            if not 0 < errors.beside < errors.magnitude  # smaller gradients in its block do not change a block's scale
        ],
    )


def ran_on(results: Results, cells: Iterable[Cell]) -> list[str]:
    """What the trainings ran on: a line for each combination of machine, system and versions, with the dates."""
    dates: dict[str, set[str]] = {}
    for cell in cells:
        about = results.about(cell)
        dates.setdefault("; ".join(about[name] for name in ("machine", "system", "versions")), set()).add(about["date"])
    return [f"{what} ({' to '.join(dict.fromkeys((min(days), max(days))))})" for what, days in dates.items()]


def text(grid: Grid, results: Results) -> str:
    """The whole report."""
    cells = grid.cells()
    parts = [
        *ran_on(results, cells),
        f"{grid.ranks} ranks on one machine, through a pool of 512 slots; seeds {_listed(grid.seeds)}; "
        f"{len(cells)} trainings",
        examples(grid, results),
        tasks(grid, results),
        precision(grid, results),
        growth(grid, results),
        magnitudes(grid, results),
    ]
    return "\n\n".join(parts) + "\n"


def write(grid: Grid, results: Results, out: Path) -> str:
    """Writes report.md, losses.csv, accuracies.csv, magnitudes.csv and pytorch-study.png into ``out``, and returns the
    report's text. Raises CannotWrite."""
    report = text(grid, results)
    outputs.write_text(out / "report.md", report)
    cells = grid.cells()
    courses = [cell for cell in cells if cell.what in (*EXAMPLES, *grid.task_steps)]
    _csv(
        out / "losses.csv",
        ["what", "optimiser", "backend", "bits", "seed", "die_at", "step", "loss"],
        (
            (cell.what, cell.optimiser, cell.backend, cell.bits, cell.seed, cell.die_at, step, loss)
            for cell in courses
            for step, loss in enumerate(losses(results, cell).tolist(), 1)
        ),
    )
    _csv(
        out / "accuracies.csv",
        ["what", "backend", "bits", "seed", "step", "accuracy"],
        (
            (cell.what, cell.backend, cell.bits, cell.seed, step, accuracy)
            for cell in cells
            if cell.what in grid.task_steps
            for step, accuracy in results.result(cell)["accuracies"]
        ),
    )
    _csv(
        out / "magnitudes.csv",
        ["backend", "block", "magnitude", "beside", "values", "error", "fixed"],
        (
            (
                backend,
                number,
                row["magnitude"],
                max(row["beside"], default=0.0),
                row["values"],
                row["error"],
                row["fixed"],
            )
            for backend in (SERENE, GLOO)
            for number, row in enumerate(results.result(grid.magnitudes(backend)))
        ),
    )
    draw(grid, results, out / "pytorch-study.png")
    return report


def _csv(path: Path, head: Sequence[str], rows: Iterable[Row]) -> None:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    outputs.write_text(path, file.getvalue())


def _listed(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds))
