"""p4c's v1model packet tests on either switch, in a process of their own.

``make p4-suites P4C=~/p4c`` runs them all; p4c-bm2-ss has to be installed.
"""

from __future__ import annotations

import contextlib
import queue
import shutil
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import grpc

from serene.embedded import UnsupportedProgram
from serene.errors import SereneError
from tests.embedded.p4rt_controller import WriteFailed
from tests.embedded.stf import Runner, StfError, StfMismatch, parse
from tests.embedded.stf_embedded import EmbeddedTarget
from tests.suites.apart import Apart, Crashed
from tests.suites.checkouts import COMPILER, QUICK, NotCompiled, Program
from tests.suites.outcomes import Outcomes

# Folders of scripts and of their programs. P4-14 programs are used as translated by p4c, as not every p4c reads P4-14.
SUITES = {"p4_16_samples": "p4_16_samples", "p4_14_samples": "p4_14_samples_outputs"}
ATTEMPTS = 3  # if the switch could not be reached, which says nothing about the sample
UNREACHED = "not reached:"


@dataclass(frozen=True)
class Sample:
    """A program and a packet test. complete: as for ``Runner``."""

    suite: str
    name: str
    program: Program
    script: Path
    complete: bool = False


@dataclass(frozen=True)
class Result:
    suite: str
    name: str
    outcome: str  # pass, refused, fail, or "not v1model"
    reason: str = ""


def why_not(p4c: str | None) -> str:
    """What is missing to run the samples; empty if nothing is."""
    if shutil.which(COMPILER) is None:
        return f"needs {COMPILER}"
    if not p4c:
        return "needs P4C_SOURCE, which names a checkout of p4c"
    if not (Path(p4c) / "testdata" / "p4_16_samples").is_dir():
        return f"{p4c} is no checkout of p4c: it has no testdata/p4_16_samples"
    return ""


def samples(p4c: str | Path) -> Iterator[Sample]:
    """Yields every sample of p4c's that has a packet test."""
    for suite in SUITES:
        for script in sorted((Path(p4c) / "testdata" / suite).glob("*.stf")):
            sample = _sample(script)
            if sample.program.source.exists():
                yield sample


def _sample(script: Path) -> Sample:
    suite = script.parent.name
    return Sample(suite, script.stem, Program(script.parents[1] / SUITES[suite] / f"{script.stem}.p4"), script)


def run_sample(sample: Sample, switch: str) -> Result:
    """Runs a sample's packet test. switch: "serene-switch" or "bmv2"."""
    try:
        built, info = sample.program.compiled()
    except NotCompiled as error:
        return Result(sample.suite, sample.name, "not v1model", str(error))
    assert info is not None
    try:
        statements = parse(sample.script.read_text())
        if switch == "serene-switch":
            with contextlib.closing(EmbeddedTarget(built.read_bytes(), QUICK)) as target:
                Runner(target, sample.complete).run(statements)
        else:
            from tests.embedded.bmv2 import HANGS_S, Bmv2Target, running_bmv2

            with running_bmv2(built, info, HANGS_S) as process:
                Runner(Bmv2Target(process, built), sample.complete).run(statements)
    except UnsupportedProgram as error:
        return Result(sample.suite, sample.name, "refused", str(error))
    except grpc.RpcError as error:
        if isinstance(error, grpc.Call) and error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
            return Result(sample.suite, sample.name, "fail", f"{switch} hangs")
        message = error.details() if isinstance(error, grpc.Call) else error
        return Result(sample.suite, sample.name, "fail", f"{UNREACHED} {switch}: {message}")
    except (StfError, StfMismatch, SereneError, WriteFailed) as error:
        return Result(sample.suite, sample.name, "fail", f"{type(error).__name__}: {error}")
    except (grpc.FutureTimeoutError, AssertionError) as error:  # BMv2 does not start
        return Result(sample.suite, sample.name, "fail", f"{UNREACHED} {switch}: {type(error).__name__} {error}")
    return Result(sample.suite, sample.name, "pass")


def _attempted(apart: Apart, sample: Sample, switch: str) -> Result:
    """A crash is a result as well. If the switch was not reached, the test is tried again."""
    for _ in range(ATTEMPTS):
        try:
            result = apart(run_sample, sample, switch)
        except Crashed as error:
            return Result(sample.suite, sample.name, "fail", str(error))
        if not result.reason.startswith(UNREACHED):
            break
    return result


def run_all(
    wanted: Iterable[Sample], switch: str = "serene-switch", outcomes: Outcomes | None = None, at_a_time: int = 1
) -> list[Result]:
    with contextlib.ExitStack() as stack:
        idle = queue.SimpleQueue[Apart]()
        for _ in range(at_a_time):
            idle.put(stack.enter_context(Apart()))

        def run(sample: Sample) -> Result:
            apart = idle.get()
            try:
                return _attempted(apart, sample, switch)
            finally:
                idle.put(apart)

        def outcome(sample: Sample) -> Result:
            if outcomes is None:
                return run(sample)
            test, script = f"{sample.suite} {sample.name}", sample.script.read_bytes()
            found = outcomes.of("packets", [switch], test, sample.program, lambda: asdict(run(sample)), script)
            return Result(**found)

        return list(stack.enter_context(ThreadPoolExecutor(at_a_time)).map(outcome, wanted))
