"""The view of a run that is under way: a live table in a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text
from typing_extensions import Self

from serene.controller.jobs.job import WorkerState
from serene.controller.status.model import JobStatus
from serene.experiments.run.settings import Settings
from serene.report import Facts, Number, doing, number, values

PLAIN_EVERY_S = 5.0


class View:
    """Shows the controller's status. hint: a line below the table."""

    def __init__(self, settings: Settings, console: Console, hint: str) -> None:
        self._settings = settings
        self._console = console
        self._hint = hint
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
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

    def show(self, job: JobStatus, steps: Sequence[int]) -> None:
        """Shows a new status: at once in a terminal, elsewhere every PLAIN_EVERY_S seconds and when an epoch begins.
        steps: that each worker has done, in all sessions of the job."""
        if self._live is not None:
            self._live.update(self._table(job, steps), refresh=True)
            return
        changed = job.epoch != self._epoch
        if changed or time.monotonic() - self._printed >= PLAIN_EVERY_S:
            self._epoch, self._printed = job.epoch, time.monotonic()
            self._console.print(self._line(job, steps))

    def _line(self, job: JobStatus, steps: Sequence[int]) -> str:
        done = " ".join(map(str, steps))
        accuracy = max((number(worker.report, "accuracy") or 0.0 for worker in job.workers), default=0.0)
        return f"{job.strategy}, epoch {job.epoch}: steps {done} of {self._settings.steps}, accuracy {accuracy:.3f}"

    def _table(self, job: JobStatus, steps: Sequence[int]) -> RenderableType:
        table = Table(box=None, pad_edge=False)
        for heading in ("worker", "", "step", "round", "loss", "accuracy", "waiting", "state"):
            table.add_column(heading, justify="left" if heading in ("", "state") else "right")
        sent = again = 0
        for worker, done in zip(job.workers, steps, strict=True):
            report = worker.report
            sent += int(sum(value or 0 for value in values(report, "packets_sent", "packets_received")))
            again += int(number(report, "retransmissions") or 0)
            state = (doing(report) or "running") if worker.state is WorkerState.RUNNING else worker.state.value
            table.add_row(
                str(worker.worker),
                ProgressBar(total=self._settings.steps, completed=done, width=20),
                str(done),
                _number(report, "round", ".0f"),
                _number(report, "loss", ".3f"),
                _number(report, "accuracy", ".3f"),
                _number(report, "waiting_s", ".1f", " s"),
                Text(state, style="yellow" if state in ("exchanging", "paused") else "green"),
            )
        head = Text.assemble(
            ("Serene  ", "bold cyan"),
            (str(job.strategy), "bold"),
            f"   epoch {job.epoch}   packets {sent:,}   retransmissions {again:,}",
        )
        return Group(head, table, Text(self._hint, style="dim"))


def _number(report: Facts | None, name: Number, form: str, unit: str = "") -> str:
    value = number(report, name)
    return "-" if value is None else f"{value:{form}}{unit}"
