"""Plays PyTorch's tests on a backend, and says how each ended."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.controller.processes import ROOT

SUITE = "tests/pytorch_suites/shipped.py"
TEST_TIMEOUT_S = 120
ELSEWHERE = "not nccl and not cuda and not Cuda and not gpu"  # GPUs' own, skipped on a CPU after some seconds each


@dataclass(frozen=True)
class Ended:
    """How a test ended. status: passed, failed or skipped. why: of the latter two, the first line."""

    status: str
    why: str = ""


def play(
    backend: str, ranks: int, environment: Mapping[str, str], chosen: Sequence[str] = (), *, debug: str = "OFF"
) -> dict[str, Ended]:
    """How each test ended, by name. environment: for its processes. chosen: the names, all if empty. debug: for
    $TORCH_DISTRIBUTED_DEBUG. Raises RuntimeError where nothing ran."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.xml"
        given = {
            **environment,
            "BACKEND": backend,
            "WORLD_SIZE": str(ranks),
            "TORCH_DISTRIBUTED_DEBUG": debug,
            "DISTRIBUTED_TESTS_DEFAULT_TIMEOUT": str(TEST_TIMEOUT_S),
        }
        command = [sys.executable, "-m", "pytest", SUITE, "-q", "-p", "no:cacheprovider", f"--junitxml={out}"]
        command += ["-k", " or ".join(chosen) if chosen else ELSEWHERE]
        done = subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, check=False)
        if not out.exists():
            raise RuntimeError(done.stdout[-2000:] + done.stderr[-2000:])
        results = {}
        for case in ET.parse(out).iter("testcase"):
            ended = Ended("passed")
            for child in case:
                if child.tag in ("failure", "error", "skipped"):
                    status = "skipped" if child.tag == "skipped" else "failed"
                    said = [line for line in (child.text or "").splitlines() if "Error" in line]
                    ended = Ended(status, (said or [child.get("message", "")])[-1].strip())
            results[case.get("name", "")] = ended
        return {name: ended for name, ended in results.items() if not chosen or name in chosen}
