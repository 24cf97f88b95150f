"""``serenectl sync``: changes the strategy of a job."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from serene.controller.automatic import BEST, SHIPPED
from serene.controller.automatic.choices import shipped
from serene.controller.commands import view
from serene.controller.commands.common import JobOption, Url, job_of, make, worker_of
from serene.controller.commands.groups import Choices, group
from serene.errors import BadUsage, choices
from serene.strategy import ASP, BSP, MAX_STALENESS, SSP, Mixed, Quorum, Strategy

T = TypeVar("T")
STALENESS = f"0 to {MAX_STALENESS}"
STALENESS_HELP = f"Rounds a worker may be ahead, {STALENESS}."

OPTIONS = {"ssp": ("--staleness",), "quorum": ("--k",), "mixed": ("--async-workers", "--staleness"), "auto": ()}


class Texts(Choices):
    """A group of commands that also accepts the texts of strategies: ssp:3, quorum:3, mixed:3,5:2, auto:NAME."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, colon, rest = args[0].partition(":") if args else ("", "", "")
        if colon and name in OPTIONS:
            options = OPTIONS[name]
            values = rest.split(":", len(options) - 1) if options else [rest]  # surplus parts are an invalid value
            pairs = itertools.zip_longest(options[: len(values)], values)
            args = [name, *(word for pair in pairs for word in pair if word is not None), *args[1:]]
        return super().resolve_command(ctx, args)


sync = group("Change the strategy of a running job.", cls=Texts)


@sync.command("bsp")
def sync_bsp(job: JobOption = None, controller: Url = None) -> None:
    """BSP: all workers wait for each other in every round."""
    _swap(job, controller, BSP)


@sync.command("ssp")
def sync_ssp(
    staleness: Annotated[int | None, typer.Option("--staleness", metavar="N", help=STALENESS_HELP)] = None,
    job: JobOption = None,
    controller: Url = None,
) -> None:
    """SSP: no worker gets more than N rounds ahead of the slowest."""
    rounds = required("--staleness", staleness, STALENESS)
    _swap(job, controller, lambda: SSP(rounds))


@sync.command("asp")
def sync_asp(job: JobOption = None, controller: Url = None) -> None:
    """ASP: no worker waits."""
    _swap(job, controller, ASP)


@sync.command("quorum")
def sync_quorum(
    k: Annotated[int | None, typer.Option("--k", metavar="K", help="Contributions that complete a round.")] = None,
    job: JobOption = None,
    controller: Url = None,
) -> None:
    """k-of-n: a round completes with K contributions; late ones still count."""
    enough = required("--k", k, "1 to the number of workers")
    _swap(job, controller, lambda: Quorum(enough))


@sync.command("mixed")
def sync_mixed(
    async_workers: Annotated[str | None, typer.Option(metavar="3,5", help="Workers that never wait.")] = None,
    staleness: Annotated[int, typer.Option("--staleness", metavar="N", help=STALENESS_HELP)] = 0,
    job: JobOption = None,
    controller: Url = None,
) -> None:
    """Some workers never wait. The others wait for each other."""
    given = required("--async-workers", async_workers, "worker ids, for example 3,5")
    named = [worker.strip() for worker in given.split(",")]
    if not all(re.fullmatch(r"\d+(\.\d+)?", worker) for worker in named):
        raise BadUsage(f"--async-workers {given!r}: expected worker ids, for example 3,5")
    with job_of(controller, job) as (client, chosen):
        asynchronous = tuple(worker_of(client, chosen, worker) for worker in named)
    _swap(str(chosen), controller, lambda: Mixed(asynchronous, staleness))


def _parameters_of_all() -> str:
    """A line for each shipped automatic strategy, with its parameters and their defaults."""
    lines = [
        f"{one.name}: {', '.join(f'--{each.name} {each.default}' for each in one.parameters)}" for one in shipped()
    ]
    return "\n".join(["\b", "Parameters and their defaults:", *(f"  {line}" for line in lines)])


@sync.command("auto", context_settings={"ignore_unknown_options": True}, epilog=_parameters_of_all())
def sync_auto(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help=f"{choices(SHIPPED)}, or FILE.py:NAME; off keeps the strategy in force."),
    ] = BEST,
    parameters: Annotated[
        list[str] | None, typer.Argument(metavar="--PARAMETER VALUE", help="Parameters of the automatic strategy.")
    ] = None,
    job: JobOption = None,
    controller: Url = None,
) -> None:
    """Start an automatic strategy: a program that chooses the strategy."""
    words = parameters or []
    if name.startswith("-"):  # parameters alone are those of the default
        name, words = BEST, [name, *words]
    given = _parameters(words)
    if ":" in name or name.endswith(".py"):
        name = str(Path(name).absolute())  # the controller may have been started elsewhere
    with job_of(controller, job) as (client, chosen):
        if name == "off":
            print(f"job {chosen}: automatic strategy off, {client.unset_automatic(chosen).strategy} stays")
            return
        client.set_automatic(chosen, name, given)
        print(f"job {chosen}: automatic strategy {name} is on")


def _parameters(words: list[str]) -> dict[str, object]:
    """``--low 1 --high=8`` as {"low": "1", "high": "8"}."""
    given: dict[str, object] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        key, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or not key or not (equals or rest):
            raise BadUsage(f"{word!r}: expected --PARAMETER VALUE")
        given[key.replace("-", "_")] = value if equals else rest.pop(0)
    return given


def required(option: str, value: T | None, expected: str) -> T:
    """The value of an option without a default. Raises BadUsage, which names the ``expected`` values, if there is
    none."""
    if value is None:
        raise BadUsage(f"{option} is missing: expected {expected}")
    return value


def _swap(job: str | None, controller: str | None, strategy_of: Callable[[], Strategy]) -> None:
    strategy = make(strategy_of)
    with job_of(controller, job) as (client, chosen):
        print(view.swap_line(chosen, client.set_strategy(chosen, strategy)))
