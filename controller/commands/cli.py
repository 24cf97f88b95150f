"""``serenectl``: the controller's command line. An error is one line; exit status 2 means an invalid choice."""

from __future__ import annotations

import inspect
import io
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, NoReturn, TypeVar

import typer
from rich.live import Live
from typer.exceptions import TyperException

from serene.controller.commands import background, view
from serene.controller.commands import doctor as doctors
from serene.controller.commands import local as local_switch
from serene.controller.commands.common import AsJson, JobOption, Url, console, job_of, print_json, worker_of
from serene.controller.commands.groups import group
from serene.controller.commands.jobs import jobs
from serene.controller.commands.live import LiveView
from serene.controller.commands.sync import sync
from serene.controller.commands.trace import trace
from serene.controller.http.client import ControllerClient, NoController, NotAController, Rejected
from serene.controller.jobs.job import JobState
from serene.controller.settings import DEFAULT_SWITCH, Settings, ShmPort, UdpPort, check_token, port_numbers, settings
from serene.controller.status.model import Event, JobExplanation, Status, SwitchStatus
from serene.distribution import version
from serene.errors import BadUsage, SereneError, choices
from serene.http import CONTROLLER, UNIX
from serene.process.at_exit import importing, leave_garbage
from serene.process.interrupts import STATUS, held
from serene.program import JUMBO
from serene.wire import PRECISIONS

T = TypeVar("T")
STOP_TIMEOUT_S = 15.0  # for a controller to stop answering
REMOVAL_TIMEOUT_S = 3.0  # for it to remove its socket then


app = group("Command the controller of a Serene switch.", add_completion=True)
app.add_typer(sync, name="sync")
app.add_typer(jobs, name="jobs")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"serenectl {version()}")
        raise typer.Exit


