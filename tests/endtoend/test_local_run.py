"""Without root and Mininet: a run on loopback leaves nothing either, whatever ends it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controller.processes import until
from tests.runs import Run, missing


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """An endless one."""
    lacking = missing(mininet=False)
    if lacking:
        pytest.skip(f"a local run needs {lacking}")
    options = ("--no-mininet", "--workers", 2, "--steps", 100_000, "--compute-ms", 20)
    training = Run(tmp_path / "runs" / "local", tmp_path / "log", *options)
    yield training
    training.end()


def test_ctrl_c(run: Run) -> None:
    run.until_training()
    os.killpg(run.process.pid, signal.SIGINT)  # as a terminal does: to every process of the foreground group
    assert run.wait(30) == 130
    until(lambda: not run.alive(), "every process has ended", 20)
    assert list(run.out.parent.iterdir()) == []
    assert "Traceback" not in run.output


def test_sigkill(run: Run) -> None:
    run.until_training()
    run.process.kill()
    run.wait(30)
    until(lambda: not run.alive(), "every process has ended", 20)
    assert not run.out.exists()
