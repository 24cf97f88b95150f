"""What tests/conftest.py adds to what pytest says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEST = """
import subprocess, sys

def test():
    said = "import sys, time; print('it said this'); print('and that', file=sys.stderr); time.sleep(600)"
    subprocess.run([sys.executable, "-u", "-c", said], capture_output=True, timeout=15)
"""


def test_a_process_that_does_not_end_is_quoted(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TEST)
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-c", "/dev/null", str(tmp_path / "test_it.py")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    for name, text in (("output", "it said this"), ("errors", "and that")):
        (heading,) = (number for number, line in enumerate(lines) if f" {name} of a process that did not end " in line)
        assert lines[heading + 1] == text
