"""``serenectl jobs``: list, create and delete."""

from __future__ import annotations

from functools import cache
from typing import Annotated

import typer

from serene.controller.commands import view
from serene.controller.commands.common import AsJson, Url, console, job_of, make, number_of, print_json
from serene.controller.commands.groups import group
from serene.controller.http.client import ControllerClient
from serene.errors import BadUsage
from serene.racks import Racks
from serene.strategy import parse

jobs = group("List the jobs; with create or delete, change them.", invoke_without_command=True)


@jobs.callback()
def list_jobs(ctx: typer.Context, as_json: AsJson = False, controller: Url = None) -> None:
    """List the jobs."""
    if ctx.invoked_subcommand is None:
        _list_jobs(as_json, controller)


def _list_jobs(as_json: bool, controller: str | None) -> None:
    with ControllerClient(controller) as client:
        listed = client.jobs()
    if as_json:
        print_json(listed)
    elif listed:
        console().print(view.jobs_table(listed))
    else:
        print(f"no jobs; create one with {view.MADE_BY}")


@jobs.command("list")
def list_jobs_by_name(as_json: AsJson = False, controller: Url = None) -> None:
    """List the jobs, as without a command."""
    _list_jobs(as_json, controller)


@jobs.command("create")
def create_job(
    workers: Annotated[int, typer.Option(metavar="N", help="Workers that will join.")],
    strategy: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Strategy: bsp, ssp:3, asp, quorum:3 or mixed:3,5 (over racks also mixed:0.3,1.2)."
        ),
    ] = "bsp",
    job: Annotated[
        int | None, typer.Option(metavar="ID", help="Job id; default: a free one. It replaces a finished job.")
    ] = None,
    scale: Annotated[
        int | None,
        typer.Option(metavar="UNITS", help="Fixed-point units in 1.0; default 1048576, less for many workers."),
    ] = None,
    limit: Annotated[
        float | None, typer.Option(metavar="VALUE", help="Largest magnitude of a contribution's values; default 8.")
    ] = None,
    racks: Annotated[
        str | None,
        typer.Option(metavar="N", help="Number of racks, or workers in each, as 3,3,2; default: all racks."),
    ] = None,
    places: Annotated[
        int | None, typer.Option(metavar="N", help="The most workers at a time; then workers may also join later.")
    ] = None,
    minimum: Annotated[
        int | None, typer.Option(metavar="N", help="Eviction for silence leaves at least N members; default 1.")
    ] = None,
    evict_after: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Seconds of silence before a worker is evicted; default: never."),
    ] = None,
    controller: Url = None,
) -> None:
    """Create a job, which starts when its workers have joined."""
    with ControllerClient(controller) as client:
        placed = cache(lambda: _by_rack(workers, racks, client))
        chosen = make(lambda: parse(strategy, lambda name: number_of(name, placed)))
        sizes = None if racks is None else make(placed).sizes
        created = client.create_job(
            workers, chosen, job=job, scale=scale, limit=limit, racks=sizes, places=places, minimum=minimum,
            evict_after=evict_after,
        )  # fmt: skip
        print(view.job_line(created))


def _by_rack(workers: int, racks: str | None, client: ControllerClient) -> Racks:
    """The workers in each rack, from ``4`` (racks, with workers divided evenly) or ``3,3,2`` (workers in each); by
    default all racks. Raises BadUsage."""
    leaves = sum(switch.level == "leaf" for switch in client.status().switches) or 1
    try:
        given = [min(workers, leaves)] if racks is None else [int(part) for part in racks.split(",")]
    except ValueError:
        raise BadUsage(f"--racks {racks!r}: expected their number, or the workers in each, for example 3,3,2") from None
    if len(given) > 1:
        return Racks(tuple(given))
    return Racks((*Racks.even(workers, given[0]).sizes, *(0,) * (leaves - given[0])))


@jobs.command("delete")
def delete_job(
    job: Annotated[str, typer.Option(metavar="ID", help="The job to delete, by id or name.")], controller: Url = None
) -> None:
    """Delete a job and refuse its workers."""
    with job_of(controller, job) as (client, chosen):
        client.delete_job(chosen)
    print(f"job {chosen} deleted")
