"""A dask scheduler and its workers, as processes on loopback."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import TracebackType

from tests.controller.processes import until
from tests.runs import ROOT, Marked

WORKERS = 2


class Dask:
    """A scheduler and WORKERS workers, from ``with`` to the end of the block. Each worker has one process and one
    thread, and a nanny that replaces it if it dies. A task that two workers have died of fails."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._begun: list[Marked] = []

    def __enter__(self) -> Dask:
        self.scheduler = self._begin("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        listening = r"Scheduler at: +(\S+)\n"
        self.address = until(lambda: re.search(listening, self.scheduler.output), "the scheduler listens")[1]
        for number in range(WORKERS):
            self._begin("worker", self.address, "--nthreads", "1", "--no-dashboard", "--name", str(number))
        for worker in self._begun[1:]:
            until(lambda worker=worker: "Registered to" in worker.output, f"it begins: {worker.output}")  # type: ignore[misc]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in reversed(self._begun):
            process.end()
        until(lambda: not any(process.alive() for process in self._begun), "nothing of it is left")

    def _begin(self, what: str, *options: str) -> Marked:
        command = [sys.executable, "-m", "distributed.cli.dask_" + what, *options]
        if what == "worker":
            command += ["--local-directory", str(self._directory / "dask")]
        log = self._directory / f"dask-{len(self._begun)}.log"
        settings = {"COMM__TIMEOUTS__CONNECT": "10s", "SCHEDULER__ALLOWED_FAILURES": "1"}
        environment = {f"DASK_DISTRIBUTED__{name}": value for name, value in settings.items()}
        process = Marked(command, log, warm=False, PYTHONPATH=str(ROOT), **environment)
        self._begun.append(process)
        return process
