"""Runs the parts of `make bench` (experiments.performance.hosts), a process in each host, whatever the hosts are."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from serene.errors import SereneError
from serene.process.spawn import module
from serene.topologies.processes import ROOT

Json = dict[str, Any]
Popen = Callable[..., subprocess.Popen[bytes]]  # by the worker, whose host it is, and the command; with options
POLL_S = 0.05


class BenchFailed(SereneError):
    """A measurement failed or is void; the message states what happened."""


def run_parts(
    popen: Popen, parts: Mapping[int, tuple[str, Json]], work: Path, timeout_s: float,
    meanwhile: Callable[[], object] = lambda: None,
) -> list[Json]:  # fmt: skip
    """Runs a part in each worker's host, and returns what they measured. popen: starts a process in a worker's host.
    parts: by worker, a part's name and options. meanwhile: called every POLL_S seconds or so.

    Raises BenchFailed with the logs as soon as a part fails, or if they take longer than so many seconds; the others
    are killed then, for they may wait for those that failed.
    """
    processes: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for worker, (part, options) in parts.items():
            name = f"{part}-{worker}"
            arguments = json.dumps({**options, "worker": worker})
            command = module("serene.experiments.performance.hosts", part, arguments, str(work / f"{name}.json"))
            with (work / f"{name}.log").open("wb") as output:
                processes[name] = popen(worker, command, stdout=output, stderr=output, cwd=str(ROOT))
        until = time.monotonic() + timeout_s
        running = dict(processes)
        while running:
            running = {name: process for name, process in running.items() if process.poll() is None}
            if failed := [name for name, process in processes.items() if process.poll()]:
                logs = ((name, (work / f"{name}.log").read_text(errors="replace")[-2000:]) for name in failed)
                raise BenchFailed("\n".join(f"{name}: {log}" for name, log in logs))
            if running and time.monotonic() > until:
                raise BenchFailed(f"did not finish within {timeout_s:g} s: {', '.join(running)}")
            meanwhile()
            time.sleep(POLL_S)
    finally:
        for process in processes.values():
            process.kill()
            process.wait()
    return [json.loads((work / f"{name}.json").read_text()) for name in processes]
