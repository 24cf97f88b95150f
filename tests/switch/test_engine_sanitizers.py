"""A little of ``make fuzz``: the embedded switch under attack, its C code under the compiler's sanitizers."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.switch.sanitizers import PROGRAMS, ROOT, environment, sanitizer_libraries

COUNT = 4000
PROGRAM_COUNT = 120


def fuzz(*options: str) -> dict[str, int]:
    """Runs it in a process of its own, which a finding ends; the counts that it prints."""
    command = [sys.executable, "-m", "tests.switch.fuzz", *options]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert run.returncode == 0, run.stdout[-500:] + run.stderr[-3000:]
    numbers = run.stdout.partition(": ")[2].strip().split(", ")
    return {name: int(number) for number, _, name in (item.partition(" ") for item in numbers)}


@pytest.mark.parametrize("program", PROGRAMS)
def test_packets(program: str) -> None:
    if not sanitizer_libraries():
        pytest.skip("the C compiler has no sanitizer libraries")
    counts = fuzz("--sanitize", "--kind", "frames", "--program", program, "--count", str(COUNT))
    assert counts["packets in"] == COUNT and counts["out"] > COUNT // 100


@pytest.mark.parametrize("program", PROGRAMS)
def test_traced_packets(program: str) -> None:
    if not sanitizer_libraries():
        pytest.skip("the C compiler has no sanitizer libraries")
    counts = fuzz("--sanitize", "--kind", "frames", "--program", program, "--count", str(COUNT // 8), "--traced")
    assert counts["packets in"] == COUNT // 8


def test_programs() -> None:
    if not sanitizer_libraries():
        pytest.skip("the C compiler has no sanitizer libraries")
    counts = fuzz("--sanitize", "--kind", "json", "--count", str(50 * PROGRAM_COUNT))
    assert counts["programs"] == PROGRAM_COUNT
    assert min(counts["refused"], counts["read"], counts["run"]) > 1


@pytest.mark.parametrize("tests", ["test_p4runtime_plain.py", "test_engine_tables.py"])
def test_tables_and_requests(tests: str) -> None:
    """The tests that give tables and the decoder of WriteRequests their worst, with the sanitizers."""
    if not sanitizer_libraries():
        pytest.skip("the C compiler has no sanitizer libraries")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"tests/switch/{tests}"]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False, env=environment())
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]


def test_messages() -> None:
    counts = fuzz("--kind", "p4runtime", "--count", str(2 * COUNT))
    assert counts["messages"] == COUNT // 5
    assert len(counts) > 6  # different answers
