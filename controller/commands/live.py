"""``serenectl watch``: the switch and its jobs as they are now, sized to the terminal.

A line a worker: what it does and for whom it waits, how far it is, how its time divides, and how stale its gradients
were. Below, what happened last. When the lines are too few for all workers, those that are behind come first.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from controller.commands.view import drops_line, shown, strategy_text, switch_line
from controller.status.explain import Explanation, explain, headline

Json = dict[str, Any]

WIDE = 110  # columns from which everything is shown
BAR = 16
RATE_OVER_S = 5.0
EVENTS = 6
LEVELS = " ▁▂▃▄▅▆▇█"
PARTS = (("compute_s", "█", "green"), ("network_s", "▓", "cyan"), ("waiting_s", "░", "red"))


class LiveView:
    """Remembers the last seconds, for rates, and the last events. Renders the newest status."""

    def __init__(self) -> None:
        self._status: Json | None = None
        self._iterations: dict[tuple[int, int, int], deque[tuple[float, int]]] = {}
        self._events: deque[Json] = deque(maxlen=EVENTS)

    def hear(self, told: Json, now: float) -> None:
        """One message of the controller's stream; ``now`` on any clock that goes forward."""
        if told["event"] != "status":
            self._events.append(told)
            return
        self._status = told["status"]
        for job in told["status"]["jobs"]:
            for worker in job["workers"]:
                past = self._iterations.setdefault((job["job"], job["session"], worker["worker"]), deque())
                past.append((now, worker["iteration"]))
                while now - past[0][0] > RATE_OVER_S:
                    past.popleft()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self._status is None:
            yield Text("no word from the controller yet")
            return
        status, jobs = self._status, self._status["jobs"]
        yield _line(switch_line(status["switch"]), "bold" if status["switch"]["connected"] else "bold red")
        if not jobs:
            yield Text("no jobs; 'serenectl jobs create --workers N' makes one")
        # One line each for the switch and the drops, the events, and per job a headline, a heading and the swaps.
        fixed = 3 + len(self._events) + 3 * len(jobs)
        lines = max((console.size.height - fixed) // max(len(jobs), 1), 2)
        for job in jobs:
            yield _line(headline(status, job["job"]), "bold")
            if job["state"] != "waiting":
                yield self._workers(job, explain(status, job["job"]), lines, options.max_width)
            yield _line(_swaps(job), "dim")
        totals = status["switch"]["totals"]
        counted = ", ".join(f"{name} {totals[name]}" for name in ("releases", "nudges", "repeats"))
        yield _line(f"{counted}; {drops_line(status['switch'])}", "")
        for event in self._events:
            yield _line(f"{_clock(event['t'])} {event['text']}", "dim")

    def _workers(self, job: Json, told: Sequence[Explanation], lines: int, width: int) -> Table:
        wide = width >= WIDE
        table = Table(box=None, pad_edge=False, padding=(0, 1), expand=False)
        columns = ["worker", "doing", "iteration", "lead", "per s"]
        columns += ["loss", "accuracy"] if wide else []
        columns += ["compute network waiting", "staleness"]
        for name in columns:
            table.add_column(name, justify="left" if name in ("doing", "staleness") else "right", no_wrap=True)
        going = [worker["iteration"] for worker in job["workers"] if worker["state"] == "running"]
        least = min(going, default=0)
        order = sorted(job["workers"], key=lambda worker: worker["iteration"]) if len(told) > lines else job["workers"]
        words = {explanation.worker: explanation for explanation in told}
        for worker in order[: lines - 1] if len(order) > lines else order:
            report = worker["report"] or {}
            doing = words[worker["worker"]]
            row: list[Any] = [
                str(worker["worker"]),
                _doing(doing),
                str(worker["iteration"]),
                f"+{worker['iteration'] - least}" if worker["state"] == "running" else "",
                f"{self._rate(job, worker):.1f}",
            ]
            row += [shown(report.get("loss"), ".4f"), shown(report.get("accuracy"), ".3f")] if wide else []
            row += [_time_bar(report), _histogram(worker["staleness"])]
            table.add_row(*row)
        if len(order) > lines:
            table.add_row("", Text(f"and {len(order) - lines + 1} that are further", style="dim"))
        return table

    def _rate(self, job: Json, worker: Json) -> float:
        past = self._iterations[job["job"], job["session"], worker["worker"]]
        (began, first), (ended, last) = past[0], past[-1]
        return (last - first) / (ended - began) if ended > began else 0.0


def _line(text: str, style: str) -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def _doing(told: Explanation) -> Text:
    if told.waits_for:
        shown_ids = ",".join(str(number) for number in told.waits_for[:4]) + ("…" if len(told.waits_for) > 4 else "")
        return Text(f"waits for {shown_ids}", style="yellow")
    return Text(told.state, style={"silent": "red", "evicted": "magenta", "waiting": "yellow"}.get(told.state, ""))


def _time_bar(report: Json) -> Text:
    """How the worker's time divides, as it has reported it."""
    seconds = [report.get(key) for key, _, _ in PARTS]
    if not all(isinstance(part, int | float) and part >= 0 for part in seconds) or not sum(seconds):  # type: ignore[arg-type]
        return Text("-")
    total = float(sum(seconds))  # type: ignore[arg-type]
    bar, ends = Text(), 0
    so_far = 0.0
    for part, (_, letter, style) in zip(seconds, PARTS, strict=True):
        so_far += float(part or 0)
        upto = round(BAR * so_far / total)
        bar.append(letter * (upto - ends), style=style)
        ends = upto
    return bar.append(f" {float(seconds[2] or 0) / total:4.0%}")


def _histogram(counts: Sequence[int]) -> Text:
    """A column for each class of staleness up to the last that is not empty; the highest is the commonest."""
    used = counts[: max((place for place, count in enumerate(counts) if count), default=-1) + 1]
    most = max(used, default=0)
    return Text("".join(LEVELS[-(-count * 8 // most)] for count in used) or "-", style="cyan")


def _swaps(job: Json) -> str:
    """The last epochs, and why they began."""
    last = [
        f"{_clock(change['t'])} {strategy_text(change['strategy'])} ({change['reason']})"
        for change in job["history"][-3:]
    ]
    return "  epochs: " + (" · ".join(last) or "none yet")


def _clock(unix: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(unix))
