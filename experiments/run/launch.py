"""Does one run: starts network, switch, controller and workers, shows the training, and writes and prints the
results."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

from serene.controller.http.client import ControllerClient, NoController, Rejected
from serene.controller.status.model import JobStatus
from serene.errors import SereneError
from serene.experiments.run import baseline, forked, results
from serene.experiments.run.events import Events
from serene.experiments.run.live import View
from serene.experiments.run.network import (
    Failed,
    LocalNetwork,
    MininetNetwork,
    Network,
    NetworkError,
    WorkerProcess,
    stop_workers,
    worker_arguments,
)
from serene.experiments.run.picture import draw
from serene.experiments.run.results import Work
from serene.experiments.run.settings import Settings
from serene.process import outputs
from serene.process.interrupts import STATUS, allowed, held
from serene.process.outputs import CannotWrite
from serene.process.spawn import module
from serene.workers.results import BYTES_PER_STEP, ROOM

POLL_S = 0.2


class Companion:
    """What a caller adds to a run: by default nothing. It may command the controller, and write files of its own."""

    def look(self, job: JobStatus, controller: ControllerClient) -> None:
        """Called every POLL_S seconds or so with the job's status, and once more when all workers have ended."""

    def keep(self, found: results.Results, directory: Path) -> None:
        """Called at the end. Writes into the directory that will become the run's OUT."""

    def report_lines(self) -> list[str]:
        """Lines to print after the run's own."""
        return []


ALONE = Companion()


def train(settings: Settings, work: Work, console: Console, companion: Companion = ALONE) -> results.Results:
    """Does one run and returns its results. Everything that it started has ended when it returns or raises. Raises
    Failed, NetworkError, DataError or Incomplete; KeyboardInterrupt if it was stopped and there is nothing to keep."""
    if settings.exchange != "switch":
        return baseline.train(settings, work, console)
    kind = MininetNetwork if settings.mininet else LocalNetwork
    with allowed():
        forked.prepare(settings.exchange, settings.dataset, settings.data_dir)
    with kind(settings, work.directory) as network, ControllerClient(network.url) as controller:
        racks = settings.by_rack.sizes if settings.racks > 1 else None
        job = controller.create_job(settings.workers, settings.strategy, racks=racks).job
        if settings.automatic is not None:
            controller.set_automatic(job, *settings.automatic)
        workers = [
            network.start_worker(worker, _arguments(settings, worker, job, work)) for worker in range(settings.workers)
        ]
        events = Events(settings, network, workers, lambda worker: _arguments(settings, worker, job, work))
        prefix = "" if network.url.endswith(":8559") else f"SERENE_CONTROLLER={network.url} "
        hint = (
            f"live page: {network.url}/\n"
            f"in another terminal: {prefix}.venv/bin/serenectl sync ssp --staleness 3   (or bsp, asp, quorum --k 3)"
        )
        if isinstance(network, MininetNetwork):
            where = f"in a host of this network: SERENE_CONTROLLER={network.unix_url}"
            console.print(where, highlight=False, soft_wrap=True)  # unbroken, so that it can be copied
        with View(settings, console, hint) as view:
            if not console.is_terminal:
                console.print(hint, soft_wrap=True)
            stopped: list[int] = []
            try:
                while any(worker.poll() is None for worker in workers) or events.under_way:
                    _check_alive(network, workers, events)
                    if (status := _status(controller, job)) is not None:
                        view.show(status, [worker.steps() for worker in workers])
                        events.begin_due()
                        companion.look(status, controller)
                    events.end_due()
                    with allowed():
                        time.sleep(POLL_S)
                _check_alive(network, workers, events)
            except KeyboardInterrupt:
                stopped = stop_workers(workers)
            if (last := _status(controller, job)) is None:
                if stopped:  # and a fault file had killed the controller: what the switch counted is not known
                    raise KeyboardInterrupt
                last = controller.job(job)  # raises an error with the reason why there is no status
            view.show(last, [worker.steps() for worker in workers])
            companion.look(last, controller)
    for line in events.not_played:
        console.print(f"not played, because its iteration was not reached: {line}", highlight=False)
    counted = results.Counted.by_switch(last, settings.parameters, settings.program.lanes)
    return results.collect(settings, work, counted, events.played, events.lost_incarnations, stopped)


def _status(controller: ControllerClient, job: int) -> JobStatus | None:
    """None while the controller is busy or starts again. If it has died, `_check_alive` reports it."""
    try:
        return controller.job(job)
    except (NoController, Rejected):
        return None


def _arguments(settings: Settings, worker: int, job: int, work: Work) -> list[str]:
    return worker_arguments(settings, worker, job, work.directory, out_else=work.spare)


def _check_alive(network: Network, workers: list[WorkerProcess], events: Events) -> None:
    """Raises Failed if a process has ended that no event has killed."""
    dead = network.dead()
    if dead:
        raise Failed(dead)
    for worker in workers:
        if worker.poll() and worker.number not in events.away:
            raise Failed(f"worker {worker.number} ended with status {worker.poll()}:\n{worker.error()}")


def launch(settings: Settings, console: Console, companion: Companion = ALONE) -> int:
    """Does a run, shows it and writes its results to ``settings.out``; with Mininet as root, if need be by sudo.
    Returns the exit status: 0, 1 after an error, 2 if OUT cannot be used, `serene.process.interrupts.STATUS` if it was
    stopped."""

    def run() -> int:
        with held():
            return _run(settings, console, companion)

    if not settings.mininet:
        return run()
    if os.geteuid() != 0:
        return with_sudo(console)
    from serene.topologies.isolation import run_isolated

    try:
        return run_isolated(run)
    except OSError as error:
        print(f"error: {error}; 'make run-local' works without Mininet", file=sys.stderr)
        return 1


