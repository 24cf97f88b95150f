"""Finds the worker that the others of a job under BSP wait for in most steps, by all workers' reports.

All-reduce makes every worker's step equally long, so no worker can detect the slow one by itself. But each measures how
long its packets waited in the switch. docs/telemetry.md has the rule and its limits.
"""

from __future__ import annotations

import math
import time
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from serene.controller.jobs.job import Job
from serene.controller.status.model import SlowWorker
from serene.report import Facts
from serene.steps import MOST, REPORTED, Steps, steps_in
from serene.strategy import BSP

# Rules (steps, late, deviations, mean). The latest `steps` steps count. A worker is slow if it was the last in at least
# `late` of them, by more than `deviations` standard deviations of its lateness. It is also slow if its mean lateness in
# them is at least `mean` deviations. One step counts at most MOST_DEVIATIONS, early or late. The less the lateness
# differs from chance, the more steps are needed.
RULES = ((10, 8, 1.5, 1.25), (20, 16, 0.75, 0.98), (40, 32, 0.25, 0.72))
MOST_DEVIATIONS = 1.5
SHARE = 0.03  # a slow worker's median lateness is at least this share of the step
WINDOW, NEEDED, *_ = RULES[0]
HISTORY = RULES[-1][0]  # number of steps over which the deviation is measured
PASSED_OVER = 6  # of this number of other workers, one may have been later by chance
ENDED = 5  # a worker is no longer slow if it was clearly late in fewer of the last WINDOW steps
REMEMBERED = 16 * MOST  # means of a worker's steps
MEDIAN_OF_DIFFERENCES = 1.05  # of normal noise: standard deviation / median of |difference of two samples|


@dataclass(frozen=True)
class Found:
    """The slow worker of some steps. index: its column. lateness_s: its median lateness after the last of the others.
    step_s: a step's time. computing: whether it computed that much longer; else its network is slow. began: the row of
    the first step in which it was late."""

    index: int
    lateness_s: float
    step_s: float
    computing: bool
    began: int


def lateness(waiting: np.ndarray, passed_over: int = 0) -> np.ndarray:
    """Each worker's lateness after the last of the others, not counting the latest ``passed_over`` of them. Less than
    0: it was earlier. waiting: float64[steps, workers > passed_over + 1], seconds that each waited for others; returns
    the same shape."""
    ordered = np.sort(waiting, axis=1)
    other, next_ = ordered[:, passed_over, None], ordered[:, passed_over + 1, None]
    late: np.ndarray = np.where(waiting <= other, next_, other) - waiting
    return late


