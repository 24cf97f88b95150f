"""What tests/conftest.py adds to pytest's output and signal handling."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import ROOT, run
from tests.controller.processes import until

PYTEST = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-c", "/dev/null"]


TEST = """
import subprocess

def test():
    shell = "echo it printed this; echo and that >&2; exec sleep 600"
    subprocess.run(["sh", "-c", shell], capture_output=True, timeout=5)
"""


def test_conftest_reports_output_of_processes_that_do_not_end(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TEST)
    done = run(*PYTEST, tmp_path / "test_it.py")
    assert done.returncode == 1, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    for name, text in (("output", "it printed this"), ("errors", "and that")):
        (heading,) = (number for number, line in enumerate(lines) if f" {name} of a process that did not end " in line)
        assert lines[heading + 1] == text


SWITCHES = """
import pytest

BMV2 = pytest.param("bmv2", marks=pytest.mark.bmv2)

@pytest.mark.parametrize("target", ["embedded", BMV2])
def test_of_both(target):
    assert True

@pytest.mark.parametrize("target", ["embedded", BMV2])
@pytest.mark.parametrize("outcome", ["fails", "skipped"])
def test_that_does_not_always_run(target, outcome):
    if outcome == "skipped" and target == "bmv2":
        pytest.skip("target bmv2 needs simple_switch_grpc")
    assert outcome == "skipped"

@pytest.mark.bmv2
def test_of_bmv2():
    pass

@pytest.mark.parametrize("word", ["embedded_too", "not_bmv2"])
def test_of_neither(word):
    pass

@pytest.fixture
def closed():
    yield
    raise ValueError

def test_that_ran_and_ends_badly(closed):
    pass

@pytest.fixture
def broken():
    raise ValueError

@pytest.mark.bmv2
def test_that_does_not_begin(broken):
    pass

@pytest.mark.skipif(True, reason="needs simple_switch_grpc")
def test_skipped_with_another_wording():
    pass

@pytest.mark.skip(reason="BMv2 cannot")
def test_of_another_reason():
    pass
"""


@pytest.mark.parametrize("processes", [[], ["-n", "2"]], ids=["alone", "several"])
def test_pytest_summary_lists_switches_used_and_skip_reasons(tmp_path: Path, processes: list[str]) -> None:
    """The switches do not run: each test is only marked as one of theirs."""
    folder = tmp_path / "bmv2"
    folder.mkdir()
    (folder / "test_it.py").write_text(SWITCHES)
    (folder / "test_module.py").write_text("import pytest\npytest.importorskip('no_such_module')\ndef test(): pass\n")
    done = run(*PYTEST, *processes, folder)
    lines = done.stdout.splitlines()
    (heading,) = (number for number, line in enumerate(lines) if " switches, and what was skipped " in line)
    assert lines[heading + 1 : -1] == [
        "2 tests ran on each of the two switches, 1 on the embedded one alone, 1 on BMv2 alone; "
        "3 others use the embedded switch or none",
        "2 tests skipped: needs simple_switch_grpc",
        "1 module skipped: could not import 'no_such_module': No module named 'no_such_module'",
        "1 test skipped: BMv2 cannot",
    ], done.stdout + done.stderr
    assert lines[-1].startswith("=") and "2 failed" in lines[-1]


FIXTURE = """
import pathlib, pytest, time
from tests.controller.processes import Process

HERE = pathlib.Path(__file__).parent

@pytest.fixture(scope="module")
def something():
    (HERE / "sleeps.py").write_text("import time; time.sleep(600)")
    process = Process([str(HERE / "sleeps.py")], HERE / "log", warm=True)
    yield process.process.pid
    process.kill()

def test(something):
    (HERE / "part").write_text(str(something))
    (HERE / "part").rename(HERE / "set-up")
    time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])  # SIGINT is pytest's own
def test_signal_to_pytest_still_runs_fixture_teardown(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "test_it.py").write_text(FIXTURE)
    command = [*PYTEST, str(tmp_path / "test_it.py")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True) as tests:
        until(lambda: (tmp_path / "set-up").exists() or tests.poll() is not None, "the test runs")
        os.killpg(tests.pid, number)  # as a terminal does
        try:
            output, _ = tests.communicate(timeout=100)
        finally:
            tests.kill()
    assert tests.returncode == pytest.ExitCode.INTERRUPTED, output
    assert not Path("/proc", (tmp_path / "set-up").read_text()).exists()


NOHUP = """
import os, signal, subprocess, sys, time

def test():
    os.killpg(0, signal.SIGHUP)  # as a terminal does
    started = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    os.kill(started.pid, signal.SIGHUP)
    try:
        assert started.wait(60) == -signal.SIGHUP
    finally:
        started.kill()
"""


@pytest.mark.parametrize("processes", [[], ["-n", "1"]], ids=["alone", "several"])
def test_nohup_pytest_survives_sighup_but_its_children_do_not(tmp_path: Path, processes: list[str]) -> None:
    (tmp_path / "test_it.py").write_text(NOHUP)
    done = run("setsid", "--wait", "env", "--ignore-signal=HUP", *PYTEST, *processes, tmp_path / "test_it.py")
    assert done.returncode == 0, done.stdout + done.stderr
