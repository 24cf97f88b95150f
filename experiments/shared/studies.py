"""What the resumable studies share: doing tasks with a progress bar, errors and exit status, and their pages'
template."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import TypeVar, cast

import jinja2
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from serene.errors import SereneError
from serene.experiments.shared import terminal
from serene.experiments.shared.driver import work_off
from serene.interrupts import STATUS, ended, held
from serene.outputs import CannotWrite

T = TypeVar("T")
R = TypeVar("R")


class BadUsage(SereneError):
    """Invalid options; the message names the valid choices."""


class Busy(SereneError):
    """Another run writes to the same directory."""


@contextlib.contextmanager
def alone(directory: Path) -> Iterator[None]:
    """Locks a directory, which is made if need be, until the end of the block: only one run at a time writes to it.
    Raises Busy."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy(f"{directory} is in use by another run: wait for it, or choose another OUT") from None
        yield


def main(options: argparse.Namespace, run: Callable[[argparse.Namespace, Console], None]) -> int:
    """Runs a study, prints its error if there is one, and returns the exit status. ``options.out``: its directory."""
    return ended(lambda: _main(options, run))


def _main(options: argparse.Namespace, run: Callable[[argparse.Namespace, Console], None]) -> int:
    console = terminal.console()
    try:
        run(options, console)
    except BadUsage as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except SereneError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
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
    return 0


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
        TextColumn("{task.fields[last]}"),
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


def template(path: Path) -> jinja2.Template:
    """The template of a page. It may extend ``study.html`` and import the macros of ``study_parts.html``."""
    places = [path.parent, Path(__file__).parent]
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(places), autoescape=True, undefined=jinja2.StrictUndefined
    )
    return environment.get_template(path.name)
