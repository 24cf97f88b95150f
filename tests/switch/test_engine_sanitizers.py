"""The generated C under the compiler's address and undefined-behaviour sanitizers, fed with mutated packets."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.switch.sanitizers import PROGRAMS, ROOT, sanitizer_libraries

PACKETS = 4000


@pytest.mark.parametrize("program", PROGRAMS)
def test_sanitizers_find_nothing(program: str) -> None:
    if not sanitizer_libraries():
        pytest.skip("the C compiler has no sanitizer libraries")
    command = [sys.executable, "-m", "tests.switch.fuzz", "--sanitize", "--program", program, "--packets", str(PACKETS)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    packets, out = (int(word) for word in run.stdout.split() if word.isdigit())
    assert packets == PACKETS
    assert out > 0, "nothing came out: this tests nothing"
