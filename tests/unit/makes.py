"""Runs make as a user does."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


OF_AN_OUTER_MAKE = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")


def make(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs `make -n`: returns its output and status."""
    shell = {name: value for name, value in os.environ.items() if name not in OF_AN_OUTER_MAKE}
    return subprocess.run(
        ["make", "-n", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env=shell | environment,
    )
