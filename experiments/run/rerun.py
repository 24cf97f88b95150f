"""What it takes to repeat a run: the rest of its settings, its command, and the versions and machine it ran with."""

from __future__ import annotations

import shlex
import sys
from typing import Any

from serene import distribution
from serene.experiments.run.settings import Settings
from serene.experiments.shared.machine import machine

AS_THEY_ARE = ("seed", "compute_ms", "racks", "link_mbit", "uplink_mbit", "mininet", "commit")


def rerun(settings: Settings) -> dict[str, Any]:
    """Fields of summary.json. ``commit`` and ``faults``, the text of the fault file, are as they were when the run
    began: the files may have changed since."""
    return {
        **{name: getattr(settings, name) for name in AS_THEY_ARE},
        "program": settings.program.name,
        "slots": settings.program.slots,
        "data_dir": None if settings.data_dir is None else str(settings.data_dir),
        "faults": settings.faults.text,
        "command": _command(),
        "version": distribution.version(),
        "machine": machine(),
    }


def _command() -> str:
    """The command line of this process. What a user gave to make is among its options."""
    spec = sys.modules["__main__"].__spec__
    return shlex.join(
        [*(("python", "-m", spec.name.removesuffix(".__main__")) if spec else sys.argv[:1]), *sys.argv[1:]]
    )
