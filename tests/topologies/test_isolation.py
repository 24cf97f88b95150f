"""A process tree that cannot outlive its root, however that ends."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.controller.processes import until
from tests.runs import Marked

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a PID namespace needs root")

# A child in a session of its own, the way daemons hide.
DAEMON = "subprocess.Popen(['sleep', '1000'], start_new_session=True)"

Start = Callable[[str], Marked]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts Python whose ``run_isolated`` calls a function with this body."""
    started: list[Marked] = []

    def begin(body: str) -> Marked:
        code = (
            "import os, signal, subprocess, sys, time\n"
            "from serene.topologies.isolation import run_isolated\n"
            f"def main():\n    {body}\n"
            "sys.exit(run_isolated(main))"
        )
        started.append(Marked([sys.executable, "-c", code], tmp_path / "log"))
        return started[-1]

    yield begin
    for process in started:
        process.end()


@pytest.mark.parametrize(
    ("body", "status"),
    [("return 0", 0), ("return 7", 7), ("sys.exit(2)", 2), ("raise KeyboardInterrupt", 130)],
)
def test_isolated_exit_status_is_the_functions(start: Start, body: str, status: int) -> None:
    assert start(body).wait() == status


def test_isolated_crash_exits_with_its_exception(start: Start) -> None:
    crashed = start("raise ValueError('a defect')")
    assert crashed.wait() == 1
    assert "ValueError: a defect" in crashed.output


def test_isolated_function_sees_only_its_own_processes(start: Start) -> None:
    alone = start("print(sorted(int(name) for name in os.listdir('/proc') if name.isdigit())); return 0")
    assert alone.wait() == 0
    assert alone.output.strip() == "[1]"


def test_isolated_function_has_its_own_mounts(start: Start, tmp_path: Path) -> None:
    mount = f"subprocess.run(['mount', '-t', 'tmpfs', 'tmpfs', {str(tmp_path)!r}])"
    mounted = start(f"{mount}; print(os.path.ismount({str(tmp_path)!r})); return 0")
    assert mounted.wait() == 0
    assert mounted.output.strip() == "True"
    assert not tmp_path.is_mount()


@pytest.mark.parametrize(
    "ending", ["return 0", "raise ValueError", "os.kill(os.getpid(), signal.SIGTERM); signal.pause()"]
)
def test_daemons_end_with_the_isolated_function(start: Start, ending: str) -> None:
    process = start(f"signal.signal(signal.SIGTERM, lambda *_: os._exit(1)); {DAEMON}; {ending}")
    process.wait()
    until(lambda: not process.alive(), "every process has ended")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("victim", ["caller", "first process"])
def test_daemons_end_when_either_process_is_killed(start: Start, victim: str, number: signal.Signals) -> None:
    process = start(f"signal.signal(signal.SIGTERM, lambda *_: os._exit(1)); {DAEMON}; signal.pause(); return 0")
    until(lambda: len(process.alive()) == 3, "caller, first process and daemon are there")
    caller = process.process.pid
    (first,) = map(int, Path(f"/proc/{caller}/task/{caller}/children").read_text().split())
    os.kill(caller if victim == "caller" else first, number)
    process.wait()
    until(lambda: not process.alive(), "every process has ended")
