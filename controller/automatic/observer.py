"""Turns periodic counters and reports into a worker's WorkerView."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from serene.controller.automatic.base import WorkerView
from serene.report import doing, values, whole

RECENT = 8  # readings in the fields that are called recent
LARGEST_COSINE = 1 + 1e-6  # rounded


@dataclass(frozen=True)
class Reading:
    """A worker's report at one moment: iterations done, iterations computed, seconds since it began, its epoch, and the
    sums of `serene.client.session.agreement` (None if it has none)."""

    iterations: int
    computed: int
    epoch: int | None
    compute_s: float
    network_s: float
    waiting_s: float
    agreement: tuple[float, float] | None


Known = float | None


class _Measured(NamedTuple):
    """The fields of a WorkerView that follow from the readings."""

    iteration_s: Known = None
    compute_s: Known = None
    slowest_s: Known = None
    latest_s: Known = None
    waiting_share: Known = None
    agreement: Known = None
    agreement_after: Known = None
    busy_s: Known = None


@dataclass
class _Worker:
    """measured: by the readings; None: not computed since the last one."""

    readings: deque[Reading] = field(default_factory=lambda: deque(maxlen=RECENT + 1))
    report: Mapping[str, object] | None = None
    measured: _Measured | None = None
    loss: float | None = None
    momentum: float | None = None


class Observer:
    """Remembers the recent readings of a job's workers."""

    def __init__(self) -> None:
        self._workers: dict[int, _Worker] = {}

    def note(self, worker: int, report: Mapping[str, object] | None) -> None:
        """Stores a worker's latest REPORT. The same object again is no news."""
        known = self._workers.setdefault(worker, _Worker())
        if report is known.report:
            return
        known.report, reading = report, _reading(report)
        if reading is None:
            return
        known.loss, momentum = values(report, "loss", "momentum")
        known.momentum = momentum if momentum is not None and 0 <= momentum < 1 else None
        if known.readings and reading.iterations < known.readings[-1].iterations:
            known.readings.clear()  # the worker was restarted
        if not known.readings or reading.computed > known.readings[-1].computed:
            known.readings.append(reading)
            known.measured = None

    def view(self, worker: int, *, rounds: int, is_member: bool, silent_s: float) -> WorkerView:
        """The view of a worker; the keyword arguments are fields of it."""
        known = self._workers.get(worker) or _Worker()
        if known.measured is None:  # most decisions see no new reading
            known.measured = _measured(list(known.readings))
        times, others = known.measured[:5], known.measured[5:]
        return WorkerView(worker, is_member, rounds, silent_s, *times, known.loss, known.momentum, *others)


def _measured(steps: Sequence[Reading]) -> _Measured:
    if len(steps) < 2:
        return _Measured()
    first, last = steps[0], steps[-1]
    each = [(b.compute_s - a.compute_s) / (b.computed - a.computed) for a, b in pairwise(steps)]
    compute = (last.compute_s - first.compute_s) / (last.computed - first.computed)
    iteration, busy, done = None, None, last.iterations - first.iterations
    if done:
        exchanged = last.network_s + last.waiting_s - first.network_s - first.waiting_s
        iteration = compute + exchanged / done
        waited = _waiting_share(steps)
        busy = None if waited is None else iteration * (1 - waited)
    # Waiting under another strategy says nothing of this one.
    waiting = _waiting_share([step for step in steps if step.epoch == last.epoch])
    return _Measured(iteration, compute, max(each), each[-1], waiting, *_agreement(steps), busy)


def _agreement(steps: Sequence[Reading]) -> tuple[float | None, float | None]:
    """The mean cosines of an iteration, before and after the update. None for impossible values: one worker's wrong
    sums must not outweigh all others'."""
    sums = [(step.iterations, *step.agreement) for step in steps if step.agreement is not None]
    done = sums[-1][0] - sums[0][0] if sums else 0
    if not done:
        return None, None
    before, after = ((sums[-1][part] - sums[0][part]) / done for part in (1, 2))
    return (before, after) if max(abs(before), abs(after)) <= LARGEST_COSINE else (None, None)


def _waiting_share(steps: Sequence[Reading]) -> float | None:
    """The share of time spent waiting, from the first of these readings to the last."""
    first, last = steps[0], steps[-1]
    waited = last.waiting_s - first.waiting_s
    total = waited + last.compute_s - first.compute_s + last.network_s - first.network_s
    return waited / total if total > 0 else None


def _reading(report: Mapping[str, object] | None) -> Reading | None:
    iterations = whole(report, "iteration")
    sums = values(report, "compute_s", "network_s", "waiting_s")
    if iterations is None or any(value is None for value in sums):
        return None
    compute, network, waiting = (value or 0.0 for value in sums)
    before, after = values(report, "agreement", "agreement_after")
    # During an exchange, the reported compute time is already that of the next iteration.
    computed = iterations + (doing(report) in ("exchanging", "waiting"))
    agreement = None if before is None or after is None else (before, after)
    return Reading(iterations, computed, whole(report, "epoch"), compute, network, waiting, agreement)
