"""The conditions of a measurement: the machine that it was made on, and how busy that was."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import time
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

from serene.clock import unix_s

ROOT = Path(__file__).resolve().parents[2]
PRESSURE, MEMORY = Path("/proc/pressure/cpu"), Path("/proc/meminfo")
NOT_RECORDED = "not recorded"
CONDITIONS = "conditions"  # the key of a result for the conditions it was found in; older results have none
BMV2 = "simple_switch_grpc"
PACKAGES = ("numpy", "torch")  # those that decide the bits of a gradient

R = TypeVar("R")


@dataclass(frozen=True)
class Conditions:
    """The conditions of a measurement. machine: as `here` describes it. load_before, load_after: how many tasks ran or
    waited for a processor, the kernel's mean over the last minute. stalled: the share of the time, 0 to 1, in which
    something waited for a processor. None: not recorded."""

    machine: str | None = None
    load_before: float | None = None
    load_after: float | None = None
    stalled: float | None = None

    @classmethod
    def of(cls, kept: Mapping[str, Any] | None) -> Conditions:
        """The conditions that ``to_dict`` wrote. kept: None for an older result, which has no conditions."""
        return cls(**kept) if kept else cls()

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def machine() -> dict[str, Any]:
    """This machine and the versions of what decides a gradient's bits."""
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        **{name: found for name in PACKAGES if (found := _version(name))},
    }


def _processor() -> str:
    """The processor's name from /proc/cpuinfo, else the architecture's."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


@lru_cache(maxsize=1)
def here() -> str:
    """This machine: the processor and how many there are, memory, and versions."""
    facts = machine()
    versions = f"Linux {platform.release()}, Python {facts['python']}, PyTorch {facts.get('torch', '-')}"
    return ", ".join([f"{facts['processor']}, {os.cpu_count()} processors, {_memory()}; {versions}", *_bmv2()])


def made(command: str) -> dict[str, str]:
    """With which command, from which commit, where and when (YYYY-MM-DD) results are made: now and here."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short=10", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    return {"command": command, "commit": commit, "machine": here(), "date": time.strftime("%Y-%m-%d")}


def _bmv2() -> list[str]:
    """BMv2's version, if it is installed."""
    try:
        output = subprocess.run([BMV2, "--version"], capture_output=True, text=True, timeout=30, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [f"{BMV2} {line}" for line in output.strip().splitlines()[-1:]]


def _memory() -> str:
    try:
        total = next(line for line in MEMORY.read_text().splitlines() if line.startswith("MemTotal:"))
        return f"{int(total.split()[1]) * 1024 / 1e9:.0f} GB"
    except (OSError, StopIteration, ValueError, IndexError):
        return "memory not known"


def memory_bytes(pid: int | str = "self", what: str = "VmHWM") -> int:
    """The memory that a process has had resident at most, or with ``VmRSS`` has now. Not by getrusage, whose value
    begins with the parent's."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{what}:"))


def load() -> float:
    """How many tasks ran or waited for a processor, the kernel's mean over the last minute."""
    return os.getloadavg()[0]


def observed(measure: Callable[[], R]) -> tuple[R, Conditions]:
    """Calls ``measure``; what it returned, and the conditions in which it ran."""
    before, stalls = load(), Stalls()
    stalls.look()
    found = measure()
    stalls.look()
    return found, Conditions(here(), before, load(), stalls.whole())


class Stalls:
    """The share of a time in which something on this machine waited for a processor, by the kernel's count (PSI)."""

    def __init__(self) -> None:
        self._times: list[float] = []  # Unix seconds
        self._stalled: list[float] = []  # seconds, since the machine started

    def look(self) -> None:
        """Notes the time and the kernel's count."""
        stalled = stalled_s()
        if stalled is not None:
            self._times.append(unix_s())
            self._stalled.append(stalled)

    def share(self, begin: float, end: float) -> float | None:
        """The share, 0 to 1, between two times in Unix seconds; None if ``look`` was not called twice between them, or
        the kernel does not count."""
        return self._between(bisect_left(self._times, begin), bisect_right(self._times, end) - 1)

    def whole(self) -> float | None:
        """The share from the first ``look`` to the last one; None as for ``share``."""
        return self._between(0, len(self._times) - 1)

    def _between(self, first: int, last: int) -> float | None:
        if last <= first or self._times[last] <= self._times[first]:
            return None
        # Time and count are read one after the other, so that a share of 1 may come out as a little more.
        return min((self._stalled[last] - self._stalled[first]) / (self._times[last] - self._times[first]), 1.0)


def stalled_s() -> float | None:
    """Seconds since the machine started in which something waited for a processor; None where the kernel does not
    count."""
    try:
        some = PRESSURE.read_text().split("\n", 1)[0]
        return int(some.rpartition("total=")[2]) / 1e6
    except (OSError, ValueError):
        return None


def summary(found: Sequence[Conditions]) -> str:
    """A sentence on several measurements: their machines, the most frequent one first, and how busy these were."""
    machines = Counter(each.machine or NOT_RECORDED for each in found).most_common()
    made = machines[0][0] if len(machines) == 1 else "; ".join(f"{count} on {where}" for where, count in machines)
    loads, after = ([getattr(each, name) for each in found] for name in ("load_before", "load_after"))
    parts = [
        f"load before: {_median(loads, '.1f')}", f"after: {_median(after, '.1f')}",
        f"share of the time in which something waited for a processor: {_median([e.stalled for e in found], '.0%')}",
    ]  # fmt: skip
    return f"Machine: {made}. Median of the {', '.join(parts)}."


def _median(values: Sequence[float | None], form: str) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return NOT_RECORDED
    unknown = f", {len(values) - len(known)} {NOT_RECORDED}" if len(known) < len(values) else ""
    return f"{statistics.median(known):{form}} (at most {max(known):{form}}{unknown})"
