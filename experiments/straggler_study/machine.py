"""The machine of emulated runs, with the version of BMv2 that is installed there."""

from __future__ import annotations

import shutil
import subprocess
from functools import lru_cache

from serene.experiments.run.settings import BMV2
from serene.experiments.shared import machine


@lru_cache(maxsize=1)
def here() -> str:
    """This machine in words, with BMv2's version if it is installed."""
    return ", ".join([machine.here(), *_bmv2_version()])


def _bmv2_version() -> list[str]:
    path = shutil.which(BMV2)
    if path is None:
        return []
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [f"simple_switch_grpc {said.strip().splitlines()[-1]}"] if said.strip() else []
