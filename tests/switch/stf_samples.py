"""All of p4c's v1model packet tests on the embedded switch, and the table of the results in docs/engine.md.

    python -m tests.switch.stf_samples --p4c ~/p4c            runs them and prints what did not pass
    python -m tests.switch.stf_samples --p4c ~/p4c --write    ... and writes the table
    python -m tests.switch.stf_samples --p4c ~/p4c --bmv2     ... on simple_switch_grpc too (needs root)

``--p4c`` is a checkout of https://github.com/p4lang/p4c (or the variable P4C_SOURCE); p4c-bm2-ss has to be installed.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from serene.errors import SereneError
from serene.switch import NotBmv2Json, UnsupportedProgram
from tests.switch.stf import Runner, StfError, StfMismatch, parse
from tests.switch.stf_embedded import EmbeddedTarget

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "engine.md"
BEGIN, END = "<!-- stf: begin -->", "<!-- stf: end -->"
CACHE = ROOT / "build" / "stf"
COMPILER = "p4c-bm2-ss"
# Scripts, and where their programs are: P4-14 ones as p4c itself translated them, for not every p4c reads P4-14.
SUITES = {"p4_16_samples": "p4_16_samples", "p4_14_samples": "p4_14_samples_outputs"}
QUICK = ("-O1",)  # these programs see a dozen packets each
OTHER_ARCHITECTURES = re.compile(r"ebpf|ubpf|psa-|pna-")


@dataclass(frozen=True)
class Sample:
    suite: str
    name: str
    source: Path
    script: Path


@dataclass(frozen=True)
class Result:
    suite: str
    name: str
    outcome: str  # pass, refused, fail, or "not v1model"
    reason: str = ""


def why_not(p4c: str | None) -> str:
    """What is missing to run the samples; empty if nothing is."""
    if shutil.which(COMPILER) is None:
        return f"{COMPILER} is not installed"
    if not p4c:
        return "P4C_SOURCE names no checkout of p4c"
    if not (Path(p4c) / "testdata" / "p4_16_samples").is_dir():
        return f"{p4c} is no checkout of p4c: it has no testdata/p4_16_samples"
    return ""


def samples(p4c: str | Path) -> Iterator[Sample]:
    """Every sample with a packet test."""
    for suite in SUITES:
        for script in sorted((Path(p4c) / "testdata" / suite).glob("*.stf")):
            sample = _sample(script)
            if sample.source.exists():
                yield sample


def _sample(script: Path) -> Sample:
    suite = script.parent.name
    return Sample(suite, script.stem, script.parents[1] / SUITES[suite] / f"{script.stem}.p4", script)


@cache
def _compiler_version() -> str:
    return subprocess.run([COMPILER, "--version"], capture_output=True, text=True, check=False).stdout


class NotCompiled(SereneError):
    """p4c refuses the sample for BMv2's v1model."""


def compile_sample(sample: Sample) -> tuple[Path, Path]:
    """(JSON, P4Info) of a sample; compiled once per content. Raises NotCompiled."""
    digest = hashlib.sha256(_compiler_version().encode() + sample.source.read_bytes()).hexdigest()[:16]
    place = CACHE / sample.suite / f"{sample.name}-{digest}"
    built, info, log = (place.with_name(place.name + end) for end in (".json", ".p4info.txtpb", ".log"))
    if not built.exists() and not log.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        scratch = place.with_name(f"{place.name}.{os.getpid()}.json")
        command = [COMPILER, "--target", "bmv2", "--arch", "v1model"]
        command += ["--p4runtime-files", str(info), "-o", str(scratch), str(sample.source)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode or not scratch.exists():
            scratch.unlink(missing_ok=True)
            log.write_text(run.stderr)
        else:
            scratch.replace(built)
    if not built.exists():
        first = next((line for line in log.read_text().splitlines() if "error" in line), "p4c refuses it")
        raise NotCompiled(first.rpartition("error: ")[2])
    return built, info


def run_sample(sample: Sample) -> Result:
    try:
        built, _ = compile_sample(sample)
    except NotCompiled as error:
        return Result(sample.suite, sample.name, "not v1model", str(error))
    try:
        statements = parse(sample.script.read_text())
        target = EmbeddedTarget(built.read_bytes(), QUICK)
        try:
            Runner(target).run(statements)
        finally:
            target.close()
    except UnsupportedProgram as error:
        return Result(sample.suite, sample.name, "refused", str(error))
    except (NotBmv2Json, StfError, StfMismatch, SereneError) as error:
        return Result(sample.suite, sample.name, "fail", f"{type(error).__name__}: {error}")
    return Result(sample.suite, sample.name, "pass")


def _in_child(sample: Sample) -> Result:
    """A crash is a result, too."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.switch.stf_samples", "--one", str(sample.script)],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    if run.returncode:
        reason = f"ended with {run.returncode}: {run.stderr[-300:]}"
        return Result(sample.suite, sample.name, "fail", reason)
    return Result(**json.loads(run.stdout))


def run_all(p4c: str | Path) -> list[Result]:
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(_in_child, samples(p4c)))


def table(results: Sequence[Result], bmv2: dict[str, bool] | None) -> str:
    """Markdown: the counts by suite, and each that is not a pass with its reason."""
    ours = [result for result in results if result.outcome != "not v1model"]
    lines = ["| suite | v1model programs with a packet test | pass | refused by name | fail |", "|---|---|---|---|---|"]
    for suite in SUITES:
        counts = Counter(result.outcome for result in ours if result.suite == suite)
        lines.append(f"| {suite} | {counts.total()} | {counts['pass']} | {counts['refused']} | {counts['fail']} |")
    rest = [result for result in ours if result.outcome != "pass"]
    if rest:
        lines += ["", "| not a pass | result | reason |", "|---|---|---|"]
        lines += [f"| {result.suite}/{result.name} | {result.outcome} | {result.reason} |" for result in rest]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="stf_samples", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--p4c", default=os.environ.get("P4C_SOURCE"), help="a checkout of p4c (default: $P4C_SOURCE)")
    parser.add_argument("--write", action="store_true", help="write the table into docs/engine.md")
    parser.add_argument("--one", type=Path, metavar="SCRIPT", help="run one script; its result as JSON")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(asdict(run_sample(_sample(options.one)))))
        return 0
    missing = why_not(options.p4c)
    if missing:
        print(f"error: {missing}", file=sys.stderr)
        return 2
    results = run_all(options.p4c)
    print(table(results, None))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
