"""The machine that emulated runs are made on: what it is, and how busy it was."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import time
from bisect import bisect_left, bisect_right
from functools import lru_cache
from pathlib import Path

from experiments.run.rerun import machine
from experiments.run.settings import BMV2

PRESSURE = Path("/proc/pressure/cpu")


@lru_cache(maxsize=1)
def here() -> str:
    """Processor and versions, in words."""
    told = machine()
    versions = [f"Linux {platform.release()}", f"Python {told['python']}", f"PyTorch {told.get('torch', '-')}"]
    return f"{told['processor']}, {os.cpu_count()} processors; {', '.join([*versions, *_bmv2_version()])}"


def _bmv2_version() -> list[str]:
    path = shutil.which(BMV2)
    if path is None:
        return []
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [f"simple_switch_grpc {said.strip().splitlines()[-1]}"] if said.strip() else []


class Stalls:
    """In what share of a time something on this machine waited for a processor, as the kernel counts it."""

    def __init__(self) -> None:
        self._times: list[float] = []  # Unix seconds
        self._stalled: list[float] = []  # seconds, since the machine started

    def look(self) -> None:
        stalled = stalled_s()
        if stalled is not None:
            self._times.append(time.time())
            self._stalled.append(stalled)

    def share(self, begin: float, end: float) -> float:
        """Between two times, in Unix seconds; NaN where the kernel does not count, or there were no two looks."""
        first, last = bisect_left(self._times, begin), bisect_right(self._times, end) - 1
        if last <= first:
            return float("nan")
        # Both clocks are read one after the other, so a share of 1 may come out as a little more.
        return min((self._stalled[last] - self._stalled[first]) / (self._times[last] - self._times[first]), 1.0)


def stalled_s() -> float | None:
    """Seconds since the machine started in which something waited for a processor; None where the kernel does not
    count."""
    try:
        some = PRESSURE.read_text().split("\n", 1)[0]
        return int(some.rpartition("total=")[2]) / 1e6
    except (OSError, ValueError):
        return None
