"""The emulated engine: a process for every worker, the switch and the controller, over UDP on loopback.

Time is real. An iteration's computing is slept, as long as the straggler's profile says; gradients, packets and
waiting are real.
"""

from __future__ import annotations

import csv
import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from controller.http.client import ControllerClient
from controller.status.model import JobStatus
from experiments.run.network import LocalNetwork, WorkerProcess, worker_arguments
from experiments.run.results import changes
from experiments.run.settings import Settings
from experiments.straggler_study.cell import Cell
from experiments.straggler_study.strategies import automatic_parts, first_strategy
from experiments.straggler_study.trace import STEP, Swap, Trace
from serene.errors import SereneError
from serene.program import Program

POLL_S = 0.2
Json = dict[str, Any]

PATIENCE = 20.0  # times the time that the cell's computing takes, before it is given up


class RunFailed(SereneError):
    """A part of the run died or took far too long; the message has the end of its log."""


def emulate(cell: Cell, scratch: Path) -> Trace:
    """One cell with real processes, gone when this returns or raises. scratch: where its files are meanwhile."""
    cell.check()
    began = time.perf_counter()
    work = Path(tempfile.mkdtemp(prefix=".run-", dir=scratch))
    settings = Settings(
        target="embedded", workers=cell.workers, strategy=first_strategy(cell.strategy), straggler=cell.straggler,
        steps=cell.steps, model=cell.model, dataset=cell.dataset, data_dir=None, link_mbit=None, seed=cell.seed,
        compute_ms=cell.compute_ms, program=Program.load("serene"), mininet=False, out=work,
    )  # fmt: skip
    own = {"eval_every": cell.eval_every, "lr": cell.learning_rate}
    try:
        with LocalNetwork(settings, work) as network, ControllerClient(network.url) as controller:
            job = controller.create_job(cell.workers, settings.strategy).job
            if cell.automatic:
                name, parameters = automatic_parts(cell.strategy)
                controller.set_automatic(job, name, parameters)
            workers = [
                network.start_worker(worker, worker_arguments(settings, worker, job, work, **own))
                for worker in range(cell.workers)
            ]
            _wait(cell, network, workers)
            status = controller.job(job)
        return _trace(cell, work, status, time.perf_counter() - began)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _wait(cell: Cell, network: LocalNetwork, workers: list[WorkerProcess]) -> None:
    until = time.monotonic() + 60 + PATIENCE * cell.steps * cell.compute_ms / 1e3
    while any(worker.poll() is None for worker in workers):
        dead = network.dead()
        if dead:
            raise RunFailed(dead)
        for worker in workers:
            if worker.poll():
                raise RunFailed(f"worker {worker.worker} ended with status {worker.poll()}:\n{worker.error()}")
        if time.monotonic() > until:
            raise RunFailed(f"the workers are not done after {PATIENCE:g} times the time that they should take")
        time.sleep(POLL_S)  # between two looks


def _trace(cell: Cell, work: Path, status: JobStatus, engine_s: float) -> Trace:
    results = [json.loads((work / f"worker-{worker}.json").read_text()) for worker in range(cell.workers)]
    start = min(result["started_unix"] for result in results)
    rows = [row for worker, result in enumerate(results) for row in _rows(work, worker, start, result)]
    steps = np.array(rows, STEP)
    sent = sum(result["contributions_sent"] for result in results)
    slots = sent / len(rows)
    facts = {
        "contributions_sent": sent,
        "contributions_applied": sum(worker.contributions for worker in status.workers),
        "packets": sum(result["packets_sent"] + result["packets_received"] for result in results),
        "retransmissions": sum(result["retransmissions"] for result in results),
        "reads_at_risk": sum(result["reads_at_risk"] for result in results),
        "engine_s": engine_s,
    }
    staleness = np.array([worker.staleness for worker in status.workers]) / slots
    steps = steps[np.argsort(steps["ended"], kind="stable")]
    swaps = tuple(Swap(change.t, change.strategy) for change in changes(status.history, start))
    return Trace(cell, steps, staleness, swaps, results[0]["initial_accuracy"], facts)


def _rows(work: Path, worker: int, start: float, result: Json) -> list[tuple[float | int, ...]]:
    """A step's row is written when it is over, its evaluation included, and the next one begins at once."""
    rows: list[tuple[float | int, ...]] = []
    with (work / f"worker-{worker}.csv").open(newline="") as file:
        began = result["started_unix"] - start
        for row in csv.DictReader(file):
            pushed = began + float(row["compute_s"])
            waited = float(row["waiting_s"])
            ended = pushed + float(row["network_s"]) + waited
            rows.append(
                (
                    worker, int(row["step"]), began, pushed, ended, waited, int(row["epoch"]),
                    int(row["contributions"]), float(row["loss"]), float(row["accuracy"] or "nan"),
                )
            )  # fmt: skip
            began = float(row["t_unix"]) - start
    return rows
