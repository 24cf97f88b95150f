"""Whole runs as processes of their own: what they need, what they do, and what is left of them afterwards.

Mininet runs get a network namespace of the test's own, so that they meet neither the machine's interfaces and ports
nor another test's. Every process of a run carries a mark in its environment: that is how a test finds what is left.
"""

from __future__ import annotations

import contextlib
import csv
import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from serene.controller.http.client import ControllerClient, NoController
from tests.controller.processes import own_network, until
from tests.support.warm import MARK
from tests.support.warm_process import WarmProcess

ROOT = Path(__file__).resolve().parents[1]
# For runs of many rounds, the cheaper model, and its slots: BMv2 spends most of the time on packets; with the embedded
# switch it goes into gradients.
MODEL, SLOTS = {"embedded": "mlp", "bmv2": "cnn"}, {"embedded": 249, "bmv2": 29}

Json = dict[str, Any]


def missing(target: str | None = "embedded", *, mininet: bool = True) -> str | None:
    """What this machine lacks for a run, None if nothing. target: the switch that it uses; None if it uses none."""
    if target == "embedded" and not any(shutil.which(name) for name in ("cc", "gcc", "clang")):
        return "a C compiler"
    if target == "bmv2" and shutil.which("simple_switch_grpc") is None:
        return "simple_switch_grpc"
    if not mininet:
        return None
    if os.geteuid() != 0:
        return "root"
    lacking = [name for name in ("mnexec", "ip", "ethtool") if shutil.which(name) is None]
    if lacking or importlib.util.find_spec("mininet") is None:
        return f"Mininet ({', '.join(lacking) or 'its Python module'})"
    return None


def private_network() -> AbstractContextManager[None]:
    """Puts this thread, and the processes that it starts, into an empty network namespace with loopback up. Needs
    root."""
    return own_network(0)


def interfaces() -> set[str]:
    """The names of the interfaces in this thread's network namespace, without loopback."""
    return {name for _, name in socket.if_nameindex()} - {"lo"}


class Marked:
    """A process all of whose descendants can be found, even after they have detached themselves from it. It leads a
    session of its own. warm: in a warm Python, which is not the test's own child; the command begins with
    ``sys.executable``."""

    def __init__(self, command: list[str], log: Path, *, warm: bool = False, **environment: str) -> None:
        self.log = log
        self._mark = f"{MARK}={uuid.uuid4()}"
        name, _, value = self._mark.partition("=")
        variables = {**os.environ, "COLUMNS": "200", name: value, **environment}
        self.process: subprocess.Popen[bytes] | WarmProcess
        with log.open("wb") as output:
            if warm:
                number = output.fileno()
                self.process = WarmProcess(command[1:], number, number, ROOT, variables, modules="torch")
                return
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=output, stderr=output, cwd=ROOT, start_new_session=True,
                env=variables,
            )  # fmt: skip

    @property
    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def alive(self) -> dict[int, str]:
        """The name and command line of each of this run's processes that still lives, by process id."""
        found = {}
        for directory in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if self._mark.encode() in (directory / "environ").read_bytes().split(b"\0"):
                    command = (directory / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    found[int(directory.name)] = f"{(directory / 'comm').read_text().strip()}: {command.strip()}"
        return found

    def find(self, *words: str) -> int:
        """The id of the process whose name and command line contain all these words."""
        alive = self.alive()
        found = [pid for pid, command in alive.items() if all(word in f"{command} " for word in words)]
        assert len(found) == 1, f"{len(found)} processes {words} among {alive}"
        return found[0]

    def wait(self, patience_s: float = 120.0) -> int:
        """Waits until the process has ended, and returns its exit status."""
        until(lambda: self.process.poll() is not None, f"it ends; its output:\n{self.output}", patience_s)
        assert self.process.returncode is not None
        return self.process.returncode

    def end(self) -> None:
        """Kills whatever is left of it, for tests that failed half-way."""
        if isinstance(self.process, subprocess.Popen) and self.process.stdin is not None:
            self.process.stdin.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pid in self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)


class Run(Marked):
    """``python -m serene.experiments.run``, which writes to ``out``; as a rule in a warm Python."""

    def __init__(
        self, out: Path, log: Path, *options: object, environment: dict[str, str] | None = None, warm: bool = True
    ) -> None:
        self.out = out
        command = [sys.executable, "-m", "serene.experiments.run", "--out", str(out), *map(str, options)]
        super().__init__(command, log, warm=warm, **(environment or {}))

    def until_training(self, step: int = 2, patience_s: float = 120.0, of: Callable[[list[int]], int] = min) -> str:
        """Waits until every worker has done and recorded ``step`` steps, with ``of=max`` one of them, and returns the
        controller's URL. A worker has done a step when it has contributed to the next one."""
        announced = "in another terminal"
        until(lambda: announced in self.output or self.process.poll() is not None, "the run starts", patience_s)
        assert self.process.poll() is None, self.output
        given = re.search(r"SERENE_CONTROLLER=(http\S+)", self.output)
        url = given[1] if given else "http://127.0.0.1:8559"
        with ControllerClient(url) as client:
            until(lambda: self._iteration(client, of) > step, f"{of.__name__} of the steps is {step}", patience_s)
        return url

    def _iteration(self, client: ControllerClient, of: Callable[[list[int]], int]) -> int:
        assert self.process.poll() is None, self.output
        with contextlib.suppress(NoController):
            for job in client.jobs():
                return of([int(worker.iteration) for worker in job.workers])
        return 0

    def summary(self) -> Json:
        return json.loads((self.out / "summary.json").read_text())  # type: ignore[no-any-return]

    def rows(self, worker: int) -> list[dict[str, str]]:
        """One worker's recorded steps, in order."""
        with (self.out / "metrics.csv").open(newline="") as file:
            return [row for row in csv.DictReader(file) if int(row["worker"]) == worker]

    def best_accuracy(self) -> float:
        """Of any worker's replica in any test, 0 to 1. The CNN's accuracy swings from step to step under ASP."""
        with (self.out / "metrics.csv").open(newline="") as file:
            return max(float(row["accuracy"] or 0) for row in csv.DictReader(file))

    def parameters(self, worker: int) -> np.ndarray:
        """float32[size]: the parameters with which the worker ended."""
        return np.load(self.out / f"parameters-{worker}.npy")  # type: ignore[no-any-return]

    def worker(self, worker: int) -> Json:
        """The worker's result file."""
        return json.loads((self.out / f"worker-{worker}.json").read_text())  # type: ignore[no-any-return]


def finished(
    folder: Path, *options: object, patience_s: float = 240.0, meanwhile: Callable[[Run], None] | None = None
) -> Run:
    """A run in an empty network that has ended well, and of which nothing is left. meanwhile: is called with the run
    when it has begun."""
    with private_network():
        run = Run(folder / "out", folder / "log", *options)
        try:
            if meanwhile is not None:
                meanwhile(run)
            assert run.wait(patience_s) == 0, run.output
            until(lambda: not run.alive() and not interfaces(), "nothing is left")
        finally:
            run.end()
    return run
