"""Packet tests that p4testgen generates: it executes a program symbolically, and solves for packets, table entries and
the packet that comes out."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from serene.process import outputs
from tests.embedded.stf_samples import Sample
from tests.suites.checkouts import BUILT, ROOT, Program, preprocessed

GENERATOR = "p4testgen"
SEED, MOST = 1, 10  # tests of a program
GENERATE_S = 120.0  # then the tests are taken that are already there
SOURCES = ROOT / "p4src"


@dataclass(frozen=True)
class Generated:
    """A program's tests. why_none: why there are none."""

    samples: tuple[Sample, ...]
    why_none: str = ""


def own_programs() -> Iterator[tuple[str, Path, Program]]:
    """Serene's programs: a name, the source, and the committed output of p4c for it."""
    for name in ("serene", "serene_leaf", "serene_root"):
        built = SOURCES / "build" / name
        compiled = Program(built.with_suffix(".json"), built.with_suffix(".p4info.txtpb"))
        yield name, SOURCES / "v1model" / f"{name}.p4", compiled


def generate(suite: str, name: str, source: Path, program: Program, *options: str) -> Generated:
    """Generates a program's tests, once per content. program: what runs them. options: of the compiler within
    p4testgen."""
    into = BUILT / "p4testgen" / name.replace("/", "+").removesuffix(".p4")
    given = f"{_version()}{SEED} {MOST} {GENERATE_S} {options} ".encode() + preprocessed(source, *options)
    key, done = hashlib.sha256(given).hexdigest(), into / "generated.json"
    with suppress(OSError, ValueError):  # not there, or a killed command wrote it in part
        found = json.loads(done.read_bytes())
        if found["key"] == key:
            return Generated(tuple(_samples(suite, name, program, into)), found["why_none"])
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    command = [GENERATOR, "--target", "bmv2", "--arch", "v1model", "--test-backend", "STF", "--seed", str(SEED)]
    command += ["--max-tests", str(MOST), "--track-coverage", "STATEMENTS", "--track-coverage", "TABLE_ENTRIES"]
    command += ["--track-coverage", "ACTIONS", "--out-dir", str(into), *options, str(source)]
    try:
        run = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=GENERATE_S,
            cwd=source.parent,
            check=False,
        )
        output = run.stderr
    except subprocess.TimeoutExpired:
        output = f"error: no test within {GENERATE_S:.0f} s"
    samples = tuple(_samples(suite, name, program, into))
    why_none = "" if samples else _first_error(output)
    outputs.write_text(done, json.dumps({"key": key, "why_none": why_none}))
    return Generated(samples, why_none)


def _samples(suite: str, name: str, program: Program, folder: Path) -> Iterator[Sample]:
    for script in sorted(folder.glob("*.stf"), key=lambda path: int(path.stem.rpartition("_")[2])):
        yield Sample(suite, f"{name} {script.stem.rpartition('_')[2]}", program, script, complete=True)


@cache
def _version() -> str:
    """A digest, as p4testgen names no version."""
    installed = shutil.which(GENERATOR)
    return hashlib.sha256(Path(installed).read_bytes()).hexdigest() if installed is not None else ""


def _first_error(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    found = next((line for line in lines if "rror" in line), lines[-1] if lines else "it says nothing")
    return found.rpartition("rror: ")[2]
