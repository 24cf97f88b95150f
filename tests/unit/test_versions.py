"""Every installed command prints its version."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from serene.distribution import version


@pytest.mark.parametrize("command", ["serenectl", "serene-netstudy", "serene-shim", "serene-switch"])
def test_installed_commands_print_their_version(command: str) -> None:
    said = subprocess.run(
        [Path(sys.executable).with_name(command), "--version"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.split()[-1] == version()
