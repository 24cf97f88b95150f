"""Runs on loopback, without root and Mininet, leave nothing behind, whatever ends them."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from serene.controller.http.client import ControllerClient
from serene.experiments.run import network
from serene.experiments.run.cli import _settings, parser
from serene.experiments.run.network import LocalNetwork, NetworkError
from serene.program import BUILD
from serene.strategy import SSP
from serene.topologies.processes import free_ports
from tests import disks
from tests.controller.processes import until
from tests.endtoend.stopped import COMPUTE_MS, ENDLESS, WORKERS, check_results
from tests.runs import Run, missing


@pytest.fixture(scope="module", autouse=True)
def _possible() -> None:
    if lacking := missing(mininet=False):
        pytest.skip(f"a local run needs {lacking}")


def start(folder: Path, *options: object, **more: Any) -> Run:
    """A local run of two workers in ``folder``, which the caller ends."""
    return Run(folder / "runs" / "local", folder / "log", "--no-mininet", "--workers", WORKERS, *options, **more)


def preloading(folder: Path, code: str) -> dict[str, str]:
    """The environment of a process whose calls of libc's functions go to those that ``code``, in C, defines."""
    library = folder / "preloaded.so"
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)]
    subprocess.run(command, input=code, text=True, check=True)
    return {"LD_PRELOAD": str(library)}


CLOCK = """
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long ahead_s(void) {
    long seconds = 0;
    FILE *file = fopen(getenv("AHEAD"), "re");
    if (file != NULL && fscanf(file, "%ld", &seconds) != 1) seconds = 0;
    if (file != NULL) fclose(file);
    return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int status = syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME) now->tv_sec += ahead_s();
    return status;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec found;
    int status = clock_gettime(CLOCK_REALTIME, &found);
    *now = (struct timeval){found.tv_sec, found.tv_nsec / 1000};
    return status;
}

time_t time(time_t *now) {
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    if (now != NULL) *now = found.tv_sec;
    return found.tv_sec;
}
"""


@pytest.fixture(scope="module")
def hung_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Run, float]]:
    """A run and the seconds that it took. It trains through a program of the user's own until its terminal hangs up.
    Meanwhile the machine's clock is changed for all of its processes: a library preloaded before libc returns the
    time. Both the shell and the kernel send SIGHUP, so a run may receive it twice."""
    folder = tmp_path_factory.mktemp("hung-up")
    for kind in ("json", "p4info.txtpb"):
        shutil.copy(BUILD / f"serene.{kind}", folder / f"mine.{kind}")
    ahead = folder / "ahead"
    ahead.write_text("0")
    environment = {**preloading(folder, CLOCK), "AHEAD": str(ahead)}
    began = time.monotonic()
    run = start(folder, *ENDLESS, "--program", folder / "mine.json", warm=False, environment=environment)
    try:
        for step, hours in ((3, 24), (6, -1)):
            url = run.until_training(step)
            ahead.write_text(f"{3600 * hours}")
            with ControllerClient(url) as controller:
                controller.set_strategy(0, SSP(step))
        run.until_training(9)
        for _ in range(2):
            os.killpg(run.process.pid, signal.SIGHUP)
        run.wait()
        yield run, time.monotonic() - began
    finally:
        run.end()


def test_hangup_ends_a_local_run_and_keeps_its_results(hung_up: tuple[Run, float]) -> None:
    run, _ = hung_up
    assert run.wait() == 130
    until(lambda: not run.alive(), "every process has ended")
    assert list(run.out.parent.iterdir()) == [run.out]
    check_results(run, 9, program="mine")


def test_changing_the_clock_changes_no_measured_time(hung_up: tuple[Run, float]) -> None:
    run, took_s = hung_up
    summary = run.summary()
    assert 9 * COMPUTE_MS / 1e3 <= summary["wall_s"] < took_s
    assert all(t is None or 0 < t < took_s for t in summary["seconds_to_accuracy"].values())
    assert [0 < change["t"] < took_s for change in summary["changes"][1:]] == [True, True]
    for worker in range(WORKERS):
        times = [float(row["t_s"]) for row in run.rows(worker)]
        assert times == sorted(times) and len(times) >= 9


# prctl with 15, PR_SET_NAME, is how the run names a process that it has forked, before that does anything else.
STOPPING = """
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int prctl(int option, ...) {
    va_list given;
    va_start(given, option);
    char *name = va_arg(given, char *);
    va_end(given);
    int status = syscall(SYS_prctl, option, name, 0, 0, 0);
    if (option == 15 && strcmp(name, "worker-1") == 0) raise(SIGSTOP);
    return status;
}
"""


