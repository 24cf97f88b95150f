"""The emulated engine: runs in Mininet, as those of `make run-mininet`, through a switch or a baseline.

Time, gradients, packets, links and waiting are real; only the compute time of an iteration is emulated, by sleeping.
Workers are forked from this process (experiments/run/forked.py), so that a run that starts takes little processor time
from others that train.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import numpy as np
from rich.console import Console

from serene.controller.automatic import BadAutomatic, automatic_parts
from serene.controller.http.client import ControllerClient
from serene.controller.status.model import JobStatus
from serene.errors import SereneError
from serene.experiments.run import forked, launch
from serene.experiments.run.forked import ForkedProcess
from serene.experiments.run.results import Json, Results, Work
from serene.experiments.run.settings import Settings, check
from serene.experiments.shared.machine import Conditions, Stalls, here, load
from serene.experiments.shared.store import SCRATCH
from serene.experiments.straggler_study.cell import Cell
from serene.experiments.straggler_study.trace import STEP, BadTrace, Swap, Trace
from serene.topologies.isolation import in_child
from serene.workers import stragglers

LOOK_S = 0.1
# A run is given up after PATIENCE times the time that its steps should take, and SET_UP_S for its beginning and end.
SET_UP_S = 240.0
PATIENCE = 20.0


class RunFailed(SereneError):
    """A run failed or took far too long; the message has the end of its log."""


def emulate(cell: Cell, scratch: Path) -> Trace:
    """Runs a cell in a Mininet network of its own, which has ended when this returns or raises. scratch: a directory
    for its files meanwhile. Needs root. Raises RunFailed, or as `Cell.check`.
    """
    cell.check()
    if os.geteuid() != 0:
        raise RunFailed("Mininet needs root")
    forked.prepare(cell.exchange, cell.dataset, None)  # here, not in the child: it serves all runs of this process
    work = Path(tempfile.mkdtemp(prefix=SCRATCH, dir=scratch))
    began, before = time.perf_counter(), load()
    try:
        log, result = work / "log", work / "trace.npz"
        child = _in_child(lambda: _isolated(cell, work, result), log)
        stalls = Stalls()
        try:
            until = time.monotonic() + patience_s(cell)
            while (status := child.wait_for(LOOK_S)) is None and time.monotonic() < until:
                stalls.look()
        finally:
            child.kill()
        if status != 0:
            ended = "took far too long" if status is None else f"ended with status {status}"
            raise RunFailed(f"the run {ended}:\n{_end(log)}")
        try:
            trace = Trace.load(result)
        except BadTrace:
            raise RunFailed(f"the run left no result:\n{_end(log)}") from None
        stalled = stalls.share(trace.facts["began_unix"], trace.facts["ended_unix"])
        facts = {**trace.facts, "engine_s": time.perf_counter() - began}
        return replace(trace, facts=facts, conditions=Conditions(here(), before, load(), stalled))
    finally:
        shutil.rmtree(work, ignore_errors=True)


def patience_s(cell: Cell) -> float:
    """Seconds until a run is given up."""
    return SET_UP_S + PATIENCE * cell.steps * (cell.compute_ms / 1e3 + 0.05) + _longest_pause(cell)


def _longest_pause(cell: Cell) -> float:
    profile = stragglers.parse(cell.straggler)
    return getattr(profile, "pause_s", 0.0)


def _in_child(run: Callable[[], int], log: Path) -> ForkedProcess:
    """Calls ``run`` in a child, which is killed when this process ends. The child's output goes to ``log``."""

    def child() -> int:
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for stream in (1, 2):
            os.dup2(output, stream)
        return run()

    return ForkedProcess(in_child(child))


def _isolated(cell: Cell, work: Path, result: Path) -> int:
    from serene.topologies.isolation import run_isolated

    return run_isolated(lambda: _run(cell, work, result))


