"""The results of a run, collected from what its processes left, and written as summary.json, metrics.csv and the
workers' files: all of them or none."""

from __future__ import annotations

import csv
import json
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from serene import distribution
from serene.controller.status.model import EpochStatus, JobStatus
from serene.errors import SereneError
from serene.experiments.run.settings import Settings
from serene.experiments.shared import terminal
from serene.experiments.shared.machine import machine
from serene.process import outputs
from serene.process.spawn import started
from serene.workers import architectures

Json = dict[str, Any]
ACCURACIES = (0.5, 0.6, 0.7, 0.75, 0.8, 0.82, 0.84, 0.85, 0.86, 0.88, 0.9, 0.91, 0.92, 0.95)

UNITS = {"t": "t_s", "t_unix": "t_unix_s"}  # names of columns in metrics.csv that have their units
TO_REPEAT = ("seed", "compute_ms", "racks", "link_mbit", "uplink_mbit", "mininet", "commit")  # settings
# Settings.
AS_THEY_ARE = ("target", "exchange", "workers", "model", "dataset", "batch_size", "packets", "straggler", "steps")


class Incomplete(SereneError):
    """A worker left no results, or had not begun to train."""


@dataclass(frozen=True)
class Results:
    """summary: what summary.json has. workers: each one's worker-N.json. rows: of metrics.csv, one for each step of
    each worker, in the order of their time t, in seconds since the first worker began to train."""

    summary: Json
    workers: list[Json]
    rows: list[Json]


@dataclass(frozen=True)
class Work:
    """Where the processes of a run write: in ``directory``, beside OUT, or in ``spare`` if that disk is full."""

    directory: Path
    spare: Path

    def find(self, name: str) -> Path:
        """Path of a file. If it is in ``spare``, that one is complete and the one in ``directory`` is not."""
        path = self.spare / name
        return path if path.exists() else self.directory / name


