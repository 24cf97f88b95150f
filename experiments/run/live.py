"""What a run shows while it goes on: a live table, or plain lines where the output is no terminal."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text
from typing_extensions import Self

from experiments.run.settings import Settings
from serene.strategy import strategy_from_dict

PLAIN_EVERY_S = 5.0

Json = dict[str, Any]


class View:
    """Shows the controller's status, whenever there is a new one."""

    def __init__(self, settings: Settings, console: Console, hint: str) -> None:
        self._settings = settings
        self._console = console
        self._hint = hint
        self._live = Live(console=console, refresh_per_second=5) if console.is_terminal else None
        self._printed = 0.0
        self._epoch = 0

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, trace)

    def show(self, job: Json) -> None:
        if self._live is not None:
            self._live.update(self._table(job))
            return
        changed = job["epoch"] != self._epoch
        if changed or time.monotonic() - self._printed >= PLAIN_EVERY_S:
            self._epoch, self._printed = job["epoch"], time.monotonic()
            self._console.print(self._line(job))

    def _line(self, job: Json) -> str:
        steps = " ".join(str(worker["iteration"]) for worker in job["workers"])
        reports = [worker["report"] or {} for worker in job["workers"]]
        accuracy = max((report.get("accuracy") or 0.0 for report in reports), default=0.0)
        return (
            f"{_strategy(job)}, epoch {job['epoch']}: steps {steps} of {self._settings.steps}, accuracy {accuracy:.3f}"
        )

    def _table(self, job: Json) -> RenderableType:
        table = Table(box=None, pad_edge=False)
        for heading in ("worker", "", "step", "round", "loss", "accuracy", "waiting", "state"):
            table.add_column(heading, justify="left" if heading in ("", "state") else "right")
        sent = again = 0
        for worker in job["workers"]:
            report = worker["report"] or {}
            sent += report.get("packets_sent", 0) + report.get("packets_received", 0)
            again += report.get("retransmissions", 0)
            state = report.get("state", worker["state"]) if worker["state"] == "running" else worker["state"]
            table.add_row(
                str(worker["worker"]),
                ProgressBar(total=self._settings.steps, completed=worker["iteration"], width=20),
                str(worker["iteration"]),
                _number(report.get("round"), "d"),
                _number(report.get("loss"), ".3f"),
                _number(report.get("accuracy"), ".3f"),
                _number(report.get("waiting_s"), ".1f", " s"),
                Text(state, style="yellow" if state in ("exchanging", "paused") else "green"),
            )
        head = Text.assemble(
            ("Serene  ", "bold cyan"),
            (_strategy(job), "bold"),
            f"   epoch {job['epoch']}   packets {sent:,}   retransmissions {again:,}",
        )
        return Group(head, table, Text(self._hint, style="dim"))


def _strategy(job: Json) -> str:
    return str(strategy_from_dict(job["strategy"]))


def _number(value: Any, format_: str, unit: str = "") -> str:
    return "-" if value is None else f"{value:{format_}}{unit}"
