"""Commands that a test runs to their end: as processes, and by their ``main`` in the test's own process."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

ROOT = Path(__file__).resolve().parents[1]


Environment = Mapping[str, str | None]  # further variables; None for those that a program must not have


def run(
    *command: object, folder: Path = ROOT, environment: Environment = MappingProxyType({}), timeout: float = 250
) -> subprocess.CompletedProcess[str]:
    """Runs a program in the folder, and captures what it prints."""
    given = {name: value for name, value in {**os.environ, **environment}.items() if value is not None}
    return subprocess.run(
        [str(word) for word in command], cwd=folder, env=given, capture_output=True, text=True, timeout=timeout,
        check=False,
    )  # fmt: skip


def output(*command: object, folder: Path = ROOT, environment: Environment = MappingProxyType({})) -> str:
    """What such a program prints on standard output. It has to succeed."""
    done = run(*command, folder=folder, environment=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def called(main: Callable[[], int | None], *arguments: object) -> subprocess.CompletedProcess[str]:
    """Calls a command's ``main`` with these arguments, as its process would: with its exit status and output."""
    words, out, errors = [str(word) for word in arguments], io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(errors),
    ):
        patch.setattr("sys.argv", ["command", *words])
        try:
            status = int(main() or 0)
        except SystemExit as end:  # the argument parser exits
            status = int(end.code or 0)
    return subprocess.CompletedProcess(words, status, out.getvalue(), errors.getvalue())