@dataclass(frozen=True)
class Counted:
    """The run as the switch or a baseline's servers saw it. history: the epochs, empty for a baseline. strategy: the
    last one. applied: for each worker, how many of its contributions were accepted; None with gloo, which does not
    count. per_iteration: contributions that a worker makes in an iteration."""

    history: Sequence[EpochStatus]
    strategy: str
    applied: Sequence[int] | None
    per_iteration: int

    @classmethod
    def by_switch(cls, job: JobStatus, parameters: int, lanes: int) -> Counted:
        """What the switch counted, from the controller's last status of the job. lanes: values in a slot."""
        applied = [worker.contributions for worker in sorted(job.workers, key=lambda worker: worker.worker)]
        return cls(job.history, str(job.strategy), applied, -(-parameters // lanes))


def collect(
    settings: Settings,
    work: Work,
    counted: Counted,
    events: Sequence[Json] = (),
    lost_incarnations: Sequence[int] = (),
    stopped: Sequence[int] = (),
) -> Results:
    """The results, from the workers' files and what the switch or the servers counted.

    events: those of a fault file, as played. lost_incarnations: for each worker that was killed, the steps it had done.
    stopped: workers that were ended before they had done all steps; of their last step, any part may have been
    counted. Raises Incomplete; or KeyboardInterrupt if workers were stopped so early that there is nothing to keep.
    """
    try:
        workers = [_left_by(worker, work) for worker in range(settings.workers)]
    except Incomplete:
        if stopped:
            raise KeyboardInterrupt from None
        raise
    start = min(worker["started_unix"] for worker in workers)
    end = max(worker["ended_unix"] for worker in workers)
    rows = sorted(_rows(work, settings.workers, start), key=lambda row: row["t"])
    slots = counted.per_iteration
    summary = {
        **{name: getattr(settings, name) for name in AS_THEY_ARE},
        "learning_rate": settings.learning_rate or architectures.LEARNING_RATES[settings.model],
        "exchange_share": round(_exchange_share(workers), 4),
        "wall_s": round(end - start, 3),
        "seconds_to_accuracy": seconds_to_accuracy(rows),
        "initial_accuracy": workers[0]["initial_accuracy"],
        "final_accuracy": workers[0]["final_accuracy"],
        "waiting_s": [round(worker["waiting_s"], 3) for worker in workers],
        "strategy": settings.strategy_text,
        "changes": [asdict(change) for change in changes(counted.history, start)]
        or [asdict(Change(0.0, 1, counted.strategy))],
        "events": [{"t": round(event["t_unix"] - start, 3), "event": event["event"]} for event in events],
        "contributions_sent": sum(worker["contributions_sent"] for worker in workers)
        + slots * sum(lost_incarnations)
        - sum(min(workers[worker]["contributions_sent"], slots) for worker in stopped),
        # Sent or not when workers were killed or ended: each of these was applied once or never.
        "contributions_under_way": slots * (len(lost_incarnations) + len(stopped)),
        "contributions_applied": None if counted.applied is None else sum(counted.applied),
        "miscounted": None if lost_incarnations or stopped else miscounted(workers, counted.applied),
        "retransmissions": _sum(workers, "retransmissions"),
        "clipped_values": sum(worker["clipped_values"] for worker in workers),
        "stopped": bool(stopped),
        **rerun(settings),
        "packets_sent": _sum(workers, "packets_sent"),
        "packets_received": _sum(workers, "packets_received"),
    }
    shims = {path.stem.removeprefix("shim-"): path.read_text().strip() for path in work.directory.glob("shim-*.log")}
    if shims:
        named = [f"{switch}: {counts}" for switch, counts in sorted(shims.items())]
        summary["links"] = "; ".join(named) if len(named) > 1 else next(iter(shims.values()))
    return Results(summary, workers, rows)


def _left_by(worker: int, work: Work) -> Json:
    """A worker's own results. Raises Incomplete."""
    path = work.find(f"worker-{worker}.json")
    if not path.exists():
        raise Incomplete(f"worker {worker} left no results")
    left: Json = json.loads(path.read_text())
    if left["started_unix"] is None:
        raise Incomplete(f"worker {worker} never started to train")
    return left


def seconds_to_accuracy(rows: Iterable[Json]) -> dict[str, float | None]:
    """For each of ACCURACIES, when some worker first had it, in seconds since the start of training; None: never."""
    evaluated = [(row["t"], float(row["accuracy"])) for row in rows if row["accuracy"]]
    return {
        f"{target:.2f}": min((t for t, accuracy in evaluated if accuracy >= target), default=None)
        for target in ACCURACIES
    }


def miscounted(workers: Sequence[Json], applied: Sequence[int] | None) -> list[int] | None:
    """Workers that sent another number of contributions than was accepted; None where nobody counts."""
    if applied is None:
        return None
    pairs = zip(workers, applied, strict=True)
    return [worker["worker"] for worker, accepted in pairs if worker["contributions_sent"] != accepted]


def _exchange_share(workers: Sequence[Json]) -> float:
    """The network's share of the workers' time, 0 to 1, where time in which they waited for each other is left out."""
    network, computing = (sum(worker[name] for worker in workers) for name in ("network_s", "compute_s"))
    return float(network / (network + computing)) if network + computing else 0.0


def _sum(workers: Sequence[Json], *names: str) -> int | None:
    """The sum of these numbers over the workers; None if one is unknown: gloo does not report how many packets it
    sends."""
    numbers = [worker[name] for worker in workers for name in names]
    return None if None in numbers else sum(numbers)


@dataclass(frozen=True)
class Change:
    """A change of the strategy. t: seconds since the start of training. epoch: that it began. strategy: the new one."""

    t: float
    epoch: int
    strategy: str


def changes(history: Iterable[EpochStatus], start: float) -> Iterator[Change]:
    """Where the strategy changed. Epochs that began because a worker came or went are left out. start: Unix seconds."""
    last = None
    for begun in history:
        name = str(begun.strategy)
        if name != last:
            yield Change(round(max(begun.t - start, 0.0), 3), begun.epoch, name)
        last = name


def _rows(work: Work, workers: int, start: float) -> Iterable[Json]:
    for worker in range(workers):
        for path in (*work.directory.glob(f"worker-{worker}-incarnation-*.csv"), work.find(f"worker-{worker}.csv")):
            with path.open(newline="") as file:
                for row in csv.DictReader(file):
                    if None not in row.values():  # a worker that is killed may leave half a line
                        yield {"t": round(float(row["t_unix"]) - start, 6), **row}


def write(results: Results, work: Work, out: Path, further: Iterable[Callable[[Results, Path], None]] = ()) -> None:
    """Writes all results to ``out``, where they appear in one step. further: functions that add files of their own to
    the directory. Under sudo the files belong to the user who called it.

    Raises CannotWrite; the message states where the results are instead.
    """

    def fill(part: Path) -> None:
        # OUT may be a name that is not UTF-8: its bytes are written as they are.
        with (part / "metrics.csv").open("w", newline="", encoding="utf-8", errors="surrogateescape") as file:
            writer = csv.writer(file)
            writer.writerow(["run", *(UNITS.get(name, name) for name in (results.rows[0] if results.rows else ("t",)))])
            writer.writerows([out.name, *row.values()] for row in results.rows)
        (part / "summary.json").write_text(json.dumps(results.summary, indent=2) + "\n")
        for worker in range(results.summary["workers"]):
            for name in (f"worker-{worker}.json", f"parameters-{worker}.npy"):
                shutil.copy(work.find(name), part / name)
        for add in further:
            add(results, part)

    outputs.keep(fill, work.directory, out)


def table(results: Results) -> Table:
    """The table to print, with a row for each worker."""
    head = ("worker", "steps", "accuracy", "computing", "network", "waiting", "packets", "retransmissions")
    rows = [
        [
            str(worker["worker"]), str(worker["steps"]), f"{worker['final_accuracy']:.3f}",
            *(f"{worker[spent]:.1f} s" for spent in ("compute_s", "network_s", "waiting_s")),
            _count(_sum([worker], "packets_sent", "packets_received")), _count(_sum([worker], "retransmissions")),
        ]
        for worker in results.workers
    ]  # fmt: skip
    return terminal.table(head, rows)


def _count(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


def rerun(settings: Settings) -> dict[str, Any]:
    """Fields of summary.json. ``commit`` and ``faults``, the text of the fault file, are as they were when the run
    began: the files may have changed since."""
    return {
        **{name: getattr(settings, name) for name in TO_REPEAT},
        "program": settings.program.name,
        "slots": settings.program.slots,
        "data_dir": None if settings.data_dir is None else str(settings.data_dir),
        "faults": settings.faults.text,
        "command": shlex.join([*started(), *sys.argv[1:]]),
        "version": distribution.version(),
        "machine": machine(),
    }
