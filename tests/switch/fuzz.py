"""Feeds the embedded switch mutated packets; made for a library built with sanitizers, which end the process.

    python -m tests.switch.fuzz --sanitize --packets 1000000        (make fuzz PACKETS=1000000)

Every program gets the same treatment: a seed's packets as they are, mutated in structure, and noise.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import subprocess
import sys
from pathlib import Path

from serene.switch.build import compiler
from tests.switch.packets import shapes, trial
from tests.switch.serene_job import seeds, start_job
from tests.switch.stf_embedded import EmbeddedTarget

ROOT = Path(__file__).resolve().parents[2]
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O1")
PROGRAMS = {
    "serene": (ROOT / "p4src" / "build" / "serene.json", 320),
    "serene_jumbo": (ROOT / "p4src" / "build" / "serene_jumbo.json", 896),
    "shapes": (ROOT / "tests" / "switch" / "programs" / "shapes.json", 0),
    "probe": (ROOT / "tests" / "switch" / "programs" / "p4rt_probe.json", 0),
}
BATCH = 500


def sanitizer_libraries() -> str:
    """What has to be loaded before Python so that a library built with sanitizers can be; empty if there is none."""
    names = []
    for name in ("libasan.so", "libubsan.so"):
        run = subprocess.run([compiler(), f"-print-file-name={name}"], capture_output=True, text=True, check=False)
        path = run.stdout.strip()
        if "/" not in path or not Path(path).exists():
            return ""
        names.append(path)
    return ":".join(names)


def fuzz(program: str, packets: int, seed: int, flags: tuple[str, ...]) -> int:
    """Sends that many packets; how many came out."""
    json, lanes = PROGRAMS[program]
    rng, came_out = random.Random(f"{program} {seed}"), 0
    with contextlib.closing(EmbeddedTarget(json.read_bytes(), flags)) as target:
        if lanes:
            start_job(target)
        given = seeds(lanes) if lanes else shapes()
        for start in range(0, packets, BATCH):
            for port, packet in trial(rng, given, min(BATCH, packets - start)):
                target.send(port, packet)
            came_out += sum(len(sent) for sent in target.outputs({}).values())
            target.forget()
    return came_out


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--packets", type=int, default=10_000, help="for each program")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--program", choices=PROGRAMS, action="append", help="default: all")
    parser.add_argument("--sanitize", action="store_true", help="with address and undefined-behaviour sanitizers")
    options = parser.parse_args()
    if options.sanitize and "libasan" not in os.environ.get("LD_PRELOAD", ""):
        libraries = sanitizer_libraries()
        if not libraries:
            print("error: the C compiler has no sanitizer libraries (apt install libgcc-12-dev)", file=sys.stderr)
            return 2
        # Python itself leaks on exit, by its own lights.
        environment = {**os.environ, "LD_PRELOAD": libraries, "ASAN_OPTIONS": "detect_leaks=0"}
        command = [sys.executable, "-m", "tests.switch.fuzz", *sys.argv[1:]]
        return subprocess.run(command, env=environment, check=False).returncode
    for program in options.program or PROGRAMS:
        out = fuzz(program, options.packets, options.seed, SANITIZERS if options.sanitize else ())
        print(f"{program}: {options.packets} packets in, {out} out", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
