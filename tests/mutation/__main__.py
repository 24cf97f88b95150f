"""Mutation tests of the data plane: `make mutants` changes the compiled programs, one place at a time.

The data plane's tests are run on each mutant, quick ones first, until one fails, which has killed the mutant. A mutant
that no test kills is either equivalent to the program, and `mutants.py` says why, or a test is missing.
"""

from __future__ import annotations

from serene.process.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from serene.arguments import Parser, command, whole
from serene.embedded import Switch
from serene.errors import SereneError
from serene.process import outputs
from serene.program import Program
from tests.mutation import tofino, v1model
from tests.mutation.mutants import Mutant, drawn, why_equivalent
from tests.programs import LEAF_VARIABLE, P4SRC, ROOT_VARIABLE, TOFINO_VARIABLE, V1MODEL_VARIABLE
from tests.tofino.machine import Machine
from tests.tofino.p4text import CannotRead, parse

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = Path("build/mutants.json")
PATIENCE_S = 1800.0  # for all tests on one mutant
TEST_PATIENCE_S = 300  # for one test; some mutants never answer


@dataclass(frozen=True)
class Target:
    """A compiled program, how it is mutated, and the tests that should notice, quick ones first. variable: of the
    environment, by which tests take another program."""

    path: Path
    mutants: Callable[[str, int], Iterator[Mutant]]
    variable: str
    tests: tuple[str, ...]
    works: Callable[[Path], bool]  # whether a program can be loaded at all


def _v1model_works(path: Path) -> bool:
    try:
        Switch.load(path).close()
    except SereneError:
        return False
    return True


def _tofino_works(path: Path) -> bool:
    try:
        Machine(parse(path.read_text()), 0, 0)
    except CannotRead:
        return False
    return True


def _tests(folder: str, *names: str) -> tuple[str, ...]:
    return tuple(f"tests/{folder}/test_{name}.py" for name in names)


