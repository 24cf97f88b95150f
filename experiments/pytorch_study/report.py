"""The study's results as one table of trainings (CSV), and as the page's table, which is made from that alone."""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

from serene import outputs
from serene.experiments.pytorch_study.cells import Results
from serene.experiments.pytorch_study.grid import Grid
from serene.experiments.pytorch_study.tasks import TARGETS
from serene.experiments.shared import page_tables

COLUMNS = ("task", "optimizer", "way", "strategy", "every", "stragglers", "seed", "steps", "s_to_target", "seconds",
           "accuracy", "mbit_sent", "equal", "load", "date")  # fmt: skip
Row = dict[str, str]


def rows(grid: Grid, results: Results) -> list[Row]:
    """A row for each training that is done. Raises NotTrained."""
    found = []
    for cell in grid.cells():
        if (result := results.result(cell)) is None:
            continue
        reached = [seconds for seconds, _, accuracy in result["accuracies"] if accuracy >= TARGETS[cell.task]]
        values = (
            cell.task, cell.optimizer, cell.way, cell.strategy, cell.every, cell.stragglers, cell.seed, cell.steps,
            f"{reached[0]:.2f}" if reached else "", f"{result['seconds']:.2f}", f"{result['accuracy']:.4f}",
            f"{result['sent'] * 8 / 1e6:.2f}", "yes" if result["equal"] else "no", f"{result['load']:.1f}",
            result["date"],
        )  # fmt: skip
        found.append(dict(zip(COLUMNS, map(str, values), strict=True)))
    return found


def write_csv(path: Path, found: Sequence[Row]) -> None:
    """Writes the rows. Raises CannotWrite."""
    file = io.StringIO()
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(found)
    outputs.write_text(path, file.getvalue())


def read_csv(path: Path) -> list[Row]:
    with path.open() as file:
        return list(csv.DictReader(file))


def table(found: Sequence[Row], grid: Grid) -> list[list[str]]:
    """Of each way of training a line, after the head: by stragglers the accuracies at the end (mean and standard
    deviation of the seeds) and the seconds to the target (median of the seeds; a seed that never got there counts as
    endless)."""
    head = ["task", "optimizer", "way", "every", "seeds"]
    head += [f"accuracy, {stragglers}" for stragglers in grid.stragglers]
    head += [f"s to target, {stragglers}" for stragglers in grid.stragglers]
    head += ["Mbit a worker sends", "replicas equal"]
    lines = [head]
    for task in grid.tasks:
        for optimizer in grid.optimizers:
            for way, strategy, every in grid.ways():
                wanted = {"task": task, "optimizer": optimizer, "way": way, "strategy": strategy, "every": str(every)}
                here = [row for row in found if wanted.items() <= row.items()]
                if here:
                    name = strategy if way.startswith("shared") else way
                    lines.append([task, optimizer, name, str(every), *_cells(here, grid)])
    return lines


def parts(found: Sequence[Row], grid: Grid) -> dict[str, str]:
    """What the page has of the results, by `page_tables` parts."""
    head, *lines = table(found, grid)
    return {"pytorch-study": page_tables.markdown(head, lines)}


def _cells(here: Sequence[Row], grid: Grid) -> list[str]:
    by_stragglers = [[row for row in here if row["stragglers"] == stragglers] for stragglers in grid.stragglers]
    counts = [len(some) for some in by_stragglers]
    equal = sum(row["equal"] == "yes" for row in here)
    return [
        "/".join(map(str, counts)) if len(set(counts)) > 1 else str(counts[0]),
        *(_said(some, _accuracy) for some in by_stragglers),
        *(_said(some, _to_target) for some in by_stragglers),
        f"{statistics.mean(float(row['mbit_sent']) for row in here):.1f}",
        "yes" if equal == len(here) else f"{equal} of {len(here)}",
    ]


def _said(some: Sequence[Row], what: Callable[[Sequence[Row]], str]) -> str:
    return what(some) if some else "-"


def _accuracy(some: Sequence[Row]) -> str:
    values = [float(row["accuracy"]) for row in some]
    spread = f" ± {statistics.stdev(values):.3f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.3f}{spread}"


def _to_target(some: Sequence[Row]) -> str:
    median = statistics.median(float(row["s_to_target"] or "inf") for row in some)
    return "never" if median == float("inf") else f"{median:.1f}"


def worse_than_ddp(found: Sequence[Row]) -> list[str]:
    """Of shared training under BSP with an exchange each step: tasks and optimizers whose mean accuracy is further
    below DDP's than the two spreads of the seeds together. Says nothing where fewer than two seeds of each are done."""
    said = []
    for task, optimizer in dict.fromkeys((row["task"], row["optimizer"]) for row in found):
        ours, theirs = (
            [
                float(row["accuracy"])
                for row in found
                if (row["task"], row["optimizer"], row["every"], row["stragglers"]) == (task, optimizer, "1", "none")
                and row["strategy"] == "bsp"
                and row["way"].startswith(way)
            ]
            for way in ("shared", "DDP")
        )
        if min(len(ours), len(theirs)) < 2:
            continue
        spread = statistics.stdev(ours) + statistics.stdev(theirs)
        if statistics.mean(ours) < statistics.mean(theirs) - spread:
            said.append(f"{task} with {optimizer}")
    return said
