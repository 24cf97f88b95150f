"""Set-up uses the Python that the user names, make's targets use the environment's, and each package has one pin for
every Python."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.unit.makes import ROOT, make


@pytest.mark.parametrize("target", ["run-mininet", "run-local", "test", "bench"])
def test_make_targets_run_venv_python_despite_python_setting(target: str) -> None:
    for done in (make(target, PYTHON="/nowhere/python"), make(target, "PYTHON=/nowhere/python")):
        assert done.returncode == 0, done.stderr
        assert ".venv/bin/python -m " in done.stdout and "/nowhere/python" not in done.stdout


def test_make_setup_exports_the_python_setting() -> None:
    """For make, a variable on the command line replaces one of the environment."""
    rule = "--eval=told: ; @printenv PYTHON"
    for arguments, environment in ((["PYTHON=here"], {}), ([], {"PYTHON": "here"})):
        done = subprocess.run(
            ["make", "--no-print-directory", rule, "told", *arguments],
            cwd=ROOT, capture_output=True, text=True, timeout=240, check=False, env={**os.environ, **environment},
        )  # fmt: skip
        assert done.stdout == "here\n", done.stderr


OLD = 'case "$2" in *print*) echo 3.9;; *) exit 1;; esac'  # what set-up asks for, and whether that is enough


@pytest.mark.parametrize(
    ("script", "said"), [(None, "is no Python"), ("exit 0", "is no Python"), (OLD, "is Python 3.9")]
)
def test_setup_refuses_an_unusable_interpreter_before_installing(script: str | None, said: str, tmp_path: Path) -> None:
    python = tmp_path / "a python"
    if script is not None:
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o755)
    done = subprocess.run(
        ["scripts/setup"], cwd=ROOT, capture_output=True, text=True, timeout=240, check=False,
        env={**os.environ, "PYTHON": str(python)},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert f"error: PYTHON={python} {said}: expected Python 3.10 or later" in done.stderr


@pytest.mark.parametrize("version", ["3.10", "3.11", "3.12", "3.13"])
def test_constraints_pin_each_package_once_for_every_python(version: str) -> None:
    lines = [line.partition("#")[0].strip() for line in (ROOT / "constraints.txt").read_text().splitlines()]
    pins = [Requirement(line) for line in lines if line]
    there = [pin.name for pin in pins if pin.marker is None or pin.marker.evaluate({"python_version": version})]
    assert Counter(there) == Counter({pin.name for pin in pins})
