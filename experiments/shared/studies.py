"""What the resumable studies share: their cells are run, with a progress bar, errors and an exit status, and their
reports are written."""

from __future__ import annotations

import argparse
import base64
import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import jinja2
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from serene.arguments import command, whole
from serene.errors import BadUsage, SereneError, choices
from serene.experiments.shared import clusters, machine, terminal
from serene.experiments.shared.clusters import HERE, Cluster
from serene.experiments.shared.driver import work_off
from serene.experiments.shared.store import Store
from serene.process import outputs
from serene.process.interrupts import STATUS, ended, held
from serene.process.outputs import CannotWrite

T = TypeVar("T")
R = TypeVar("R")

MINUTE, HOUR = 60.0, 3600.0


class Failed(SereneError):
    """Cells could not be run; the message states which, and why."""


def add_options(parser: argparse.ArgumentParser, grids: Iterable[str], out: str) -> None:
    """The options of a study with grids, whose cells may run elsewhere. out: its default directory."""
    add = parser.add_argument
    add("--grid", default="quick", help=f"{choices(grids)} (default quick)")
    add("--out", type=Path, default=Path(out), help="directory for results and report (default %(default)s)")
    add("--parallel", type=whole(1), default=os.cpu_count() or 1, help="simulated cells at a time")
    clusters.add_options(parser)


def check(options: argparse.Namespace, grids: Iterable[str]) -> Cluster:
    """Checks what `add_options` added, and returns the cluster. Raises BadUsage, or as ``Cluster.check``."""
    if options.grid not in grids:
        raise BadUsage(f"--grid {options.grid}: expected {choices(grids)}")
    return clusters.chosen(options)


def main(options: argparse.Namespace, run: Callable[[argparse.Namespace, Console], None]) -> int:
    """Runs a study, prints its error if there is one, and returns the exit status. ``options.out``: its directory."""
    return ended(lambda: _main(options, run))


def _main(options: argparse.Namespace, run: Callable[[argparse.Namespace, Console], None]) -> int:
    console = terminal.console()
    try:
        return command(run)(options, console)
    except OSError as error:
        print(
            f"error: cannot write {error.filename or options.out}: {error.strerror}; finished cells are kept in "
            f"{options.out}: rerun to resume",
            file=sys.stderr,
        )
        return 1
    except KeyboardInterrupt:
        print(f"stopped; finished cells are kept in {options.out}: rerun to resume", file=sys.stderr)
        return STATUS


@dataclass(frozen=True)
class Group(Generic[T, R]):
    """Cells that run at the same time. title: of the progress bar. do: runs one; it is pickled. processes: how many,
    with these modules imported, if cells run here."""

    title: str
    cells: Sequence[T]
    do: Callable[[T], R]
    processes: int
    where: Cluster = HERE
    preload: tuple[str, ...] = ()


def sweep(groups: Iterable[Group[T, R]], store: Store[T, R], console: Console, label: Callable[[T], str] = str) -> None:
    """Runs one group after the other, and keeps the results. Raises Failed if cells fail, after all have been tried.
    label: a cell in words."""
    failures, count = [], 0
    for group in groups:
        count += len(group.cells)
        with group.where.executor(group.processes, store.directory, group.preload) as executor:
            failures += work(group.title, group.cells, group.do, store.keep, executor, label, console)
    if failures:
        raise Failed(f"{len(failures)} of {count} cells failed:\n" + "\n".join(failures[:5]))


def work(
    what: str,
    tasks: Sequence[T],
    do: Callable[[T], R],
    keep: Callable[[T, R], None],
    executor: Executor,
    label: Callable[[T], str],
    console: Console,
) -> list[str]:
    """Does all tasks on the executor, with a progress bar called ``what``, and calls ``keep`` with each task and result
    as it comes. Returns a line for each task that failed. label: a task in words.

    Raises ClusterFailed; and CannotWrite as soon as a result cannot be written, for the next ones would be lost as
    well.
    """
    failures = []
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(),
        TextColumn("{task.fields[last]}", markup=False),  # a strategy's file may have brackets in its name
    )  # fmt: skip
    with (
        Progress(*columns, console=console, refresh_per_second=2, transient=not console.is_terminal) as progress,
        contextlib.closing(work_off(tasks, do, executor)) as done,
    ):
        bar = progress.add_task(what, total=len(tasks), last="")
        for each in done:
            if each.trouble is None:
                try:
                    with held():
                        keep(each.task, cast(R, each.result))
                except CannotWrite as error:
                    raise CannotWrite(f"{error}; finished cells are kept: rerun to resume") from error
            else:
                failures.append(f"  {label(each.task)}: {each.trouble}")
            progress.update(bar, advance=1, last=label(each.task))
    return failures


