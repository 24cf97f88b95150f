"""Our commands end quietly when they are interrupted before they have begun."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

INTERRUPTED = """
import os, runpy, signal, sys

class Interrupt:
    def find_spec(self, name, path, target=None):
        if name == needs:
            os.kill(os.getpid(), signal.SIGINT)

module, needs = sys.argv.pop(1), sys.argv.pop(1)
sys.meta_path.insert(0, Interrupt())
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""


def interrupted(module: str, needs: str, *, ignored: bool = False) -> subprocess.CompletedProcess[str]:
    """Runs a module that is interrupted when it imports what it needs."""
    how = ["env", "--ignore-signal=INT"] if ignored else ["env", "--default-signal=INT"]
    return subprocess.run(
        [*how, sys.executable, "-c", INTERRUPTED, module, needs],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.mark.parametrize(
    ("module", "needs"),
    [("controller", "httpx"), ("experiments.run", "numpy"), ("serene.switch_command", "grpc")],
    ids=["serenectl", "experiments.run", "serene-switch"],
)
def test_an_interrupt_while_a_command_is_imported(module: str, needs: str) -> None:
    ended = interrupted(module, needs)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_who_ignores_interrupts_goes_on() -> None:
    ended = interrupted("serene.switch_command", "grpc", ignored=True)
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: give a program"), "it has come as far as its command line"


def test_a_package_of_others_does_not_hide_what_the_switch_needs(tmp_path: Path) -> None:
    """One called google, which protobuf's modules lie in, too."""
    (tmp_path / "google").mkdir()
    (tmp_path / "google" / "__init__.py").touch()
    command = Path(sys.executable).with_name("serene-switch")
    ended = subprocess.run(
        [command, "--version"],
        env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
