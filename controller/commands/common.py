"""Common parts of commands: options, the chosen job, printing."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, TypeVar

import typer
from pydantic import BaseModel, RootModel
from rich.console import Console

from serene.controller.commands import view
from serene.controller.http.client import ControllerClient, NoController, NotAController, Rejected
from serene.controller.jobs.job import JobState
from serene.controller.status.model import JobStatus
from serene.errors import BadUsage, SereneError, choices
from serene.http import CONTROLLER
from serene.racks import Racks

T = TypeVar("T")

Url = Annotated[
    str | None,
    typer.Option(
        "--controller",
        envvar=CONTROLLER,
        metavar="URL",
        show_envvar=False,
        help=f"Address of the controller: http://HOST:PORT or unix:/PATH; default ${CONTROLLER}, else http://127.0.0.1:8559.",
    ),
]
JobOption = Annotated[str | None, typer.Option("--job", metavar="ID", help="Job's id or name; default: the only one.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the controller's JSON.")]


def make(made: Callable[[], T]) -> T:
    """The result of ``made`` for a user's choice. Raises BadUsage if that raises a SereneError, except errors of the
    controller: no answer, or a refusal."""
    try:
        return made()
    except (NoController, NotAController, Rejected):
        raise
    except SereneError as error:
        raise BadUsage(str(error)) from None


def only_job(client: ControllerClient, made_by: str) -> int:
    """The id of the only job that has not finished. Raises BadUsage if there are several, SereneError if none.
    made_by: names the command that creates a job, for the message."""
    status = client.status()
    unfinished = [job.job for job in status.jobs if job.state is not JobState.FINISHED]
    if len(unfinished) == 1:
        return unfinished[0]
    if unfinished:
        raise BadUsage(f"--job is missing: expected {choices(unfinished)}")
    if status.gathering:
        raise SereneError("; ".join(view.gathering_lines(status)))
    what = "every job has finished" if status.jobs else "there is no job"
    raise SereneError(f"{what}; create one with {made_by}")


def job_number(client: ControllerClient, named: str) -> int:
    """A job's id, by that number or by the name that its programs gave it. Raises BadUsage."""
    if named.isdecimal() and len(named) <= 9:
        return int(named)
    there = client.jobs()
    same = [job for job in there if job.name == named]
    found = [job for job in same if job.state is not JobState.FINISHED] or same
    if len(found) == 1:
        return found[0].job
    known = ", ".join(f"{job.job} ({job.name})" if job.name else str(job.job) for job in there) or "none"
    raise BadUsage(f"there {f'are {len(found)} jobs' if found else 'is no job'} {named!r} (jobs: {known})")


@contextmanager
def job_of(
    controller: str | None, job: str | None, made_by: str = view.MADE_BY
) -> Iterator[tuple[ControllerClient, int]]:
    """A client of the controller, and the chosen job: the named one, else `only_job`."""
    with ControllerClient(controller) as client:
        yield client, only_job(client, made_by) if job is None else job_number(client, job)


def worker_of(client: ControllerClient, job: int, named: str) -> int:
    """A worker's number in the job, by that number or by ``RACK.NUMBER``."""
    return number_of(named, lambda: Racks(tuple(client.job(job).racks)))


def number_of(named: str, racks: Callable[[], Racks]) -> int:
    """As `worker_of`. racks: returns the job's racks; only called for a worker named by its rack."""
    number = named.strip()
    return int(number) if number.isdecimal() and len(number) <= 3 else make(lambda: racks().worker(named))


def print_json(answer: BaseModel | list[JobStatus]) -> None:
    """Prints an answer of the controller as JSON."""
    print(json.dumps(RootModel(answer).model_dump(), indent=2))


def console() -> Console:
    """The terminal, or a wide one for a pipe, so that lines are not folded. Text is printed literally: workers' reports
    are not markup."""
    return Console(width=None if sys.stdout.isatty() else 200, markup=False, emoji=False)
