"""The compiler's address and undefined-behaviour sanitizers. A finding of theirs ends the process."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from serene.native import compiler

ROOT = Path(__file__).resolve().parents[2]
FLAGS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g1", "-O1")
PROGRAMS = {  # by name: the JSON, and the lanes if it is one of Serene's
    "serene": (ROOT / "p4src" / "build" / "serene.json", 320),
    "serene_jumbo": (ROOT / "p4src" / "build" / "serene_jumbo.json", 896),
    "shapes": (ROOT / "tests" / "embedded" / "programs" / "shapes.json", 0),
    "probe": (ROOT / "tests" / "embedded" / "programs" / "p4rt_probe.json", 0),
}


def sanitizer_libraries() -> str:
    """The libraries to preload (LD_PRELOAD) so that Python can load a library built with sanitizers; empty if the
    compiler has none."""
    names = []
    for name in ("libasan.so", "libubsan.so"):
        run = subprocess.run([compiler(), f"-print-file-name={name}"], capture_output=True, text=True, check=False)
        path = run.stdout.strip()
        if "/" not in path or not Path(path).exists():
            return ""
        names.append(path)
    return ":".join(names)


def loaded() -> bool:
    return "libasan" in os.environ.get("LD_PRELOAD", "")


def loaded_flags() -> tuple[str, ...]:
    """Returns compiler flags: with the sanitizers in a process that has their libraries loaded."""
    return FLAGS if loaded() else ()


def environment() -> dict[str, str]:
    """The environment of a process that loads such libraries. Leaks are not reported, as Python itself leaks on
    exit."""
    return {**os.environ, "LD_PRELOAD": sanitizer_libraries(), "ASAN_OPTIONS": "detect_leaks=0"}
