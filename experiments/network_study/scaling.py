"""Measures the simulator itself: seconds and memory for one exchange, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass

from serene.errors import SereneError
from serene.experiments.network_study.cells import ExchangeCell, NetworkCell
from serene.experiments.network_study.flows.clos import SIZES
from serene.experiments.shared.machine import memory_bytes
from serene.experiments.shared.measurements import Row
from serene.process.spawn import module

METHODS = ("flat-butterfly", "servers-distributed", "leaf-spine-aggregation")
RATIO = 0.25


@dataclass(frozen=True)
class Case:
    """An exchange on a network with the bisection ratio RATIO."""

    layers: int
    hosts: int
    method: str


def cases() -> list[Case]:
    return [Case(*size, method) for size in SIZES for method in METHODS]


def measure(case: Case) -> Row:
    """Seconds, and megabytes of memory. Raises SereneError if the process fails."""
    command = module(__name__, str(case.layers), str(case.hosts), case.method)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SereneError(f"{case.method} on {case.hosts} hosts: {done.stderr.strip()[-300:]}")
    return dict(json.loads(done.stdout))


def _one(layers: int, hosts: int, method: str) -> Row:
    libraries = memory_bytes() / 2**20
    answer = ExchangeCell(NetworkCell(layers, hosts, RATIO), method).answer()
    return {"engine_s": answer["engine_s"], "memory_mb": memory_bytes() / 2**20, "of_it_libraries_mb": libraries}


if __name__ == "__main__":
    print(json.dumps(_one(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])))