def with_sudo(console: Console) -> int:
    """Replaces this process by the same command under sudo. Returns, with an exit status, only where there is no
    sudo."""
    sudo = shutil.which("sudo")
    if sudo is None:
        print("error: Mininet needs root, and there is no sudo; 'make run-local' works without both", file=sys.stderr)
        return 1
    console.print("Mininet needs root: asking sudo")
    spec = sys.modules["__main__"].__spec__
    command = [sudo, *module(spec.name if spec else __name__, *sys.argv[1:])]
    os.execv(sudo, command)


def _run(settings: Settings, console: Console, companion: Companion) -> int:
    console.print(
        f"{settings.workers} workers train {settings.model} on {settings.dataset} through "
        f"{way(settings)}, {settings.rule}, straggler {settings.straggler}, {settings.steps} steps",
        highlight=False,
    )
    missing_parents = [directory for directory in settings.out.parents if not directory.exists()]
    claim = contextlib.ExitStack()
    try:
        outputs.check(settings.out, _room(settings))
        claim.enter_context(outputs.claimed(settings.out))
        settings.out.parent.mkdir(parents=True, exist_ok=True)
        directory = Path(tempfile.mkdtemp(prefix=".run-", dir=settings.out.parent))
        # The spare directory is made by the first worker that needs it.
        work = Work(directory, outputs.spare_places(directory)[0] / f"serene-run-{secrets.token_hex(8)}")
    except (SereneError, OSError) as error:
        claim.close()
        print(f"error: OUT: {error}", file=sys.stderr)
        return 2
    unwritten: CannotWrite | None = None
    try:
        found = train(settings, work, console, companion)
        try:
            further = [lambda results, part: draw(results, part / "accuracy.png"), companion.keep]
            results.write(found, work, settings.out, further)
        except CannotWrite as error:
            unwritten = error
    except (SereneError, NetworkError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped; no results were kept", file=sys.stderr)
        return STATUS
    finally:
        if unwritten is None or not unwritten.nowhere:
            for path in (work.directory, work.spare):
                shutil.rmtree(path, ignore_errors=True)
        claim.close()
        for directory in missing_parents[-1:]:
            outputs.give_to_caller(directory)
    _conclude(found, settings, console, kept=unwritten is None)
    stopped = found.summary["stopped"]
    try:
        for line in companion.report_lines():
            console.print(line, highlight=False)
        if unwritten is not None:
            stays = f"; what the workers wrote stays in {work.directory} and {work.spare}" if unwritten.nowhere else ""
            raise CannotWrite(f"OUT: {unwritten}{stays}")
    except SereneError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return STATUS if stopped else 0


def way(settings: Settings) -> str:
    """What the gradients go through, in words."""
    if settings.exchange == "switch":
        if settings.racks == 1:
            return f"the {settings.target} switch"
        return f"{settings.racks} {settings.target} leaf switches and a root"
    servers = {
        "server": "a parameter server", "sharded": "a parameter server on each worker's host",
        "rpc": "a parameter server of PyTorch's RPC", "gloo": "gloo",
    }  # fmt: skip
    over = f", {settings.racks} racks" if settings.racks > 1 else ""
    return f"{servers[settings.exchange]} ({settings.target}{over})"


def _room(settings: Settings) -> int:
    """Bytes that a run needs on the disk, estimated on the high side: for each worker its steps, in its own file and in
    metrics.csv, and its parameters; and the picture."""
    steps, replica = 2 * BYTES_PER_STEP * settings.steps, 4 * settings.parameters
    return settings.workers * (steps + replica + ROOM) + 2 * outputs.MB


def _conclude(found: results.Results, settings: Settings, console: Console, kept: bool) -> None:
    """Prints the results. kept: whether they are in ``settings.out``."""
    summary = found.summary
    console.print(results.table(found))
    for event in summary["events"]:
        console.print(f"{event['t']:6.1f} s  {event['event']}", highlight=False)
    if "links" in summary:
        console.print(f"on the links: {summary['links']}", highlight=False)
    console.print(
        f"accuracy {summary['initial_accuracy']:.3f} -> {summary['final_accuracy']:.3f} in {summary['wall_s']:.1f} s; "
        f"contributions sent {summary['contributions_sent']:,}{balance(summary)}",
        highlight=False,
    )
    if summary["stopped"]:
        console.print("stopped before all steps were done")
    if kept:
        console.print(f"{settings.out}/  summary.json  metrics.csv  accuracy.png", highlight=False)


def balance(summary: results.Json) -> str:
    """Whether every contribution was counted once, as the end of a sentence. Compared are the numbers of each worker;
    if one was killed or stopped in an iteration, the sums over all workers."""
    sent, applied, miscounted = (
        summary[name] for name in ("contributions_sent", "contributions_applied", "miscounted")
    )
    if applied is None:  # gloo does not count
        return ""
    if miscounted is None:
        cut = summary["contributions_under_way"]
        fits = sent <= applied <= sent + cut
        more = f", and up to {cut:,} in iterations that were cut short" if cut else ""
        return f"{more}, applied {applied:,}: {'the sums agree' if fits else 'NOT EQUAL'}"
    if miscounted:
        return f", applied {applied:,}: NOT EQUAL for worker {', '.join(map(str, miscounted))}"
    return f", applied {applied:,}: exactly once"
