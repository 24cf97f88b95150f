"""Each worker's states over the last hour, by its reports. The page shows them even if it was opened late.

The memory is bounded: it has the latest changes of state exactly, and an hour in bins. SILENT_S after its last report,
a worker's state is unknown. When it reports again, its last reported state fills the gap.

A worker detects only after a silence that it waits, and only at the end of an exchange for how long. Then the exchange
is divided again, by the worker's times, whose sums each report has. Steps may be shorter than the time between two
reports. Then the reported states are biased samples, and all time is divided by those sums.
"""

from __future__ import annotations

import math
from array import array
from collections import deque

from serene.controller.status.explain import SILENT_S
from serene.controller.status.model import JobTimeline, WorkerTimeline
from serene.report import Facts, doing, number, values

BIN_S = 2
BINS = 1800  # an hour
TURNS = 600  # stored changes of state: some minutes, with a few in each second
STATES = ("unknown", "computing", "exchanging", "waiting", "paused")
UNKNOWN, COMPUTING, EXCHANGING, WAITING = range(4)  # indices of STATES
SHARES = 3  # of a bin: computing, exchanging, waiting


class Recorder:
    """Records the workers of all jobs. Times in Unix seconds; a time before the latest counts as the latest."""

    def __init__(self) -> None:
        self._workers: dict[tuple[int, int], _Worker] = {}
        self._recording: dict[int, float] = {}

    def note(self, job: int, worker: int, report: Facts, t: float) -> None:
        """Records a worker's report that arrived at ``t``."""
        self._recording.setdefault(job, t)
        if (job, worker) not in self._workers:
            self._workers[job, worker] = _Worker(t)
        self._workers[job, worker].note(report, t)

    def timeline(self, job: int, since: float, now: float) -> JobTimeline:
        """The changes of state after ``since``, and all bins that have changed since then."""
        mine = sorted((who[1], record) for who, record in self._workers.items() if who[0] == job)
        return JobTimeline(
            job=job,
            recording=self._recording.get(job, 0.0),
            workers=[record.timeline(worker, since, now) for worker, record in mine],
        )

    def forget(self, job: int) -> None:
        """Forgets a job's workers: its id will be used again."""
        self._recording.pop(job, None)
        for who in [who for who in self._workers if who[0] == job]:
            del self._workers[who]


