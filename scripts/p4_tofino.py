"""Compiles the data plane for Tofino 1: what p4c made of p4src/tna, and what it costs on the chip.

python scripts/p4_tofino.py             # needs p4c-barefoot and bfas on the PATH
python scripts/p4_tofino.py --frontier  # also how the cost grows with lanes, workers and slots (many compilations)
python scripts/p4_tofino.py --check     # needs nothing: does the output belong to the sources?

A compiler that does not find core.p4 and tna.p4 by itself is told where they are: P4C_INCLUDE=DIRECTORY:DIRECTORY.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

SOURCES = Path(__file__).resolve().parent.parent / "p4src"
BUILD = SOURCES / "build" / "tofino"
MAIN = "tna/serene.p4"
TOOLS = {"p4c-barefoot": "p4c's Tofino backend", "bfas": "its assembler"}
FRONTIER = [
    {},
    *({"FIELDS": lanes} for lanes in (16, 24, 28, 36)),
    *({"FIELDS": 16, "SLOT_BITS": bits} for bits in (11, 13)),
    {"FIELDS": 16, "WORKER_BITS": 5, "SLOT_BITS": 11},
    {"FIELDS": 16, "WORKER_BITS": 5},
]
DEFAULTS = {"FIELDS": 32, "WORKER_BITS": 4, "SLOT_BITS": 12}


class CannotCompile(Exception):
    pass


def digest() -> str:
    """SHA-256 over the sources that shape the output."""
    total = hashlib.sha256()
    for folder in ("include", "tna"):
        for path in sorted((SOURCES / folder).glob("*.p4")):
            total.update(f"{path.relative_to(SOURCES)}\n".encode())
            total.update(path.read_bytes())
    return total.hexdigest()


def outdated() -> bool:
    stamp = BUILD / "serene.sha256"
    return not stamp.is_file() or stamp.read_text().strip() != digest()


def compile_variant(out: Path, sizes: dict[str, int]) -> tuple[str, float]:
    """What went wrong, empty if nothing did, and how long it took. Output is in ``out``."""
    includes = ["include", "tna", *filter(None, os.environ.get("P4C_INCLUDE", "").split(":"))]
    command = [
        "p4c-barefoot", "--target", "tofino", "--arch", "tna", "-D__TARGET_TOFINO__=1", "-g", "--verbose",
        *(f"-D{name}={value}" for name, value in sizes.items()),
        *(f"-I{directory}" for directory in includes),
        "--p4runtime-force-std-externs", "--p4runtime-files", str(out / "serene.p4info.txtpb"),
        "--top4", "FrontEndLast", "--dump", str(out / "dump"), "-o", str(out), MAIN,
    ]  # fmt: skip
    (out / "dump").mkdir(parents=True)
    began = time.monotonic()
    try:
        # From p4src, so that the output names no path of this machine.
        done = subprocess.run(command, cwd=SOURCES, capture_output=True, text=True, timeout=1800, check=False)
    except subprocess.TimeoutExpired:
        return "no result after 30 minutes", time.monotonic() - began
    took = time.monotonic() - began
    errors = [line for line in done.stderr.splitlines() if "error" in line.lower()]
    return ("" if done.returncode == 0 else (errors or [f"status {done.returncode}"])[0]), took


def main() -> int:
    if sys.argv[1:] == ["--check"]:
        if outdated():
            print("error: p4src changed, p4src/build/tofino did not: run 'make p4-tofino'", file=sys.stderr)
            return 1
        return 0
    for tool, what in TOOLS.items():
        if shutil.which(tool) is None:
            print(f"error: {tool} is not installed ({what}); p4src/build/tofino is as it was", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
