"""The amount of memory that this process can still allocate."""

from __future__ import annotations

from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
# For cgroup versions 2 and 1: the files of a group's limit and use, and the statistic of memory that can be reclaimed.
LIMITS = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "total_inactive_file"),
)


def free_bytes(meminfo: Path = Path("/proc/meminfo"), cgroup: Path = CGROUP) -> int | None:
    """Bytes that can be allocated without swapping, by the machine's memory and the limit of this process's control
    group. None if the machine does not report its memory."""
    try:
        lines = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
        free = 1024 * int(lines["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        return None
    within = _free_in(cgroup)
    return free if within is None else min(free, within)


def _free_in(cgroup: Path) -> int | None:
    """Unused bytes of a control group's limit; None if it has no limit."""
    for limit, used, reclaimable in LIMITS:
        try:
            most, now = int((cgroup / limit).read_text()), int((cgroup / used).read_text())
            statistics = (cgroup / limit).with_name("memory.stat").read_text().splitlines()
            back = int(dict(line.split() for line in statistics).get(reclaimable, 0))
        except (OSError, ValueError):  # no such file, or "max"
            continue
        return max(most - now + back, 0)
    return None
