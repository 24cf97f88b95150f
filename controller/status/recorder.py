"""What each worker did over the last hour, from its reports: for pages, which would otherwise know only what they saw.

Bounded in two ways: the latest changes of state exactly, and an hour in bins. A worker that says nothing for SILENT_S
does nothing that is known, until it is heard again: then it has done all along what it said last.
"""

from __future__ import annotations

import math
from array import array
from collections import deque

from controller.automatic.observer import number
from controller.jobs.job import Report
from controller.status.explain import SILENT_S
from controller.status.model import JobTimeline, WorkerTimeline

BIN_S = 2
BINS = 1800  # an hour
TURNS = 600  # changes of state that are kept: minutes, at a few a second
STATES = ("unknown", "computing", "exchanging", "waiting", "paused")  # a state's number is its place
UNKNOWN, PAUSED = 0, STATES.index("paused")
SHARES = 3  # of a bin: computing, exchanging, waiting


class Recorder:
    """All jobs' workers. Times in Unix seconds; one that goes backwards counts as the latest."""

    def __init__(self) -> None:
        self._workers: dict[tuple[int, int], _Worker] = {}
        self._recording: dict[int, float] = {}

    def note(self, job: int, worker: int, report: Report, t: float) -> None:
        """A report has come."""
        self._recording.setdefault(job, t)
        if (job, worker) not in self._workers:
            self._workers[job, worker] = _Worker(t)
        self._workers[job, worker].note(report, t)

    def timeline(self, job: int, since: float, now: float) -> JobTimeline:
        """What happened after ``since``, and the bins that are not as they were then."""
        mine = sorted((who[1], record) for who, record in self._workers.items() if who[0] == job)
        return JobTimeline(
            job=job,
            recording=self._recording.get(job, 0.0),
            workers=[record.timeline(worker, since, now) for worker, record in mine],
        )

    def forget(self, job: int) -> None:
        """The id is about to be used anew."""
        self._recording.pop(job, None)
        for who in [who for who in self._workers if who[0] == job]:
            del self._workers[who]


class _Worker:
    def __init__(self, t: float) -> None:
        self._began = t
        self._state = UNKNOWN
        self._heard = t
        self._settled = t  # until when bins are filled
        self._corrected = (-math.inf, 0)  # when it turned out what a silent worker had done, and from which bin on
        self._turns: deque[tuple[float, int]] = deque(maxlen=TURNS)
        self._last = int(t // BIN_S)  # the newest bin
        self._seconds = [array("f", bytes(4 * BINS)) for _ in range(SHARES)]
        self._loss, self._accuracy = (array("f", [math.nan]) * BINS for _ in range(2))

    def note(self, report: Report, t: float) -> None:
        t = max(t, self._settled)
        if t - self._settled > SILENT_S:
            self._corrected = (t, int(self._settled // BIN_S))
        self._fill(t)
        self._heard = t
        said = report.get("state")
        state = STATES.index(said) if isinstance(said, str) and said in STATES else UNKNOWN
        if state != self._state:
            self._state = state
            self._turns.append((t, state))
        for name, values in (("loss", self._loss), ("accuracy", self._accuracy)):
            value = number(report.get(name))
            if value is not None and abs(value) < 1e30:
                values[self._last % BINS] = value

    def timeline(self, worker: int, since: float, now: float) -> WorkerTimeline:
        self._fill(max(min(now, self._heard + SILENT_S), self._settled))
        self._open(int(now // BIN_S))
        corrected_at, corrected_from = self._corrected
        first = int(since // BIN_S) if corrected_at <= since else min(int(since // BIN_S), corrected_from)
        first = max(first, self._last - BINS + 1, int(self._began // BIN_S))
        places = [number % BINS for number in range(first, self._last + 1)]
        shares = [[round(100 * of[place] / BIN_S) for place in places] for of in self._seconds]
        return WorkerTimeline(
            worker=worker,
            turns=[(round(t, 3), state) for t, state in self._turns if t > since],
            first=first,
            computing=shares[0],
            sending=shares[1],
            waiting=shares[2],
            loss=[_known(self._loss[place]) for place in places],
            accuracy=[_known(self._accuracy[place]) for place in places],
        )

    def _fill(self, t: float) -> None:
        """The worker has done until ``t`` what it said last."""
        self._settled = max(self._settled, t - BINS * BIN_S)  # a clock that is set may jump by years
        while True:
            number = int(self._settled // BIN_S)
            self._open(number)
            end = min(t, (number + 1.0) * BIN_S)
            if self._state not in (UNKNOWN, PAUSED) and number > self._last - BINS:
                self._seconds[self._state - 1][number % BINS] += end - self._settled
            self._settled = end
            if end >= t:
                break
        self._open(int(t // BIN_S))

    def _open(self, number: int) -> None:
        for new in range(max(self._last + 1, number - BINS + 1), number + 1):
            place = new % BINS
            for of in self._seconds:
                of[place] = 0.0
            self._loss[place] = self._accuracy[place] = math.nan
        self._last = max(self._last, number)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(f"{value:.4g}")
