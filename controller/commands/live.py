"""``serenectl watch``: the present state of the switch and its jobs, fitted to the terminal.

Each worker has a line: its state, the workers that it waits for, its iteration, its shares of time, and its gradients'
staleness. The latest events follow. If the terminal has too few lines, the slowest workers are shown. A finished job is
one line below the others, so that a small terminal shows the running ones.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from serene.controller.commands.view import (
    drops_line,
    fabric_line,
    gathering_lines,
    latest_finished,
    no_jobs_line,
    older_line,
    shown,
)
from serene.controller.jobs.job import JobState, WorkerState
from serene.controller.status.explain import explain, headline
from serene.controller.status.model import Event, Explanation, JobStatus, Snapshot, Status, WorkerStatus
from serene.racks import Racks
from serene.report import Facts, Number, number

WIDE = 110  # columns from which all columns of the table are shown
BAR = 16  # characters of the bar of a worker's time
RATE_OVER_S = 5.0
EVENTS = 6  # shown events
LEVELS = " ▁▂▃▄▅▆▇█"
PARTS: tuple[tuple[Number, str, str], ...] = (
    ("compute_s", "█", "green"),
    ("network_s", "▓", "cyan"),
    ("waiting_s", "░", "red"),
)


class LiveView:
    """Renders the newest status, the latest events, and rates over the last RATE_OVER_S seconds."""

    def __init__(self) -> None:
        self._status: Status | None = None
        self._iterations: dict[tuple[int, int, int], deque[tuple[float, int]]] = {}
        self._events: deque[Event] = deque(maxlen=EVENTS)

    @property
    def has_status(self) -> bool:
        """Whether there is anything to show."""
        return self._status is not None

    def add(self, message: Snapshot | Event, now: float) -> None:
        """Adds a message of the controller's stream. now: in seconds, on any monotonic clock."""
        if isinstance(message, Event):
            self._events.append(message)
            return
        self._status = message.status
        for job in message.status.jobs:
            for worker in job.workers:
                past = self._iterations.setdefault((job.job, job.session, worker.worker), deque())
                past.append((now, worker.iteration))
                while now - past[0][0] > RATE_OVER_S:
                    past.popleft()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self._status is None:
            yield Text("the controller has sent nothing yet")
            return
        status, jobs = self._status, self._status.jobs
        yield _line(fabric_line(status), "bold" if status.switch.connected else "bold red")
        if line := no_jobs_line(status):
            yield Text(line)
        going = [job for job in jobs if job.state is not JobState.FINISHED]
        finished, older = latest_finished(status)
        waiting = gathering_lines(status)
        # Lines that are not workers' lines: one for the switch, the counters, each event and each finished job. Each
        # other job has three: its headline, the table's heading and the epochs.
        fixed = 3 + len(self._events) + len(finished) + bool(older) + len(waiting) + 3 * len(going)
        lines = max((console.size.height - fixed) // max(len(going), 1), 2)
        for job in going:
            yield _line(headline(status, job.job), "bold")
            if job.state is not JobState.WAITING:
                yield self._workers(job, explain(status, job.job), lines, options.max_width)
            yield _line(_swaps(job), "dim")
        for line in waiting:
            yield _line(line, "bold")
        for job in finished:
            yield _line(headline(status, job.job), "dim")
        if older:
            yield _line(older_line(older), "dim")
        totals = status.switch.totals
        counted = ", ".join(f"{name} {getattr(totals, name)}" for name in ("releases", "nudges", "repeats"))
        yield _line(f"{counted}; {drops_line(status.switch)}", "")
        for event in self._events:
            yield _line(f"{_clock(event.t)} {event.text}", "dim")

    def _workers(self, job: JobStatus, explanations: Sequence[Explanation], lines: int, width: int) -> Table:
        wide, racks = width >= WIDE, Racks(tuple(job.racks))
        table = Table(box=None, pad_edge=False, padding=(0, 1), expand=False)
        columns = ["worker", "doing", "iteration", "lead", "per s"]
        columns += ["loss", "accuracy"] if wide else []
        columns += ["compute network waiting", "staleness"]
        for name in columns:
            table.add_column(name, justify="left" if name in ("doing", "staleness") else "right", no_wrap=True)
        going = [worker.iteration for worker in job.workers if worker.state is WorkerState.RUNNING]
        least = min(going, default=0)
        order = sorted(job.workers, key=lambda worker: worker.iteration) if len(explanations) > lines else job.workers
        words = {explanation.worker: explanation for explanation in explanations}
        for worker in order[: lines - 1] if len(order) > lines else order:
            report = worker.report or {}
            doing = words[worker.worker]
            row: list[RenderableType] = [
                racks.name(worker.worker),
                _doing(doing, racks),
                str(worker.iteration),
                f"+{worker.iteration - least}" if worker.state is WorkerState.RUNNING else "",
                f"{self._rate(job, worker):.1f}",
            ]
            row += [shown(report.get("loss"), ".4f"), shown(report.get("accuracy"), ".3f")] if wide else []
            row += [_time_bar(report), _histogram(worker.staleness)]
            table.add_row(*row)
        if len(order) > lines:
            table.add_row("", Text(f"and {len(order) - lines + 1} more", style="dim"))
        return table

    def _rate(self, job: JobStatus, worker: WorkerStatus) -> float:
        past = self._iterations[job.job, job.session, worker.worker]
        (began, first), (ended, last) = past[0], past[-1]
        return (last - first) / (ended - began) if ended > began else 0.0


def _line(text: str, style: str) -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def _doing(explanation: Explanation, racks: Racks) -> Text:
    if explanation.waits_for:
        shown_ids = ",".join(map(racks.name, explanation.waits_for[:4])) + (
            "…" if len(explanation.waits_for) > 4 else ""
        )
        return Text(f"waits for {shown_ids}", style="yellow")
    return Text(
        explanation.state, style={"silent": "red", "evicted": "magenta", "waiting": "yellow"}.get(explanation.state, "")
    )


def _time_bar(report: Facts) -> Text:
    """The shares of the worker's time, by its report."""
    seconds = [part for key, _, _ in PARTS if (part := number(report, key)) is not None and part >= 0]
    total = sum(seconds)
    if len(seconds) < len(PARTS) or not total:
        return Text("-")
    bar, ends = Text(), 0
    so_far = 0.0
    for part, (_, letter, style) in zip(seconds, PARTS, strict=True):
        so_far += part
        upto = round(BAR * so_far / total)
        bar.append(letter * (upto - ends), style=style)
        ends = upto
    return bar.append(f" {seconds[2] / total:4.0%}")


def _histogram(counts: Sequence[int]) -> Text:
    """A column for each class of staleness, up to the last non-empty one; the most frequent is the highest."""
    used = counts[: max((age for age, count in enumerate(counts) if count), default=-1) + 1]
    most = max(used, default=0)
    return Text("".join(LEVELS[-(-count * 8 // most)] for count in used) or "-", style="cyan")


def _swaps(job: JobStatus) -> str:
    """The last epochs, and the reason of each."""
    last = [f"{_clock(begun.t)} {begun.strategy} ({begun.reason})" for begun in job.history[-3:]]
    return "  epochs: " + (" · ".join(last) or "none yet")


def _clock(unix: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(unix))