def announced(
    cells: Iterable[T],
    store: Store[T, R],
    expected_s: Callable[[T], float],
    took: Callable[[R], tuple[float, str | None]],
    at_once: Callable[[T], int],
    kind: Callable[[T], str] = lambda cell: "",
) -> str:
    """What a study prints before its cells run: how many are done, and how long the others will take.

    expected_s: seconds that a cell takes, about. took: seconds that a cell took, and on which machine. at_once: how
    many cells like this one run at a time. kind: cells of one kind take the same multiple of what is expected.
    """
    results = {cell: store.get(cell) for cell in dict.fromkeys(cells)}
    missing = [cell for cell, result in results.items() if result is None]
    if not missing:
        return f"all {len(results):,} cells are done already"
    spent: dict[str, list[tuple[float, float]]] = {}
    for cell, result in results.items():
        if result is not None:
            seconds, where = took(result)
            if (where or "").startswith(machine.here()):
                spent.setdefault(kind(cell), []).append((seconds, expected_s(cell)))
    paces = {name: sum(took_s for took_s, _ in both) / sum(wanted for _, wanted in both)
             for name, both in spent.items()}  # fmt: skip
    left_s = sum(paces.get(kind(cell), 1.0) * expected_s(cell) / at_once(cell) for cell in missing)
    measured = sum(map(len, spent.values()))
    follows = f"by what {measured:,} of them took on this machine" if measured else "a guess: none was done here before"
    return (
        f"{len(results):,} cells, {len(results) - len(missing):,} of them done already. The others will take "
        f"{in_words(left_s)} on this machine ({follows}). Ctrl-C stops at any time: finished cells are kept; rerun to "
        "resume"
    )


def complete(
    title: str,
    cells: Iterable[T],
    store: Store[T, R],
    do: Callable[[T], R],
    console: Console,
    expected_s: Callable[[T], float],
    took: Callable[[R], tuple[float, str | None]],
    processes: int,
    where: Cluster = HERE,
    preload: tuple[str, ...] = (),
    label: Callable[[T], str] = str,
) -> None:
    """Prints how many cells are done, and runs the others. Arguments as of `announced` and `Group`. Raises Failed."""
    cells = list(cells)
    estimate = announced(cells, store, expected_s, took, lambda cell: processes)
    console.print(estimate, highlight=False, soft_wrap=True)
    if missing := store.missing(cells):
        sweep([Group(title, missing, do, processes, where, preload)], store, console, label)


def in_words(seconds: float) -> str:
    """A rounded length of time, for people: "about 3 minutes"."""
    if seconds < MINUTE:
        return "less than a minute"
    if seconds < 1.5 * HOUR:
        count = round(seconds / MINUTE)
        return f"about {count} {'minute' if count == 1 else 'minutes'}"
    return f"about {seconds / HOUR:.1f} hours"


def write_report(template: Path, out: Path, pictures: Mapping[str, Path], **values: Any) -> Path:
    """Writes report.html, a page that needs no other files, and returns its path. template: may extend ``study.html``
    and import the macros of ``study_parts.html``; gets the values, ``pictures`` by name, ``made``, the date, and
    ``files`` beside the page. Raises CannotWrite."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([template.parent, Path(__file__).parent]), autoescape=True,
        undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    values["pictures"] = {name: base64.b64encode(path.read_bytes()).decode() for name, path in pictures.items()}
    values["files"] = ", ".join(sorted(path.name for path in out.iterdir() if path.suffix in (".csv", ".png")))
    page = environment.get_template(template.name).render(made=time.strftime("%Y-%m-%d"), **values)
    outputs.write_text(out / "report.html", page)
    return out / "report.html"
