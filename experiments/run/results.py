"""What a run leaves: metrics.csv, summary.json and accuracy.png, whole or not at all."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from controller.status.model import EpochStatus, JobStatus
from experiments.run.rerun import rerun
from experiments.run.settings import Settings
from serene import outputs
from serene.errors import SereneError
from workers import models

Json = dict[str, Any]


class Incomplete(SereneError):
    """A run whose workers did not all finish."""


@dataclass(frozen=True)
class Results:
    """The summary, the workers' own results, and every step as a row (t in seconds from the start of training)."""

    summary: Json
    workers: list[Json]
    rows: list[Json]


@dataclass(frozen=True)
class Work:
    """Where the parts of a run write meanwhile: beside what will be the results, or in ``spare`` when that is full."""

    directory: Path
    spare: Path

    def find(self, name: str) -> Path:
        """A file of the run. What is in ``spare`` is whole, what is in its place then is not."""
        path = self.spare / name
        return path if path.exists() else self.directory / name


def collect(
    settings: Settings,
    work: Work,
    job: JobStatus,
    events: Sequence[Json] = (),
    lost_incarnations: Sequence[int] = (),
    stopped: Sequence[int] = (),
) -> Results:
    """From the workers' files and the controller's view of the job.

    events: those of a fault file, as played. lost_incarnations: steps that workers had done when they were killed.
    stopped: workers that were told to end before they had done all steps; the last one may be in the sums in part.
    """
    workers = []
    for worker in range(settings.workers):
        path = work.find(f"worker-{worker}.json")
        if not path.exists():
            raise Incomplete(f"worker {worker} left no results")
        workers.append(json.loads(path.read_text()))
        if workers[-1]["started_unix"] is None:
            raise Incomplete(f"worker {worker} had not begun to train")
    start = min(worker["started_unix"] for worker in workers)
    end = max(worker["ended_unix"] for worker in workers)
    rows = sorted(_rows(work, settings.workers, start), key=lambda row: row["t"])
    slots = -(-workers[0]["parameters"] // settings.program.lanes)
    summary = {
        "target": settings.target,
        "workers": settings.workers,
        "model": settings.model,
        "dataset": settings.dataset,
        "batch_size": settings.batch_size,
        "learning_rate": settings.learning_rate or models.LEARNING_RATES[settings.model],
        "packets_by": settings.packets,
        "straggler": settings.straggler,
        "steps": settings.steps,
        "wall_s": round(end - start, 3),
        "initial_accuracy": workers[0]["initial_accuracy"],
        "final_accuracy": workers[0]["final_accuracy"],
        "waiting_s": [round(worker["waiting_s"], 3) for worker in workers],
        "strategy": [asdict(change) for change in changes(job.history, start)],
        "events": [{"t": round(event["t_unix"] - start, 3), "event": event["event"]} for event in events],
        "contributions_sent": sum(worker["contributions_sent"] for worker in workers)
        + slots * sum(lost_incarnations)
        - sum(min(workers[worker]["contributions_sent"], slots) for worker in stopped),
        # When workers were killed or told to end: each applied once or never.
        "contributions_under_way": slots * (len(lost_incarnations) + len(stopped)),
        "contributions_applied": sum(worker.contributions for worker in job.workers),
        "retransmissions": sum(worker["retransmissions"] for worker in workers),
        "clipped_values": sum(worker["clipped_values"] for worker in workers),
        "stopped": bool(stopped),
        **rerun(settings),
        "packets": sum(worker["packets_sent"] + worker["packets_received"] for worker in workers),
    }
    shim = work.find("shim.log")
    if shim.exists():
        summary["links"] = shim.read_text().strip()
    return Results(summary, workers, rows)


@dataclass(frozen=True)
class Change:
    """Of the strategy: when, in seconds since the start of training, with which epoch, and to which."""

    t: float
    epoch: int
    strategy: str


def changes(history: Iterable[EpochStatus], start: float) -> Iterator[Change]:
    """An epoch that only the set of workers began is none."""
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
                    if None not in row.values():  # a killed worker's last line may be half a line
                        yield {"t": round(float(row["t_unix"]) - start, 6), **row}


def write(results: Results, work: Work, out: Path, further: Iterable[Callable[[Results, Path], None]] = ()) -> None:
    """Puts everything into ``out`` in one step; ``further`` add to it. Under sudo the files belong to who called.

    Raises CannotWrite; then it is somewhere else, and the message says where.
    """

    def fill(part: Path) -> None:
        with (part / "metrics.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(results.rows[0]) if results.rows else ["t"])
            writer.writeheader()
            writer.writerows(results.rows)
        (part / "summary.json").write_text(json.dumps(results.summary, indent=2) + "\n")
        for worker in range(results.summary["workers"]):
            for name in (f"worker-{worker}.json", f"parameters-{worker}.npy"):
                shutil.copy(work.find(name), part / name)
        for add in further:
            add(results, part)

    outputs.keep(fill, work.directory, out)


def table(results: Results) -> Table:
    """One line per worker, and the sums."""
    shown = Table(box=None, pad_edge=False)
    for heading in ("worker", "steps", "accuracy", "computing", "network", "waiting", "packets", "retransmissions"):
        shown.add_column(heading, justify="right")
    for worker in results.workers:
        shown.add_row(
            str(worker["worker"]),
            str(worker["steps"]),
            f"{worker['final_accuracy']:.3f}",
            f"{worker['compute_s']:.1f} s",
            f"{worker['network_s']:.1f} s",
            f"{worker['waiting_s']:.1f} s",
            f"{worker['packets_sent'] + worker['packets_received']:,}",
            f"{worker['retransmissions']:,}",
        )
    return shown
