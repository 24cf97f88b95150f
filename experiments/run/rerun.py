"""What it takes to repeat a run: the rest of its settings, its command, and the versions and machine it ran with."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from serene import distribution
from serene.experiments.run.settings import Settings

PACKAGES = ("numpy", "torch")  # those that decide the bits of a gradient


def rerun(settings: Settings) -> dict[str, Any]:
    """Fields of summary.json. ``commit`` and ``faults``, the text of the fault file, are as they were when the run
    began: the files may have changed since."""
    return {
        "seed": settings.seed,
        "compute_ms": settings.compute_ms,
        "racks": settings.racks,
        "link_mbit": settings.link_mbit,
        "uplink_mbit": settings.uplink_mbit,
        "program": settings.program.name,
        "slots": settings.program.slots,
        "data_dir": None if settings.data_dir is None else str(settings.data_dir),
        "faults": settings.faults.text,
        "mininet": settings.mininet,
        "command": _command(),
        "version": distribution.version(),
        "commit": settings.commit,
        "machine": machine(),
    }


def machine() -> dict[str, Any]:
    """This machine and the versions of what decides a gradient's bits."""
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        **{name: found for name in PACKAGES if (found := _version(name))},
    }


def _command() -> str:
    """The command line of this process. What a user gave to make is among its options."""
    spec = sys.modules["__main__"].__spec__
    return shlex.join(
        [*(("python", "-m", spec.name.removesuffix(".__main__")) if spec else sys.argv[:1]), *sys.argv[1:]]
    )


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
