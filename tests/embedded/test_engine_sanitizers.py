"""A little of ``make fuzz``: attacks on the embedded switch and on a worker, under the compiler's sanitizers."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.embedded.sanitizers import PROGRAMS, ROOT, environment, sanitizer_libraries

COUNT = 2000  # `make fuzz` plays more
PROGRAM_COUNT = 80
SANITIZED = pytest.mark.skipif(not sanitizer_libraries(), reason="needs the C compiler's sanitizer libraries")


def fuzz(*options: str) -> dict[str, dict[str, int]]:
    """Runs the fuzzer in a process of its own, which a finding ends, and returns the counts that it prints."""
    command = [sys.executable, "-m", "tests.embedded.fuzz", *options]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert run.returncode == 0, run.stdout[-500:] + run.stderr[-3000:]
    lines = (line.partition(": ") for line in run.stdout.splitlines())
    return {
        what: {name: int(number) for number, _, name in (item.partition(" ") for item in counts.split(", "))}
        for what, _, counts in lines
    }


@SANITIZED
@pytest.mark.parametrize("traced", [False, True])
def test_mutated_packets_pass_the_sanitizers(traced: bool) -> None:
    count = COUNT // 8 if traced else COUNT
    programs = [name for name in PROGRAMS if not traced or name != "serene_jumbo"]  # it is traced as serene is
    given = ["--sanitize", "--kind", "frames", "--count", str(count), *["--traced"] * traced]
    found = fuzz(*given, *(word for name in programs for word in ("--program", name)))
    assert list(found) == programs
    for counts in found.values():
        assert counts["packets in"] == count and counts["out"] > count // 100


@SANITIZED
def test_mutated_programs_pass_the_sanitizers() -> None:
    counts = fuzz("--sanitize", "--kind", "json", "--count", str(50 * PROGRAM_COUNT))["programs"]
    assert counts["programs"] == PROGRAM_COUNT
    assert min(counts["refused"], counts["read"], counts["run"]) > 1


@SANITIZED
@pytest.mark.parametrize(
    "options",
    [
        ["tests/embedded/test_p4runtime_plain.py", "-k", "[0] or twice"],
        ["tests/embedded/test_engine_tables.py", "-k", "12 or not scan"],
    ],
    ids=["requests", "tables"],
)
def test_table_and_request_tests_pass_the_sanitizers(options: list[str]) -> None:
    """Runs the tests of tables and of the WriteRequest decoder under the sanitizers."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *options]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False, env=environment())
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    assert " passed" in run.stdout


def test_mutated_p4runtime_messages_pass_the_sanitizers() -> None:
    counts = fuzz("--kind", "p4runtime", "--count", str(COUNT))["messages"]
    assert counts["messages"] == COUNT // 10
    assert len(counts) > 6  # different answers


def test_worker_survives_mutated_answers_under_the_sanitizers() -> None:
    """Without them where the compiler has none."""
    counts = fuzz("--kind", "answers", "--count", "3000", *["--sanitize"] * bool(sanitizer_libraries()))["answers"]
    assert counts["exchanged"] > 20, "too few exchanges: this tests nothing"
    assert {"Refused", "SessionLost", "BadWelcome"} <= set(counts)