def _run(cell: Cell, work: Path, result: Path) -> int:
    """What the run's first process does: trains, and writes the trace. Returns the exit status."""
    watch = Watch(cell)
    try:
        found = launch.train(settings(cell, work), Work(work, work / "spare"), Console(file=sys.stdout), watch)
    except (SereneError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    trace = _trace(cell, found, watch.staleness())
    trace.facts.update({
        "miscounted": len(found.summary["miscounted"] or ()),
        "began_unix": min(worker["started_unix"] for worker in found.workers),
        "ended_unix": max(worker["ended_unix"] for worker in found.workers),
    })  # fmt: skip
    trace.save(result)
    return 0


def settings(cell: Cell, work: Path) -> Settings:
    """The settings of a cell's run. work: a directory for its files. Raises SereneError."""
    return check(
        **dict(cell.recipe), target=cell.target if cell.exchange == "switch" else "auto",
        strategy="bsp" if cell.automatic else cell.strategy, link_mbit=cell.link_mbit, out=work / "out",
    )  # fmt: skip


class Watch(launch.Companion):
    """The companion of a run: sets the cell's automatic strategy, if it has one, and keeps the last status."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell
        self._set = not cell.automatic
        self._seen: JobStatus | None = None

    def look(self, job: JobStatus, controller: ControllerClient) -> None:
        self._seen = job
        if job.automatic is not None and job.automatic.trouble is not None:  # the rest has another strategy
            raise BadAutomatic(f"{job.automatic.name}: {job.automatic.trouble}")
        if not self._set:
            self._set = True
            controller.set_automatic(job.job, *automatic_parts(self._cell.strategy))

    def staleness(self) -> np.ndarray:
        """How many of each worker's contributions had each staleness, by the last status: float64[workers, 16], 0 to 14
        rounds, and 15 or more. Zeros for a baseline, which has no status."""
        if self._seen is None:
            return np.zeros((self._cell.workers, 16))
        return np.array([worker.staleness for worker in self._seen.workers], np.float64)


def _trace(cell: Cell, found: Results, staleness: np.ndarray) -> Trace:
    rows = sorted(found.rows, key=lambda row: int(row["worker"]))
    starts = [worker["started_unix"] for worker in found.workers]
    steps_of_workers = [
        row
        for worker, mine in groupby(rows, key=lambda row: int(row["worker"]))
        for row in _rows(worker, starts[worker] - min(starts), mine)
    ]
    steps = np.array(steps_of_workers, STEP)
    steps = steps[np.argsort(steps["ended"], kind="stable")]
    summary = found.summary
    facts = {
        name: float("nan") if summary[name] is None else float(summary[name])
        for name in ("contributions_sent", "contributions_applied", "retransmissions", "clipped_values")
    }
    facts["reads_at_risk"] = sum(worker["reads_at_risk"] for worker in found.workers)
    swaps = tuple(Swap(change["t"], change["strategy"]) for change in summary["changes"])
    slots = max(summary["contributions_sent"] / len(steps), 1.0)
    return Trace(cell, steps, staleness / slots, swaps, summary["initial_accuracy"], facts)


def _rows(worker: int, began: float, rows: Iterator[Json]) -> Iterator[tuple[float | int, ...]]:
    """A worker's rows of metrics.csv as rows of STEP. A step begins when the row before was written, after the last
    step's evaluation. began: of the first step, in seconds since the first worker began to train."""
    for row in rows:
        pushed = began + float(row["compute_s"])
        waited = float(row["waiting_s"])
        ended = pushed + float(row["network_s"]) + waited
        yield (
            worker, int(row["step"]), began, pushed, ended, waited, int(row["epoch"]), int(row["contributions"]),
            float(row["loss"]), float(row["accuracy"] or "nan"),
        )  # fmt: skip
        began = float(row["t"])


def _end(log: Path) -> str:
    with suppress(OSError):
        return "\n".join(log.read_text(errors="replace").splitlines()[-15:])
    return ""