TARGETS = {
    "v1model": Target(
        Program.load().config_path,
        v1model.mutants,
        V1MODEL_VARIABLE,
        _tests("dataplane", "protocol", "forwarding", "admission", "conformance", "properties"),
        _v1model_works,
    ),
    "tofino": Target(
        P4SRC / "build" / "tofino" / "serene.p4",
        tofino.mutants,
        TOFINO_VARIABLE,
        _tests("tofino", "dataplane", "loop", "agreement", "stateful"),
        _tofino_works,
    ),
    # The programs of a tree. What they share with serene.p4 is mutated there.
    "leaf": Target(
        Program.tree()[0].config_path,
        partial(v1model.mutants, name="leaf", parts="leaf"),
        LEAF_VARIABLE,
        _tests("tree", "conformance", "properties"),
        _v1model_works,
    ),
    "root": Target(
        Program.tree()[1].config_path,
        partial(v1model.mutants, name="root", parts="root"),
        ROOT_VARIABLE,
        _tests("tree", "conformance", "properties"),
        _v1model_works,
    ),
}


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant. killed_by: the test that failed; empty if it survived. equivalent: why it has to
    survive; empty if nobody has given a reason."""

    mutant: Mutant
    killed_by: str
    seconds: float
    equivalent: str = ""

    def as_json(self) -> dict[str, object]:
        mutant = self.mutant
        return {
            "program": mutant.program,
            "part": mutant.part,
            "operator": mutant.operator,
            "place": mutant.place,
            "killed_by": self.killed_by or None,
            "equivalent": self.equivalent or None,
            "seconds": round(self.seconds, 1),
        }


def judge(mutant: Mutant) -> Verdict | None:
    """Runs the tests on a mutant; None if it cannot be loaded."""
    target = TARGETS[mutant.program]
    with tempfile.TemporaryDirectory(prefix="serene-mutant-") as directory:
        path = Path(directory, target.path.name)
        path.write_text(mutant.text())
        p4info = target.path.with_suffix(".p4info.txtpb")
        shutil.copy(p4info, directory)
        if not target.works(path):
            return None
        began = time.monotonic()
        killed_by = _first_failure(target, {**os.environ, target.variable: str(path)})
        took = time.monotonic() - began
    return Verdict(mutant, killed_by, took, "" if killed_by else why_equivalent(mutant))


def _first_failure(target: Target, environment: dict[str, str]) -> str:
    """The test that fails first; empty if all pass."""
    options = f"-x -q --tb=no -rfE -p no:cacheprovider --hypothesis-profile=first-failure --timeout={TEST_PATIENCE_S}"
    command = [sys.executable, "-m", "pytest", *options.split(), "-m", "not bmv2", *target.tests]
    try:
        run = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
    except subprocess.TimeoutExpired:
        return "(the tests did not end)"
    if run.returncode == 0:
        return ""
    failed = re.search(r"^(?:FAILED|ERROR) (\S+?\.py(?:::.*?)?)(?: - .*)?$", run.stdout, re.MULTILINE)
    if failed:
        return failed[1].removeprefix("tests/")
    if run.returncode < 0:
        return f"(the switch crashed: signal {-run.returncode})"
    raise SereneError(f"pytest ended with status {run.returncode}:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")


def judged(name: str, count: int, seed: int, processes: int) -> Iterator[Verdict]:
    """Judges so many mutants of a program, as the seed draws them. Mutants that cannot be loaded are left out. Raises
    SereneError."""
    target = TARGETS[name]
    if not count:
        return
    intact = _first_failure(target, dict(os.environ))
    if intact:
        raise SereneError(f"{intact} fails on the unchanged program: mend that first")
    candidates = drawn(target.mutants(target.path.read_text(), seed), seed)
    with ThreadPoolExecutor(processes) as pool:
        wanted = count
        while wanted:
            some = list(itertools.islice(candidates, wanted))
            if not some:
                raise SereneError(f"{name} has fewer than {count} mutants that can be loaded")
            for verdict in pool.map(judge, some):
                if verdict is not None:
                    wanted -= 1
                    yield verdict


def table(verdicts: list[Verdict]) -> Table:
    shown = Table(box=None, pad_edge=False)
    for heading in ("program", "part", "operator", "changed", "killed by"):
        shown.add_column(heading, overflow="fold")
    for verdict in verdicts:
        mutant = verdict.mutant
        fate = verdict.killed_by or (f"survives: {verdict.equivalent}" if verdict.equivalent else "SURVIVES")
        shown.add_row(*(escape(text) for text in (mutant.program, mutant.part, mutant.operator, mutant.place, fate)))
    return shown


def _parser() -> Parser:
    parser = Parser("Mutants of the data plane, and which tests kill them.")
    parser.add_argument("--v1model", type=whole(0), default=64, help="mutants of p4c's JSON (default 64)")
    parser.add_argument("--tofino", type=whole(0), default=32, help="mutants of the TNA text (default 32)")
    parser.add_argument("--leaf", type=whole(0), default=0, help="mutants of a leaf's JSON (default 0)")
    parser.add_argument("--root", type=whole(0), default=0, help="mutants of a root's JSON (default 0)")
    parser.add_argument("--seed", type=whole(0), default=1, help="random seed")
    parser.add_argument("--processes", type=whole(1), default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--out", type=Path, default=OUTPUT, help=f"the verdicts as JSON (default {OUTPUT})")
    return parser


@command
def main() -> int:
    options = _parser().parse_args()
    console = Console(width=None if sys.stdout.isatty() else 240, highlight=False)
    began, verdicts = time.monotonic(), []
    outputs.check_file(options.out, outputs.MB)
    with tempfile.TemporaryDirectory(prefix="serene-mutants-") as cache:
        os.environ["XDG_CACHE_HOME"] = cache  # compiled mutants are not needed again
        for name in TARGETS:
            count: int = getattr(options, name)
            for verdict in judged(name, count, options.seed, options.processes):
                verdicts.append(verdict)
                mutant = verdict.mutant
                fate = verdict.killed_by or verdict.equivalent or "SURVIVES"
                what = f"{mutant.program} {mutant.part}, {mutant.operator}: {mutant.place}"
                print(f"{what}: {fate}", file=sys.stderr, flush=True)
    console.print(table(verdicts))
    survivors = [verdict for verdict in verdicts if not verdict.killed_by]
    unexplained = [verdict for verdict in survivors if not verdict.equivalent]
    console.print(
        f"{len(verdicts)} mutants in {time.monotonic() - began:.0f} s: {len(verdicts) - len(survivors)} killed, "
        f"{len(survivors) - len(unexplained)} equivalent, {len(unexplained)} survived"
    )
    outputs.write_text(options.out, json.dumps([verdict.as_json() for verdict in verdicts], indent=2) + "\n")
    return int(bool(unexplained))


if __name__ == "__main__":
    raise SystemExit(ended(main))
