"""What it takes to run the same again: the settings of a run, and with what and where it ran."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from experiments.run.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("numpy", "torch")  # those that decide the bits of a gradient


def rerun(settings: Settings) -> dict[str, Any]:
    """For summary.json. ``commit`` is None outside a checkout, and ends with ``-dirty`` where files were changed;
    ``faults`` is the text of the file."""
    return {
        "seed": settings.seed,
        "compute_ms": settings.compute_ms,
        "racks": settings.racks,
        "link_mbit": settings.link_mbit,
        "uplink_mbit": settings.uplink_mbit,
        "program": settings.program.name,
        "data_dir": None if settings.data_dir is None else str(settings.data_dir),
        "faults": None if settings.faults_file is None else settings.faults_file.read_text(),
        "mininet": settings.mininet,
        "command": _command(),
        "version": version("serene"),
        "commit": _commit(),
        "machine": machine(),
    }


def machine() -> dict[str, Any]:
    """Where this runs, and with which versions."""
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        **{name: found for name in PACKAGES if (found := _version(name))},
    }


def _command() -> str:
    """As it was given; make's settings are options of it."""
    spec = sys.modules["__main__"].__spec__
    return shlex.join(
        [*(("python", "-m", spec.name.removesuffix(".__main__")) if spec else sys.argv[:1]), *sys.argv[1:]]
    )


def _commit() -> str | None:
    # Under sudo the checkout is another user's, which git would not read.
    git = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT)]
    command = [*git, "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 and (ROOT / ".git").exists() else None


def _processor() -> str:
    """Its name, where the kernel tells."""
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
