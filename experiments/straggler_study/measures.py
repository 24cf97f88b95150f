"""What is computed from a trace: when the target was reached, how long a step took, and what took that time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from serene.experiments.run.results import ACCURACIES
from serene.experiments.straggler_study.cell import Cell
from serene.experiments.straggler_study.trace import Trace
from serene.workers import stragglers

SETTINGS = (
    "engine", "exchange", "target", "packets", "workers", "model", "dataset", "batch_size", "learning_rate", "momentum",
    "strategy", "straggler", "share", "compute_ms", "link_mbit", "steps", "until", "seed",
)  # fmt: skip
COUNTS = ("contributions_sent", "contributions_applied", "retransmissions")
SMOOTHING = 3  # an accuracy is the mean of so many evaluations of every worker


@dataclass(frozen=True)
class Curve:
    """The accuracy over time: the mean over the workers' replicas, and over the last SMOOTHING evaluations of each.

    t: seconds since training began. steps: iterations done by then, on average of the workers. accuracy: 0 to 1. All
    float64[n].
    """

    t: np.ndarray
    steps: np.ndarray
    accuracy: np.ndarray

    def reaches(self, target: float) -> tuple[float, float] | None:
        """Seconds and steps at which the accuracy first reaches the target, interpolated between two points; None if it
        never does."""
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
    """The accuracy over time, with a point for every evaluation of a worker."""
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
    """The numbers of a run. Times are in seconds; steps are iterations, on average of the workers.

    target_s, target_steps: until the target was reached; NaN if it was not. whole_s, whole_steps: until the last
    evaluation. The next ones are about the time until the first worker has done all its steps. step_s: mean time of a
    step; compute_s, network_s, waiting_s: its parts; exchange_s: the last two together. waited_s: what each worker has
    waited, float64[workers]; waited_sum_s: all of them. share: of the network in a step without stragglers' delays and
    without waiting; with gloo waiting is part of it, because it cannot be separated. late: by what share workers
    computed longer than they should have. stalled: the share of the training in which something on the machine waited
    for a processor; NaN if it is not known.
    """

    target_s: float
    target_steps: float
    whole_s: float
    whole_steps: float
    step_s: float
    compute_s: float
    network_s: float
    waiting_s: float
    exchange_s: float
    waited_s: np.ndarray
    waited_sum_s: float
    final_accuracy: float
    share: float
    late: float
    stalled: float


def numbers(trace: Trace, target: float) -> Numbers:
    """The numbers of a run. target: the accuracy to reach; NaN for a run without accuracies."""
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
        exchange_s=exchange,
        waited_s=waited,
        waited_sum_s=float(waited.sum()),
        final_accuracy=float(learned.accuracy[-1]),
        share=_share(exchange - waiting, trace.cell.compute_ms / 1e3),
        late=float((rows["pushed"] - rows["began"]).sum() / _asked_s(trace.cell, rows) - 1),
        stalled=float("nan") if trace.conditions.stalled is None else trace.conditions.stalled,
    )


def _share(network_s: float, computing_s: float) -> float:
    whole = network_s + computing_s
    return network_s / whole if whole else float("nan")


def _asked_s(cell: Cell, rows: np.ndarray) -> float:
    """Seconds that these steps together should have computed; NaN instead of 0."""
    profile, mean = stragglers.parse(cell.straggler), cell.compute_ms / 1e3
    delays = [profile.delay(int(row["worker"]), int(row["step"]), mean, cell.seed) for row in rows]
    return mean * len(rows) + sum(delays) or float("nan")


def row(trace: Trace) -> dict[str, object]:
    """A run's row: every setting and count as a plain value (docs/results/README.md). Empty where a time or a count is
    not known; `strategy` is the cell's text, one word."""
    cell, learned = trace.cell, curve(trace)
    reached = {target: learned.reaches(target) for target in ACCURACIES if not cell.until or target <= cell.until}
    times = {f"s_to_{target:.2f}": round(found[0], 3) for target, found in reached.items() if found is not None}
    end = learned.reaches(cell.until) if cell.until else None
    return {
        "run": cell.digest,
        **{name: getattr(cell, name) for name in SETTINGS},
        "s_to_until": round(end[0], 3) if end else "",
        "iterations_to_until": round(end[1], 1) if end else "",
        **{f"s_to_{target:.2f}": times.get(f"s_to_{target:.2f}", "") for target in ACCURACIES},
        "whole_s": round(float(learned.t[-1]), 3),
        "final_accuracy": round(float(learned.accuracy[-1]), 4),
        "swaps": len(trace.swaps) - 1,
        **{name: "" if np.isnan(count := trace.facts.get(name, np.nan)) else int(count) for name in COUNTS},
    }
