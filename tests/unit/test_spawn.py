"""Programs started in a foreign folder run our code, and none of that folder's."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from serene.experiments.run import forked
from serene.process.spawn import module
from tests import commands
from tests.commands import ROOT
from tests.ports import some_port

OURS = ("controller", "serene", "workers", "topologies", "experiments")
OTHERS = ("json", "typing", "numpy", "runpy", "logging", "uvicorn", "mininet", "sitecustomize")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder whose every module records that it was run."""
    folder = tmp_path / "hostile"
    source = (
        f"open({str(tmp_path / 'executed')!r}, 'a').write(__name__ + '\\n')\nraise SystemExit('run from the folder')\n"
    )
    for name in OURS:
        (folder / name).mkdir(parents=True)
        for file in ("__init__.py", "__main__.py", "cli.py", "train.py"):
            (folder / name / file).write_text(source)
    for name in OTHERS:
        (folder / f"{name}.py").write_text(source)
    return folder


def run(hostile: Path, command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    done = commands.run(*command, folder=hostile, environment=environment)
    executed = hostile.parent / "executed"
    assert not executed.exists(), f"it ran {executed.read_text().split()}"
    return done


def script(name: str) -> str:
    return str(Path(sys.executable).parent / name)


def test_hostile_folder_breaks_a_plain_python_module_start(hostile: Path) -> None:
    with pytest.raises(AssertionError, match="it ran"):
        run(hostile, [sys.executable, "-m", "serene.controller"])


def test_serenectl_up_ignores_modules_in_the_working_directory(hostile: Path, tmp_path: Path) -> None:
    """The daemon in the background must come as far as the search for its switch."""
    nowhere, http = f"127.0.0.1:{some_port()}", f"127.0.0.1:{some_port()}"
    command = [script("serenectl"), "up", "--switch", nowhere, "--http", http, "--wait", "0.2"]
    done = run(hostile, command, XDG_RUNTIME_DIR=str(tmp_path))
    assert done.returncode == 1
    assert f"no P4Runtime switch answered at {nowhere}" in done.stderr
    assert "--foreground" not in done.stderr


@pytest.mark.parametrize(
    ("command", "succeeds", "message"),
    [
        ([script("serene-switch"), "--no-p4", "-i", "1@nowhere"], False, "nowhere"),
        (module("serene.controller", "--help"), True, "serenectl"),
        (module("serene.workers.train", "--help"), True, "usage: "),
        (module("serene.faults.shim", "/nowhere.toml", "0:a:b"), False, "nowhere"),
        (module("serene.experiments.performance.hosts"), False, ""),
        (module("serene.experiments.run", "--help"), True, "usage: "),
    ],
    ids=["serene-switch", "controller", "worker", "shim", "hosts of a measurement", "run"],
)
def test_programs_ignore_modules_in_the_working_directory(
    hostile: Path, command: list[str], succeeds: bool, message: str
) -> None:
    done = run(hostile, command)
    assert (done.returncode == 0) == succeeds, done.stderr
    assert message in done.stdout + done.stderr
    assert "run from the folder" not in done.stderr


def test_our_code_never_starts_python_dash_m_directly() -> None:
    """`python -m` searches the current folder first."""
    for package in OURS:
        for file in (ROOT / package).rglob("*.py"):
            assert not re.search(r"executable,\s*\"-m\"", file.read_text()), file


pytest.importorskip("torch")


@pytest.mark.filterwarnings("error::RuntimeWarning")  # which runpy gives, and the child inherits
def test_forked_worker_runs_a_module_the_parent_has_imported(tmp_path: Path) -> None:
    import serene.workers.train  # noqa: F401 # as `forked.prepare` does

    with (tmp_path / "log").open("wb") as log:
        process = forked.start("worker", module("serene.workers.train", "--help"), log, {})
    assert process.wait() == 0
    assert "usage" in (tmp_path / "log").read_text().lower()


def test_worker_logs_why_it_cannot_enter_its_host(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log:
        process = forked.start("worker", module("serene.workers.train", "--help"), log, {}, host=2**31 - 1)
    assert process.wait() == 1
    assert "No such file or directory: '/proc/2147483647/ns/net'" in (tmp_path / "log").read_text()