def slow_one(times: np.ndarray, named: int | None = None) -> Found | None:
    """The worker that the others wait for, or None. times: float64[steps, workers, PARTS], the latest last; the last
    HISTORY steps count. named: the column of the worker that was slow until now."""
    steps, workers, _ = times.shape
    if steps < NEEDED or workers < 2:
        return None
    computing, exchanging, waiting = np.moveaxis(times[-HISTORY:], 2, 0)
    step_s = float(np.median((computing + exchanging)[-WINDOW:]))
    late = lateness(waiting, (workers - 1) // PASSED_OVER)
    varies = MEDIAN_OF_DIFFERENCES * np.median(np.abs(np.diff(late, axis=0)), axis=0)
    shorter = lateness(waiting)  # the time by which a step would have been shorter without it
    late_now = (late[-WINDOW:] > SHARE * step_s / 2).sum(axis=0) >= ENDED
    counted = np.clip(late / np.maximum(varies, SHARE * step_s / 2 + 1e-9), -MOST_DEVIATIONS, MOST_DEVIATIONS)
    is_slow = np.zeros(workers, bool)
    for window, needed, deviations, mean in RULES:
        clearly = late[-window:] > np.maximum(deviations * varies, SHARE * step_s / 2)
        typical = np.median(shorter[-window:], axis=0)
        by_mean = (counted[-window:].mean(axis=0) >= mean) & late_now & (len(late) >= window)
        is_slow = ((clearly.sum(axis=0) >= needed) | by_mean) & (typical >= SHARE * step_s)
        if is_slow.any():
            break
    if named is not None and not is_slow.any():
        is_slow[named] = late_now[named]
    if not is_slow.any():
        return None
    index = int(np.argmax(np.where(is_slow, typical, -math.inf)))
    others = np.delete(computing[-WINDOW:], index, axis=1)
    longer = float(np.median(computing[-WINDOW:, index] - np.median(others, axis=1)))
    began = len(late) - len(clearly) + int(np.argmax(late[-len(clearly) :, index] > SHARE * step_s / 2))
    return Found(index, float(typical[index]), step_s, longer >= typical[index] / 2, began)


@dataclass
class _Job:
    """One job's steps. The rows are of steps that all members have reported."""

    session: int
    epoch: int
    members: list[int]
    reported: dict[int, tuple[Steps, dict[tuple[int, int], np.ndarray]]] = field(default_factory=dict)
    rows: deque[tuple[float, np.ndarray]] = field(default_factory=lambda: deque(maxlen=HISTORY))
    last: int = -1  # the number of the first step after the rows
    slow: SlowWorker | None = None


class SlowWorkers:
    """Stores, for each job under BSP, its workers' latest steps and the slow worker."""

    def __init__(self) -> None:
        self._jobs: dict[int, _Job] = {}

    def of(self, job: Job) -> SlowWorker | None:
        """The job's slow worker, or None: also under another strategy than BSP, and if it is no member any more."""
        known = self._jobs.get(job.id)
        if known is None or known.slow is None or known.session != job.session or not isinstance(job.strategy, BSP):
            return None
        return known.slow if known.slow.worker in job.members() else None

    def forget(self, job: int) -> None:
        """Forgets a job's steps: its id will be used again."""
        self._jobs.pop(job, None)

    def note(self, job: Job, worker: int, report: Facts, t: float) -> str | None:
        """Adds a worker's report, which arrived at ``t`` (Unix seconds). Returns the news as text: a worker is slow, or
        no longer slow."""
        members = job.members()
        if not isinstance(job.strategy, BSP) or worker not in members:
            return None
        steps = steps_in(report.get(REPORTED))
        if steps is None or steps.epoch > job.epoch:  # of an epoch that has not begun: all others would seem late
            return None
        known = self._jobs.get(job.id)
        if known is not None and known.session == job.session and steps.epoch < known.epoch:
            return None  # the worker does not know the new epoch yet
        if known is None or (known.session, known.epoch, known.members) != (job.session, steps.epoch, members):
            slow = known.slow if known is not None and known.session == job.session else None
            known = self._jobs[job.id] = _Job(job.session, steps.epoch, members, slow=slow)
        table = known.reported[worker][1] if worker in known.reported else {}
        _add(table, steps)
        known.reported[worker] = (steps, table)
        return self._decide(known, job) if self._complete(known, t) else None

    @staticmethod
    def _complete(known: _Job, t: float) -> bool:
        """Adds the rows that all members have reported by now. Returns whether there are any."""
        if len(known.reported) < len(known.members):
            return False
        each = max(steps.each for steps, _ in known.reported.values())
        tables = [known.reported[member][1] for member in known.members]
        new = sorted(
            first for size, first in tables[0]
            if size == each and first >= known.last and all((size, first) in table for table in tables)
        )  # fmt: skip
        for first in new:
            known.rows.append((t, np.stack([table[each, first] for table in tables])))
            known.last = first + each
        return bool(new)

    @staticmethod
    def _decide(known: _Job, job: Job) -> str | None:
        before, members = known.slow, known.members
        named = members.index(before.worker) if before is not None and before.worker in members else None
        if named is not None and len(known.rows) < NEEDED and len(members) > 1:
            return None  # the epoch has too few steps for a verdict: the one before it holds
        found = slow_one(np.stack([times for _, times in known.rows]), named)
        name = job.racks.name
        if found is None:
            known.slow = None
            return None if before is None else f"job {job.id}: worker {name(before.worker)} is no longer slow"
        worker = members[found.index]
        same = before is not None and before.worker == worker
        since = before.since if before is not None and same else known.rows[found.began][0]
        known.slow = SlowWorker(
            worker=worker, since=since, lateness_s=found.lateness_s, step_s=found.step_s,
            where="computing" if found.computing else "network",
            why=(why := _in_words(found, since)),
            text=f"worker {name(worker)} is slow: {why}",
        )  # fmt: skip
        return None if same else f"job {job.id}: {known.slow.text}"


def _in_words(found: Found, since: float) -> str:
    per_cent = 100 * found.lateness_s / found.step_s
    why = "it computes longer" if found.computing else "its network is slow"
    return (
        f"the others wait {1e3 * found.lateness_s:.1f} ms a step for it ({per_cent:.0f} % of the step) since "
        f"{time.strftime('%H:%M:%S', time.localtime(since))}; {why}"
    )


def _add(table: dict[tuple[int, int], np.ndarray], steps: Steps) -> None:
    """Adds a report's means, by their number of steps and the first step's number. Also adds the means of twice as many
    steps: another worker, whose steps are a little shorter, may report these."""
    each, twice = steps.each, 2 * steps.each
    for row, times in enumerate(steps.times):
        first = steps.first + row * each
        if (each, first) in table:
            continue
        table[each, first] = times
        pair = [table.get((each, first // twice * twice + half)) for half in (0, each)]
        if pair[0] is not None and pair[1] is not None:
            table[twice, first // twice * twice] = (pair[0] + pair[1]) / 2
    while len(table) > REMEMBERED:  # removes the oldest: a worker may report steps with any numbers
        del table[next(iter(table))]