@app.callback()
def common(
    _: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """Command the controller of a Serene switch."""


def _from_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Adds an option to a command for each setting that has a description."""
    options = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=field.default,
            annotation=Annotated[field.annotation, typer.Option(metavar=str(extra["metavar"]), help=field.description)],
        )
        for name, field in Settings.model_fields.items()
        if isinstance(extra := field.json_schema_extra, dict)
    ]  # fmt: skip
    own = inspect.signature(command, eval_str=True).parameters.values()
    kept = [each for each in own if each.kind is not inspect.Parameter.VAR_KEYWORD]
    command.__signature__ = inspect.Signature([*kept[:2], *options, *kept[2:]])  # type: ignore[attr-defined]
    return command


@app.command()
@_from_settings
def up(
    context: typer.Context,
    *,
    switch: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST:PORT",
            help=f"The switch's P4Runtime server; default {DEFAULT_SWITCH}. Several switches have names: "
            "root=HOST:PORT, then leaf1=HOST:PORT and so on in the order of the racks.",
        ),
    ] = None,
    foreground: Annotated[bool, typer.Option("--foreground", help="Stay in the foreground, log to stderr.")] = False,
    local: Annotated[
        bool,
        typer.Option("--local", help="Start an embedded switch here; --ports are then for programs on this machine."),
    ] = False,
    udp: Annotated[
        bool,
        typer.Option("--udp", help="With --local: use UDP sockets as ports. Shared memory, the default, is faster."),
    ] = False,
    **given: object,
) -> None:
    """Start the controller and bring the switch up."""
    for ports in ("udp_ports", "shm_ports"):
        if local and given[ports]:
            raise BadUsage(f"--{ports.replace('_', '-')} and --local exclude each other: expected one of them")
    if udp and not local:
        raise BadUsage("--udp needs --local; for a running switch use --udp-ports")
    check_token()
    at = ",".join(switch or [DEFAULT_SWITCH])
    if local and "=" in at:
        raise BadUsage("--local starts one switch: expected a single --switch")
    source = context.get_parameter_source("program")  # compared by name, because typer may bring a click of its own
    if local and source is not None and source.name == "DEFAULT":
        given["program"] = JUMBO
    chosen = settings(switch=at, **given)
    # alone: a second `up` at the same time would use the first one's switch, which the first one stops if it fails.
    # held: no interrupt while the switch runs and is not recorded yet.
    with held(), nullcontext() if foreground else background.alone(background.Files.of(chosen.http)):
        if local and (summary := _switch_again(chosen)):
            pass
        elif local:
            with _local_switch(chosen, udp, keep=not foreground) as there:
                summary = _start(there, foreground)
        else:
            summary = _start(chosen, foreground)
    # Printed only here, because standard output may be closed (`serenectl up --local | head -1`). An error in printing
    # must not stop the switch of a running controller.
    if summary:
        print(summary)


def _switch_again(chosen: Settings) -> str:
    """Restarts the running controller's local switch if it has ended, with the same ports, so that its jobs resume.
    Returns the text to print; "" if there is nothing to start."""
    with ControllerClient(f"http://{chosen.http}") as client:
        try:
            switch = client.status().switch
        except (NoController, NotAController, Rejected):
            return ""
    had: local_switch.Ports = [*switch.udp_ports] or [*switch.shm_ports]
    if not had or switch.address != chosen.switch:
        return ""
    ports, started = local_switch.start(switch.address, [at.port for at in had], udp=bool(switch.udp_ports))
    if not started:
        return ""
    if list(ports) != list(had):
        local_switch.stop(switch.address, ports)
        raise local_switch.NoLocalSwitch(
            "the switch has ended, and another program has taken its ports: 'serenectl down --force', then start again"
        )
    return f"the switch at {switch.address} had ended and runs again; the controller at {client.url} continues"


@contextmanager
def _local_switch(chosen: Settings, udp: bool, *, keep: bool) -> Iterator[Settings]:
    """Settings for a controller of an embedded switch, which this starts unless it runs already. keep: leaves the
    switch running when the context ends without an error."""
    ports, started = local_switch.start(chosen.switch, port_numbers(chosen.ports), udp=udp)
    by_kind = {
        "udp_ports": ",".join(f"{at.port}:{at.switch}:{at.host}" for at in ports if isinstance(at, UdpPort)),
        "shm_ports": ",".join(f"{at.port}:{at.path}" for at in ports if isinstance(at, ShmPort)),
    }
    numbers = ",".join(str(at.port) for at in ports)
    try:
        yield chosen.model_copy(update={**by_kind, "ports": numbers})
    except BaseException as error:
        if started:
            local_switch.stop(chosen.switch, ports)
        elif isinstance(error, background.NotStarted):
            raise background.NotStarted(
                f"{error}. A local switch already runs at {chosen.switch}; --switch 127.0.0.1:PORT starts another one"
            ) from None
        raise
    if started and not keep:
        local_switch.stop(chosen.switch, ports)


def _start(chosen: Settings, foreground: bool) -> str:
    """Starts the controller. Returns the text to print about a background controller; "" after one in the
    foreground."""
    if foreground:
        with importing():  # here: gRPC and FastAPI would double the start-up time of every command
            from serene.controller import daemon
        daemon.run(chosen)
        return ""
    http = chosen.http
    url = f"http://{http}"
    with ControllerClient(url) as client:
        try:
            client.status()
        except NoController:
            pass
        else:
            raise SereneError(f"a controller runs at {url} already ('serenectl down' stops it)")
        files = background.Files.of(url)
        chosen = chosen if chosen.socket else chosen.model_copy(update={"socket": files.socket_path()})
        pid = background.start(["up", "--foreground", *_options(chosen.model_dump())], url, files)
        now = client.status()
        lines = [
            line for line in (*view.switch_lines(now), view.ports_line(now.switch), view.room_line(now.switch)) if line
        ]
    lines += [f"controller at {url}, pid {pid}, log {files.log}", f"live page: {url}/"]
    if chosen.socket:
        lines.append(f"from network namespaces of this machine: {CONTROLLER}={UNIX}{chosen.socket}")
    return "\n".join(lines)


def _options(chosen: dict[str, object]) -> list[str]:
    return [
        f"--{name.replace('_', '-')}={value}"
        for name, value in chosen.items()
        if name != "grace_s" and value is not None
    ]


@app.command()
def down(
    force: Annotated[bool, typer.Option("--force", help="Stop even while a job runs.")] = False,
    controller: Url = None,
) -> None:
    """Stop the controller, and the switch that `up --local` started. Any other switch keeps running."""
    with ControllerClient(controller) as client:
        before = client.status()
        running = [str(job.job) for job in before.jobs if job.state == JobState.RUNNING]
        if running and not force and not _is_deserted(before.switch):
            raise SereneError(
                f"{'jobs' if running[1:] else 'job'} {', '.join(running)} {'are' if running[1:] else 'is'} running: "
                "stop the controller anyway with 'serenectl down --force'"
            )
        switch = before.switch
        client.shutdown()
        end = time.monotonic() + STOP_TIMEOUT_S
        while time.monotonic() < end:
            try:
                client.status()
            except NoController:
                _await_removal(before.listening.socket)
                background.Files.of(before.listening.http).pid.unlink(missing_ok=True)
                ports: list[UdpPort | ShmPort] = [*switch.udp_ports, *switch.shm_ports]
                ended = bool(ports) and local_switch.stop(switch.address, ports)
                kept = "the switches keep" if before.switches[1:] else "the switch keeps"
                fate = "the switch stopped, too" if ended else f"{kept} running"
                if not switch.connected and not ended:
                    fate = "its switch was not connected"
                print(f"controller at {client.url} stopped; {fate}")
                return
            time.sleep(0.05)
    raise SereneError(f"the controller at {client.url} did not stop within {STOP_TIMEOUT_S:g} s")


def _is_deserted(switch: SwitchStatus) -> bool:
    """Whether all of a local switch's ports are free. Then the processes of its jobs have died, which the controller
    notices later."""
    return switch.connected and local_switch.is_deserted(switch.address, [*switch.udp_ports, *switch.shm_ports])


def _await_removal(socket: str) -> None:
    """Waits until a controller that no longer answers has removed its socket. A killed one never removes it."""
    end = time.monotonic() + REMOVAL_TIMEOUT_S
    while socket and Path(socket).exists() and time.monotonic() < end:
        time.sleep(0.02)


@app.command()
def status(
    every: Annotated[
        bool, typer.Option("--all", help=f"Show all finished jobs; default: the latest {view.LATEST}.")
    ] = False,
    as_json: AsJson = False,
    controller: Url = None,
) -> None:
    """Show the switch, its jobs and their workers."""
    with ControllerClient(controller) as client:
        now = client.status()
    if as_json:
        print_json(now)
    else:
        console().print(view.whole(now, None if every else view.LATEST))


@app.command()
def watch(controller: Url = None) -> None:
    """Show the status live until Ctrl-C. In a pipe, print a block after each change."""
    screen = console()
    with ControllerClient(controller) as client:
        if screen.is_terminal:
            look = LiveView()
            try:
                with Live(look, console=screen, auto_refresh=False, screen=True) as live:
                    for message in client.events():
                        look.add(message, time.monotonic())
                        live.refresh()
            finally:
                if look.has_status:
                    screen.print(look)  # it was on the terminal's alternate screen, which was closed
        else:
            shown = ""
            for message in client.events():
                if isinstance(message, Event):
                    continue
                with screen.capture() as capture:
                    screen.print(view.whole(message.status))
                if capture.get() != shown:
                    shown = capture.get()
                    print(shown, flush=True)
    print("the controller stopped")


@app.command()
def doctor() -> None:
    """Check this machine: list problems and how to fix them. Exit status 1 if nothing can run."""
    doctors.print_findings()


@app.command()
def explain(
    worker: Annotated[str | None, typer.Option("--worker", metavar="ID", help="Only this worker.")] = None,
    job: JobOption = None,
    as_json: AsJson = False,
    controller: Url = None,
) -> None:
    """Explain why each worker waits: for which workers, in which round, and which command would end the wait."""
    with ControllerClient(controller) as asked:
        if job is None and worker is None and (found := _not_made(asked.status())):
            print_json(found) if as_json else console().print(view.explanation(found))
            return
    with job_of(controller, job) as (client, chosen):
        found = client.explain(chosen, None if worker is None else worker_of(client, chosen, worker))
    if as_json:
        print_json(found)
    else:
        console().print(view.explanation(found))


def _not_made(status: Status) -> JobExplanation | None:
    """If no job runs, a text of what the present processes wait for; None without processes."""
    if not status.gathering or any(job.state is not JobState.FINISHED for job in status.jobs):
        return None
    return JobExplanation(headline="; ".join(view.gathering_lines(status)), workers=[])


WorkerOption = Annotated[str, typer.Option("--worker", metavar="ID", help="The worker; over racks also RACK.ID.")]


app.command()(trace)


@app.command()
def evict(worker: WorkerOption, job: JobOption = None, controller: Url = None) -> None:
    """Evict a worker: the barrier no longer waits for it; its contributions still count."""
    with job_of(controller, job) as (client, chosen):
        number, before = worker_of(client, chosen, worker), client.job(chosen).epoch
        epoch = client.evict(chosen, number).epoch
        done = "is evicted already, no change" if epoch == before else f"is evicted, epoch {epoch}"
        print(f"job {chosen}: worker {worker} {done}")


@app.command()
def readmit(worker: WorkerOption, job: JobOption = None, controller: Url = None) -> None:
    """Readmit an evicted worker: the barrier waits for it again."""
    with job_of(controller, job) as (client, chosen):
        number, before = worker_of(client, chosen, worker), client.job(chosen).epoch
        epoch = client.readmit(chosen, number).epoch
        done = "is a member already, no change" if epoch == before else f"is readmitted, epoch {epoch}"
        print(f"job {chosen}: worker {worker} {done}")


def _bits(text: str) -> int:
    """A precision. Raises BadUsage."""
    if text not in map(str, PRECISIONS):
        raise BadUsage(f"precision {text!r}: expected {choices(PRECISIONS)}")
    return int(text)


@app.command()
def precision(
    bits: Annotated[
        int, typer.Argument(parser=_bits, metavar="32|16|8", help="Bits of a gradient's value in packets.")
    ],
    job: JobOption = None,
    controller: Url = None,
) -> None:
    """Change the precision of a process group's gradients while it runs."""
    with job_of(controller, job, 'a program\'s init_process_group("serene")') as (client, chosen):
        print(view.precision_line(chosen, client.set_precision(chosen, bits)))


def main(arguments: list[str] | None = None) -> NoReturn:
    """Runs one command, from ``arguments`` or the process's own, and exits with its status."""
    leave_garbage()
    given = sys.argv[1:] if arguments is None else arguments
    if sys.stdout is None:  # the caller has closed it
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (until the process ends)
    elif isinstance(sys.stdout, io.TextIOWrapper):  # a terminal may lack characters; a path may not be valid text
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = app(given or ["--help"], standalone_mode=False, prog_name="serenectl") or 0
        sys.stdout.flush()
    except BadUsage as error:
        code = _fail(str(error), 2)
    except Rejected as error:
        code = _fail(str(error), 2 if error.status in (404, 409, 422) else 1)
    except SereneError as error:
        code = _fail(str(error), 1)
    except TyperException as error:
        code = _fail(error.format_message(), error.exit_code)
    except OSError as error:
        code = _fail(f"cannot use {error.filename or 'the output'}: {error.strerror}", 1)
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (what is left there would fail again at the end)
    except (KeyboardInterrupt, typer.Abort):
        code = STATUS
    sys.exit(code)


def _fail(message: str, code: int) -> int:
    print(f"error: {message}", file=sys.stderr)
    return code
