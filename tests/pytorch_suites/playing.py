"""Runs PyTorch's tests on a backend, and reports how each ended."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.controller.processes import ROOT

TEST_TIMEOUT_S = 300  # PyTorch's own, for a test's ranks
ELSEWHERE = "not nccl and not cuda and not Cuda and not gpu"  # GPUs' own, skipped on a CPU after some seconds each


@dataclass(frozen=True)
class Suite:
    """A file of tests. ranks: of those tests that take any number; 0 where each names its own. choice:
    for pytest's -k. debug: for $TORCH_DISTRIBUTED_DEBUG."""

    name: str
    file: Path
    choice: str
    ranks: int = 0
    debug: str = "OFF"


@dataclass(frozen=True)
class Ended:
    """How a test ended. status: passed, failed or skipped. why: of the latter two, in a line."""

    status: str
    why: str = ""


def shipped(classes: Collection[str], name: str, ranks: int = 0, debug: str = "OFF") -> Suite:
    choice = f"({' or '.join(classes)}) and {ELSEWHERE}"
    return Suite(name, ROOT / "tests/pytorch_suites/shipped.py", choice, ranks, debug)


def play(backend: str, suite: Suite, environment: Mapping[str, str], chosen: Collection[str] = ()) -> dict[str, Ended]:
    """How each test ended, by class and name, as "Distributed.test_gather". environment: for its processes. chosen:
    those to play, all if empty. Raises RuntimeError where nothing ran."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.xml"
        given = {
            **environment,
            "BACKEND": "gloo",
            "PLAYED": backend,
            "WORLD_SIZE": str(suite.ranks or 4),
            "TORCH_DISTRIBUTED_DEBUG": suite.debug,
            "DISTRIBUTED_TESTS_DEFAULT_TIMEOUT": str(TEST_TIMEOUT_S),
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(suite.file.parent), environment.get("PYTHONPATH", "")]),
            "PRELOAD": "tests.pytorch_suites.shipped",
            "PYTHONHASHSEED": "0",  # torchft numbers tests in a set's order, and both backends need the same names
        }
        ids = [f"{suite.file}::{name.replace('.', '::')}" for name in chosen]
        command = [
            *(sys.executable, "-m", "pytest", "-q", "-p", "tests.pytorch_suites.played", "-p", "no:cacheprovider"),
            *("-o", f"timeout={2 * TEST_TIMEOUT_S}", f"--rootdir={suite.file.parent}", f"--junitxml={out}"),
            *(ids or [str(suite.file), "-k", suite.choice]),
        ]
        done = subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, check=False)
        ended = dict(_ended(case) for case in ET.parse(out).iter("testcase")) if out.exists() else {}
        unread = any(name.startswith(".") for name in ended)  # an error of the file's own has no class
        if not ended or unread or set(chosen) - set(ended):
            raise RuntimeError(done.stdout[-2000:] + done.stderr[-2000:])
        return ended


def _ended(case: ET.Element) -> tuple[str, Ended]:
    ended = Ended("passed")
    for child in case:
        if child.tag in ("failure", "error", "skipped"):
            messages = [
                line for line in (child.text or "").splitlines() if "Error" in line and "common_distributed" not in line
            ]
            status = "skipped" if child.tag == "skipped" else "failed"
            ended = Ended(status, (messages or [child.get("message", "")])[-1].removeprefix("E ").strip())
    return f"{case.get('classname', '').rpartition('.')[2]}.{case.get('name', '')}", ended
