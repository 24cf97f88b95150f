"""Numbers from traces: when a target was reached, in how many steps, how long a step took and what it went into."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from experiments.straggler_study.cell import Cell
from experiments.straggler_study.trace import Trace
from workers import stragglers

SMOOTHING = 3  # evaluations of every worker that an accuracy is the mean of


@dataclass(frozen=True)
class Curve:
    """Accuracy as training goes on: the mean over the workers' replicas and their last three evaluations.

    t: seconds; steps: iterations done by then, per worker; accuracy: 0 to 1. All float64[n].
    """

    t: np.ndarray
    steps: np.ndarray
    accuracy: np.ndarray

    def reaches(self, target: float) -> tuple[float, float] | None:
        """Seconds and steps when the accuracy is first at the target, between two points by interpolation."""
        above = np.flatnonzero(self.accuracy >= target)
        if not above.size:
            return None
        at = int(above[0])
        if at == 0:
            return float(self.t[0]), float(self.steps[0])
        low, high = self.accuracy[at - 1], self.accuracy[at]
        part = (target - low) / (high - low)
        return tuple(float(values[at - 1] + part * (values[at] - values[at - 1])) for values in (self.t, self.steps))  # type: ignore[return-value]


def curve(trace: Trace) -> Curve:
    """From the evaluations of all workers, in the order in which they were made."""
    steps, workers = trace.steps, trace.cell.workers
    done = np.arange(1, len(steps) + 1) / workers
    rows = np.flatnonzero(~np.isnan(steps["accuracy"]))
    latest = np.full((workers, SMOOTHING), trace.initial_accuracy)
    means = np.empty(len(rows))
    for place, row in enumerate(rows):
        mine = latest[steps["worker"][row]]
        mine[:-1], mine[-1] = mine[1:].copy(), steps["accuracy"][row]
        means[place] = latest.mean()
    start = trace.initial_accuracy
    return Curve(
        np.concatenate([[0.0], steps["ended"][rows]]),
        np.concatenate([[0.0], done[rows]]),
        np.concatenate([[start], means]),
    )


@dataclass(frozen=True)
class Numbers:
    """One run. Seconds; steps are iterations per worker. target_s, target_steps: NaN if the target was not reached.
    whole_s, whole_steps: until the last evaluation.

    step_s: time per step, of all workers, until the first of them has done all its steps; compute_s, network_s and
    waiting_s are its parts, and waited_s is what each worker waited by then (float64[workers]).
    share: what the network takes of a step, of that and of the computing without the straggler's delays. Of gloo it has
    the waiting in it, which cannot be told apart. late: how much longer than asked for the workers computed, as a
    share. stalled: in what share of the training something on the machine waited for a processor; NaN: not known.
    """

    target_s: float
    target_steps: float
    whole_s: float
    whole_steps: float
    step_s: float
    compute_s: float
    network_s: float
    waiting_s: float
    waited_s: np.ndarray
    final_accuracy: float
    share: float
    late: float
    stalled: float


def numbers(trace: Trace, target: float) -> Numbers:
    """The numbers of a run for a target accuracy (NaN for a run that learns nothing)."""
    rows, workers = trace.steps, trace.cell.workers
    last = [rows["ended"][rows["worker"] == worker].max() for worker in range(workers)]
    until = min(last)
    rows = rows[rows["ended"] <= until]
    steps = len(rows) / workers
    waited = np.array([rows["waited"][rows["worker"] == worker].sum() for worker in range(workers)])
    compute = float((rows["pushed"] - rows["began"]).mean())
    exchange = float((rows["ended"] - rows["pushed"]).mean())
    waiting = float(rows["waited"].mean())
    learned = curve(trace)
    reached = learned.reaches(target) or (np.nan, np.nan)
    return Numbers(
        target_s=reached[0],
        target_steps=reached[1],
        whole_s=float(learned.t[-1]),
        whole_steps=float(learned.steps[-1]),
        step_s=float(until / steps),
        compute_s=compute,
        network_s=exchange - waiting,
        waiting_s=waiting,
        waited_s=waited,
        final_accuracy=float(learned.accuracy[-1]),
        share=_share(exchange - waiting, trace.cell.compute_ms / 1e3),
        late=float((rows["pushed"] - rows["began"]).sum() / _asked_s(trace.cell, rows) - 1),
        stalled=float("nan") if trace.conditions.stalled is None else trace.conditions.stalled,
    )


def _share(network_s: float, computing_s: float) -> float:
    whole = network_s + computing_s
    return network_s / whole if whole else float("nan")


def _asked_s(cell: Cell, rows: np.ndarray) -> float:
    """Seconds that these steps should have computed, all together."""
    profile, mean = stragglers.parse(cell.straggler), cell.compute_ms / 1e3
    delays = [profile.delay(int(row["worker"]), int(row["step"]), mean, cell.seed) for row in rows]
    return mean * len(rows) + sum(delays) or float("nan")