def is_stopped(run: Run, name: str) -> bool:
    """Whether the run has a process of this name which a signal has stopped."""
    found = [pid for pid, command in run.alive().items() if name in command]
    return any(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T" for pid in found)


def test_run_stopped_before_training_keeps_no_results(tmp_path: Path) -> None:
    """Worker 1 does not get as far as to join the job."""
    run = start(tmp_path, *ENDLESS, warm=False, environment=preloading(tmp_path, STOPPING))
    try:
        until(lambda: "live page" in run.output and is_stopped(run, "worker-1:"), "worker 1 is stopped")
        run.process.send_signal(signal.SIGINT)
        assert run.wait() == 130
        assert run.output.rstrip().endswith("stopped; no results were kept")
        until(lambda: not run.alive(), "every process has ended")
        assert list(run.out.parent.iterdir()) == []
    finally:
        run.end()


def test_other_program_at_the_controllers_port_is_detected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It took the port between the choice of the port and its use."""
    settings = _settings(parser().parse_args(["--no-mininet", "--workers", "1", "--out", str(tmp_path / "out")]))
    with socket.create_server(("127.0.0.1", 0)) as faster:
        taken = faster.getsockname()[1]

        def chosen(*preferred: int, kind: socket.SocketKind = socket.SOCK_STREAM) -> list[int]:
            found = free_ports(*preferred, kind=kind)
            return [taken if wanted == 8559 else port for wanted, port in zip(preferred, found, strict=True)]

        monkeypatch.setattr(network, "free_ports", chosen)
        with pytest.raises(NetworkError, match="controller ended"), LocalNetwork(settings, tmp_path):
            pass


EVENTS = """
[[events]]
iteration = 2
action = "restart switch"
seconds = 0.1

[[events]]
iteration = 2
action = "restart switch"
seconds = 0.1

[[events]]
iteration = 4
action = "restart worker"
worker = 1

[[events]]
iteration = 6
action = "restart worker"
worker = 1

[[events]]
iteration = 8
action = "restart controller"
"""


def test_fault_events_count_a_workers_own_steps(tmp_path: Path) -> None:
    """Not the steps of a session, because the switch's restart begins another one. A worker that is killed twice does
    as many steps as the others, and an event due while its process is away waits until it has returned. The steps after
    the last event last for seconds: a run that ends earlier does not play it."""
    faults, steps = tmp_path / "faults.toml", 40
    faults.write_text(EVENTS)
    run = start(tmp_path, "--steps", steps, "--compute-ms", 100, "--faults", faults)
    try:
        assert run.wait(240) == 0, run.output
    finally:
        run.end()
    assert "not played" not in run.output and ": the sums agree" in run.output
    played = run.summary()["events"]
    assert [event["event"].partition(" at")[0] for event in played] == [
        "restart switch", "restart switch", "restart worker 1", "restart worker 1", "restart controller",
    ]  # fmt: skip
    rows = [[float(row["t_s"]) for row in run.rows(worker)] for worker in range(WORKERS)]
    for event, iteration in zip(played, (2, 2, 4, 6, 8), strict=True):
        assert sum(t <= event["t"] for t in rows[1]) >= iteration, event
    # One whose answer was lost with a session is not done again.
    assert all(steps - 2 <= len(of_worker) <= steps for of_worker in rows)
    shown = [int(done) for done in re.findall(rf"steps (\d+) \d+ of {steps}", run.output)]
    assert shown == sorted(shown)


def test_run_writes_its_results_elsewhere_if_the_disk_fills(tmp_path: Path) -> None:
    """Every step of every worker, and the replicas, are elsewhere, and the run prints where."""
    spare = tmp_path / "spare"
    spare.mkdir()
    with disks.disk(tmp_path / "runs", "16m") as small:
        run = start(tmp_path, *ENDLESS, environment={"TMPDIR": str(spare)})
        try:
            run.until_training(2)
            disks.fill(small)
            run.until_training(5)
            run.process.send_signal(signal.SIGINT)
            assert run.wait() == 1
            assert "Traceback" not in run.output
            found = re.search(
                r"error: OUT: cannot write \S+: No space left on device; the results are written to (\S+) instead",
                run.output,
            )
            assert found, run.output
            assert ": the sums agree" in run.output, "the table is shown all the same"
            kept = run.out = Path(found[1])
            check_results(run, 5)
            until(lambda: not run.alive(), "every process has ended")
            assert list(spare.glob("serene-*")) == [kept], "nothing else stays"
            assert sorted(path.name for path in small.rglob("*")) == ["ballast"]
        finally:
            run.end()
