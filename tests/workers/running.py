"""Training programs as processes, and their command line called in this process."""

from __future__ import annotations

import csv
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from serene.controller.http.client import ControllerClient
from serene.strategy import Strategy
from tests.controller.processes import PATIENCE_S, ROOT, SwitchProcess, until
from tests.support.warm import warm_python

SLOTS = 249  # 79,510 parameters in chunks of 320


class Workers:
    """Training programs of one job, started and watched."""

    def __init__(self, switch: SwitchProcess, client: ControllerClient, out: Path) -> None:
        self.client = client
        self.out = out
        self._switch = switch
        self._processes: list[subprocess.Popen[str]] = []

    def create(self, workers: int, strategy: Strategy) -> None:
        self.client.create_job(workers, strategy, job=0)

    def arguments(self, worker: int, of: int, *options: object) -> list[str]:
        port = worker + 1
        pair = f"{self._switch.peer_udp_ports[port]}:{self._switch.udp_ports[port]}"
        given = ["--worker", worker, "--workers", of, "--frame-udp", pair, "--compute-ms", 0, "--seed", 1]
        return [str(part) for part in (*given, "--out", self.out, "--join-timeout", PATIENCE_S, *options)]

    def start(self, worker: int, of: int, *options: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [warm_python(), "-m", "serene.workers.train", *self.arguments(worker, of, *options)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        self._processes.append(process)
        return process

    def reached(self, worker: int, step: int) -> None:
        def enough() -> bool:
            assert all(process.poll() is None for process in self._processes), self.ended()
            return self.client.job(0).workers[worker].iteration >= step

        until(enough, f"worker {worker} does step {step}")

    def ended(self) -> list[tuple[int, str]]:
        """The exit status and output of each program that has ended."""
        return [
            (process.returncode, process.stdout.read() if process.stdout else "")
            for process in self._processes
            if process.poll() is not None
        ]

    def results(self, worker: int) -> dict[str, Any]:
        return json.loads((self.out / f"worker-{worker}.json").read_text())  # type: ignore[no-any-return]

    def parameters(self, worker: int) -> np.ndarray:
        return np.load(self.out / f"parameters-{worker}.npy")  # type: ignore[no-any-return]

    def steps(self, worker: int) -> list[dict[str, str]]:
        with (self.out / f"worker-{worker}.csv").open(newline="") as file:
            return list(csv.DictReader(file))

    def stop(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.communicate()
        for job in self.client.jobs():
            self.client.delete_job(job.job)


def done(process: subprocess.Popen[str], status: int = 0) -> str:
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == status, output
    assert "Traceback" not in output
    return output
