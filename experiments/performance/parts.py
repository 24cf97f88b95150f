"""What `make bench` measures in hosts, one process each (experiments.performance.hosts), wherever those hosts are."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from serene.errors import SereneError
from serene.spawn import module
from topologies.processes import ROOT

Json = dict[str, Any]
POLL_S = 0.05


class BenchFailed(SereneError):
    """A measurement that is void; the message says what happened."""


class Hosts(Protocol):
    """Where workers run."""

    def popen(self, worker: int, command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]: ...


def run_parts(hosts: Hosts, parts: Mapping[int, tuple[str, Json]], work: Path, timeout_s: float) -> list[Json]:
    """Runs a worker's part in each host. Raises BenchFailed with the logs of the first that failed, at once; the
    others, which may wait for them, are ended."""
    processes: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for worker, (part, options) in parts.items():
            name = f"{part}-{worker}"
            told = json.dumps({**options, "worker": worker})
            command = module("experiments.performance.hosts", part, told, str(work / f"{name}.json"))
            with (work / f"{name}.log").open("wb") as output:
                processes[name] = hosts.popen(worker, command, stdout=output, stderr=output, cwd=str(ROOT))
        until = time.monotonic() + timeout_s
        going = dict(processes)
        while going:
            going = {name: process for name, process in going.items() if process.poll() is None}
            if failed := [name for name, process in processes.items() if process.poll()]:
                logs = ((name, (work / f"{name}.log").read_text(errors="replace")[-2000:]) for name in failed)
                raise BenchFailed("\n".join(f"{name}: {log}" for name, log in logs))
            if going and time.monotonic() > until:
                raise BenchFailed(f"not over within {timeout_s:g} s: {', '.join(going)}")
            time.sleep(POLL_S)
    finally:
        for process in processes.values():
            process.kill()
            process.wait()
    return [json.loads((work / f"{name}.json").read_text()) for name in processes]
