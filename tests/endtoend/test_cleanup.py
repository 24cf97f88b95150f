"""Nothing of a run is left when it ends, whatever ended it; and a process that dies is named."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from serene.controller.http.client import ControllerClient
from serene.experiments.network_study.emulated.plan import NETWORKS
from serene.topologies.processes import OwnFolder
from tests.controller.processes import until
from tests.endtoend.stopped import ENDLESS, SLOTS, check_results
from tests.runs import Marked, Run, interfaces

pytestmark = [pytest.mark.mininet, pytest.mark.usefixtures("network")]

StartRun = Callable[..., Run]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[StartRun]:
    """Starts runs. Another test's run would remove what they leave in the machine's folder for temporary files; the
    path of their own is short, for a Unix socket in it."""
    started: list[Run] = []

    def begin(name: str, *options: object, warm: bool = True) -> Run:
        out, log = tmp_path / "runs" / name, tmp_path / f"{name}.log"
        started.append(Run(out, log, *options, environment={"TMPDIR": temporary}, warm=warm))
        return started[-1]

    with tempfile.TemporaryDirectory() as temporary:
        yield begin
        for run in started:
            run.end()


def wait_until_nothing_runs(run: Marked) -> None:
    until(lambda: not run.alive() and not interfaces(), "all processes have ended and all interfaces are gone")


def press_ctrl_c(run: Run) -> None:
    """As a terminal does: to every process of the foreground group."""
    os.killpg(run.process.pid, signal.SIGINT)


def terminate_without_shells(run: Run) -> None:
    """An `mn` that fails kills the shells of all the machine's networks; neither training nor its end needs any."""
    shells = [pid for pid, command in run.alive().items() if "mininet:" in command]
    assert len(shells) >= 3, run.alive()
    for pid in shells:
        os.kill(pid, signal.SIGKILL)
    with ControllerClient("unix:" + socket_of(run)) as client:
        before = client.job(0).workers[0].contributions
        until(lambda: client.job(0).workers[0].contributions > before + SLOTS, "training continues")
    run.process.terminate()


def socket_of(run: Run) -> str:
    found = re.search(r"unix:(\S+)", run.output)
    assert found is not None, run.output
    return found[1]


@pytest.mark.parametrize("stop", [press_ctrl_c, terminate_without_shells])
def test_stopped_run_keeps_its_results(start: StartRun, stop: Callable[[Run], None]) -> None:
    run = start("stopped", *ENDLESS)
    run.until_training(2)
    stop(run)
    assert run.wait() == 130
    wait_until_nothing_runs(run)
    assert list(run.out.parent.iterdir()) == [run.out]
    check_results(run, 2)


def test_repeated_ctrl_c_while_starting_leaves_nothing_behind(start: StartRun) -> None:
    """The first signal ends the run, the others come during the clean-up."""
    run = start("impatient", *ENDLESS, "--racks", 2, warm=False)
    until(lambda: interfaces() or run.process.poll() is not None, "the first interface")
    while run.process.poll() is None:
        press_ctrl_c(run)
    wait_until_nothing_runs(run)
    assert run.process.returncode in (130, -signal.SIGINT), "the last one may come when Python itself ends"
    assert list(run.out.parent.iterdir()) == []
    assert "Traceback" not in run.output


INTERRUPTING = """#!/bin/bash
echo >> {calls}
[[ $(wc -l < {calls}) == 4 ]] && kill -INT $(ps -o ppid= $PPID)
exec {sysctl} "$@"
"""


@pytest.mark.parametrize("which", NETWORKS)
def test_ctrl_c_while_a_study_builds_its_network_cleans_up(which: str, tmp_path: Path) -> None:
    """A node with a link is running a command then, and takes no other command to remove the link."""
    sysctl, calls = tmp_path / "sysctl", tmp_path / "calls"
    sysctl.write_text(INTERRUPTING.format(calls=calls, sysctl=shutil.which("sysctl")))
    sysctl.chmod(0o755)
    command = [sys.executable, "-m", "serene.experiments.network_study.emulated", "--only", which]
    study = Marked(
        [*command, "--out", str(tmp_path / "out")], tmp_path / "log", PATH=f"{tmp_path}:{os.environ['PATH']}"
    )
    try:
        assert study.wait(240) == 130
        assert "Traceback" not in study.output and calls.exists()
        wait_until_nothing_runs(study)
    finally:
        study.end()


def test_sigkill_leaves_nothing_running(start: StartRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder for temporary files stays until the next run makes one. tests/topologies/test_isolation.py kills the
    caller's first process, too."""
    run = start("killed", *ENDLESS)
    run.until_training()
    run.process.kill()
    assert run.wait() != 0
    wait_until_nothing_runs(run)
    assert not run.out.exists()
    socket = Path(socket_of(run))
    assert socket.exists(), "nobody was there to remove it"
    monkeypatch.setattr(tempfile, "tempdir", str(socket.parent.parent))
    OwnFolder().remove()
    assert not socket.parent.exists()


@pytest.mark.parametrize(
    ("options", "victim", "message"),
    [
        (["--no-mininet"], "worker-1:", "worker 1 ended"),
        ([], "--no-p4", "the switch ended"),
        (["--no-mininet"], "up --foreground", "the controller ended"),
    ],
)
def test_process_that_dies_ends_the_run_and_is_named(
    start: StartRun, options: list[str], victim: str, message: str
) -> None:
    run = start("broken", *ENDLESS, *options)
    run.until_training()
    os.kill(run.find(victim), signal.SIGKILL)
    assert run.wait() == 1
    assert f"error: {message}" in run.output
    wait_until_nothing_runs(run)
    assert list(run.out.parent.iterdir()) == []


def test_two_runs_at_once_do_not_interfere(start: StartRun, tmp_path: Path) -> None:
    """Nor do the faults of one reach the other. Their times count from the workers' start, however long the network and
    the controller took: the first HELLO is repeated."""
    faults = tmp_path / "faults.toml"
    faults.write_text('[[packets]]\nkinds = ["HELLO"]\nduplication = 1\nend_s = 0.5\n')
    options = ("--target", "embedded", "--workers", 1, "--steps", 5, "--compute-ms", 0)
    runs = [start("a", *options, "--faults", faults), start("b", *options)]
    assert [run.wait() for run in runs] == [0, 0], "\n\n".join(run.output for run in runs)
    for run in runs:
        assert run.summary()["contributions_applied"] == 5 * SLOTS
    assert " 0 repeated" not in runs[0].summary()["links"] and "links" not in runs[1].summary()
    assert interfaces() == set()