class _Worker:
    """One worker's record. t: the time of its first report."""

    def __init__(self, t: float) -> None:
        self._began = t
        self._state = UNKNOWN
        self._parts = _parts(UNKNOWN)  # the state of the time since the last report, until more is known
        self._sums: list[float] | None = None  # in the last report
        self._reported_at = t  # time of the last report
        self._settled = t  # the time until which bins are filled
        self._exchange: tuple[float, list[float]] | None = None  # its beginning, and the sums then
        self._corrections: deque[tuple[float, float]] = deque(maxlen=TURNS)  # when, and since when
        self._turns: deque[tuple[float, int]] = deque(maxlen=TURNS)  # pairs: a state's beginning, and the state
        self._last = int(t // BIN_S)  # the number of the newest bin
        self._seconds = [array("f", bytes(4 * BINS)) for _ in range(SHARES)]  # of each bin, by SHARES
        self._loss, self._accuracy = (array("f", [math.nan]) * BINS for _ in range(2))

    def note(self, report: Facts, t: float) -> None:
        t = max(t, self._settled)
        if t - self._reported_at > SILENT_S:  # a timeline made meanwhile has an unknown state
            self._corrections.append((t, self._settled))
        state = STATES.index(state_name) if (state_name := doing(report)) in STATES else UNKNOWN
        sums = _sums(report)
        spent = _spent(self._sums, sums)
        waited_s = self._waited(state, sums)
        explained = waited_s is not None or _explains(self._state, spent)
        if not explained:
            self._parts = [part / max(sum(spent), t - self._reported_at) for part in spent]
        self._fill(t)
        if waited_s is not None:
            self._divide_exchange(t, waited_s)
        self._reported_at, self._sums = t, sums
        if explained:
            self._parts = _parts(state)
        if not explained or sums is None or state not in (EXCHANGING, WAITING):
            self._exchange = None
        elif self._exchange is None:
            self._exchange = (t, sums)
        if state != self._state:
            self._state = state
            self._turns.append((t, state))
        for kept, value in ((self._loss, number(report, "loss")), (self._accuracy, number(report, "accuracy"))):
            if value is not None and abs(value) < 1e30:
                kept[self._last % BINS] = value

    def timeline(self, worker: int, since: float, now: float) -> WorkerTimeline:
        self._fill(max(min(now, self._reported_at + SILENT_S), self._settled))
        self._open(int(now // BIN_S))
        changed = min((begin for at, begin in self._corrections if at > since), default=math.inf)
        first = max(int(min(since, changed) // BIN_S), self._last - BINS + 1, int(self._began // BIN_S))
        places = [number % BINS for number in range(first, self._last + 1)]
        shares = [[round(100 * of[place] / BIN_S) for place in places] for of in self._seconds]
        return WorkerTimeline(
            worker=worker,
            turns=[(round(t, 3), state) for t, state in self._turns if t > since or t >= changed],
            first=first,
            computing=shares[0],
            sending=shares[1],
            waiting=shares[2],
            loss=[_known(self._loss[place]) for place in places],
            accuracy=[_known(self._accuracy[place]) for place in places],
        )

    def _waited(self, state: int, sums: list[float] | None) -> float | None:
        """The worker's seconds of waiting in the exchange that ends with this report; None if none ends, or if the
        reports lack them."""
        if self._exchange is None or state in (EXCHANGING, WAITING):
            return None
        computing, exchanging, waiting = _spent(self._exchange[1], sums)
        return waiting if exchanging + waiting > 0 == computing else None

    def _divide_exchange(self, end: float, waited_s: float) -> None:
        """Divides an exchange that has ended into sending and ``waited_s`` of waiting at its end. Until then, the time
        since the worker reported waiting counts as waiting, and the time before as sending."""
        assert self._exchange is not None
        began = self._exchange[0]
        noticed = end  # the time at which the worker reported waiting
        if self._turns and self._turns[-1][1] == WAITING:  # a sample from before the exchange; bins use the sums
            noticed = max(self._turns[-1][0], began)
            if self._turns[-1][0] >= began:
                self._turns.pop()
        waits = max(began, end - waited_s)  # the beginning of its wait
        if began < waits and self._turns and self._turns[-1][1] != EXCHANGING:
            self._turns.append((began, EXCHANGING))
        if waits < end and not (self._turns and self._turns[-1][1] == WAITING):
            self._turns.append((waits, WAITING))
        self._corrections.append((end, min(began, noticed)))
        begin, until = sorted((waits, noticed))
        right, wrong = (WAITING, EXCHANGING) if waits < noticed else (EXCHANGING, WAITING)
        for bin_number in range(max(int(begin // BIN_S), self._last - BINS + 1), int(until // BIN_S) + 1):
            inside = min(until, (bin_number + 1.0) * BIN_S) - max(begin, bin_number * float(BIN_S))
            self._seconds[right - 1][bin_number % BINS] += inside
            self._seconds[wrong - 1][bin_number % BINS] -= inside

    def _fill(self, t: float) -> None:
        """Fills bins until ``t`` with the worker's last reported state, or by its sums."""
        self._settled = max(self._settled, t - BINS * BIN_S)  # a clock may be set years ahead
        while True:
            number = int(self._settled // BIN_S)
            self._open(number)
            end = min(t, (number + 1.0) * BIN_S)
            if number > self._last - BINS:
                for seconds, part in zip(self._seconds, self._parts, strict=True):
                    seconds[number % BINS] += part * (end - self._settled)
            self._settled = end
            if end >= t:
                break
        self._open(int(t // BIN_S))

    def _open(self, number: int) -> None:
        """Makes bins up to this number, which replace the oldest."""
        for new in range(max(self._last + 1, number - BINS + 1), number + 1):
            place = new % BINS
            for of in self._seconds:
                of[place] = 0.0
            self._loss[place] = self._accuracy[place] = math.nan
        self._last = max(self._last, number)


def _parts(state: int) -> list[float]:
    """The shares of time in a state: all of it computing, exchanging or waiting, or none."""
    return [float(state == part) for part in range(1, SHARES + 1)]


def _sums(report: Facts) -> list[float] | None:
    """A report's seconds by SHARES; None if it lacks some."""
    sums = values(report, "compute_s", "network_s", "waiting_s")
    known = [value for value in sums if value is not None and abs(value) < 1e30]
    return known if len(known) == SHARES else None


def _spent(before: list[float] | None, after: list[float] | None) -> list[float]:
    """Seconds by SHARES between two reports; zeros if one lacks them, or if they were reset in between."""
    if before is None or after is None:
        return [0.0] * SHARES
    spent = [b - a for a, b in zip(before, after, strict=True)]
    return spent if min(spent) >= 0 else [0.0] * SHARES


def _explains(state: int, spent: list[float]) -> bool:
    """Whether a worker in this state can have spent the time so, without another step in between. (A waiting worker was
    exchanging before, and reports the times of both at the end of the exchange.)"""
    computing, exchanging, waiting = spent
    others = {COMPUTING: exchanging + waiting, EXCHANGING: computing + waiting}
    return others.get(state, computing) == 0


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(f"{value:.4g}")
