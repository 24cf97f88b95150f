"""Measures the simulator itself: seconds and memory for one exchange, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from serene.experiments.network_study.cells import CONDITIONS, BadCell, ExchangeCell, NetworkCell
from serene.experiments.network_study.flows.clos import SIZES
from serene.experiments.shared.machine import observed
from serene.spawn import module

METHODS = ("flat-butterfly", "servers-distributed", "leaf-spine-aggregation")
RATIO = 0.25


def measure() -> list[dict[str, Any]]:
    """A row for each method and network. Raises BadCell if a run fails."""
    rows = []
    for (layers, hosts), method in ((size, method) for size in SIZES for method in METHODS):
        done = subprocess.run(
            module(__name__, str(layers), str(hosts), method),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise BadCell(f"{method} on {hosts} hosts: {done.stderr.strip()[-300:]}")
        rows.append(json.loads(done.stdout))
    return rows


def _one(layers: int, hosts: int, method: str) -> dict[str, Any]:
    before = _peak_mb()
    cell = ExchangeCell(NetworkCell(layers, hosts, RATIO), method)
    answer, conditions = observed(cell.answer)
    return {
        **asdict(cell.network), "method": method, "engine_s": answer["engine_s"], "memory_mb": _peak_mb(),
        "of_it_libraries_mb": before, CONDITIONS: conditions.to_dict(),
    }  # fmt: skip


def _peak_mb() -> float:
    """The peak memory of this process. Not by getrusage, whose value begins with the parent's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith("VmHWM:"))) / 1024


if __name__ == "__main__":
    print(json.dumps(_one(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])))
