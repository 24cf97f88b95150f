"""Runs on loopback, without root and Mininet, leave nothing behind, whatever ends them."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
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
from tests.endtoend.stopped import is_kept
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


def test_hangup_ends_a_local_run_and_keeps_its_results(run: Run) -> None:
    """Both the shell and the kernel send SIGHUP, so a run may receive it twice."""
    run.until_training()
    for _ in range(2):
        os.killpg(run.process.pid, signal.SIGHUP)
    assert run.wait() == 130
    until(lambda: not run.alive(), "every process has ended")
    is_kept(run, workers=2)


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


def test_changing_the_clock_changes_no_measured_time(tmp_path: Path) -> None:
    """For all of the run's processes: a library preloaded before libc returns the time. The run trains through a
    program of the user's own."""
    lacking = missing(mininet=False)
    if lacking:
        pytest.skip(f"a local run needs {lacking}")
    for kind in ("json", "p4info.txtpb"):
        shutil.copy(BUILD / f"serene.{kind}", tmp_path / f"mine.{kind}")
    library, ahead = tmp_path / "clock.so", tmp_path / "ahead"
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)]
    subprocess.run(command, input=CLOCK, text=True, check=True)
    ahead.write_text("0")
    options = ("--no-mininet", "--workers", 2, "--steps", 30, "--compute-ms", 100, "--program", tmp_path / "mine.json")
    began = time.monotonic()
    run = Run(
        tmp_path / "out", tmp_path / "log", *options, environment={"LD_PRELOAD": str(library), "AHEAD": str(ahead)}
    )
    try:
        for step, hours in ((5, 24), (12, -1)):
            url = run.until_training(step)
            ahead.write_text(f"{3600 * hours}")
            with ControllerClient(url) as controller:
                controller.set_strategy(0, SSP(step))
        assert run.wait() == 0, run.output
    finally:
        run.end()
    took_s, summary = time.monotonic() - began, run.summary()
    assert (summary["program"], summary["miscounted"]) == ("mine", [])
    assert 30 * 0.1 <= summary["wall_s"] < took_s
    assert all(t is None or 0 < t < took_s for t in summary["seconds_to_accuracy"].values())
    assert [0 < change["t"] < took_s for change in summary["changes"][1:]] == [True, True]
    for worker in range(2):
        times = [float(row["t_s"]) for row in run.rows(worker)]
        assert times == sorted(times) and len(times) == 30


def test_run_stopped_before_training_keeps_no_results(run: Run) -> None:
    until(lambda: "live page" in run.output, "its workers start")
    run.process.send_signal(signal.SIGINT)
    assert run.wait() == 130
    assert run.output.rstrip().endswith("stopped; no results were kept")
    until(lambda: not run.alive(), "every process has ended")
    assert list(run.out.parent.iterdir()) == []


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
iteration = 6
action = "restart switch"
seconds = 0.1

[[events]]
iteration = 6
action = "restart switch"
seconds = 0.1

[[events]]
iteration = 9
action = "restart worker"
worker = 1

[[events]]
iteration = 12
action = "restart worker"
worker = 1

[[events]]
iteration = 16
action = "restart controller"
"""


def test_fault_events_count_a_workers_own_steps(tmp_path: Path) -> None:
    """Not the steps of a session, because the switch's restart begins another one. A worker that is killed twice does
    as many steps as the others, and an event due while its process is away waits until it has returned."""
    if lacking := missing(mininet=False):
        pytest.skip(f"a local run needs {lacking}")
    faults = tmp_path / "faults.toml"
    faults.write_text(EVENTS)
    options = ("--no-mininet", "--workers", 2, "--steps", 20, "--compute-ms", 200, "--faults", faults)
    training = Run(tmp_path / "out", tmp_path / "log", *options, warm=True)
    try:
        assert training.wait(240) == 0, training.output
    finally:
        training.end()
    assert "this never came" not in training.output
    played = training.summary()["events"]
    assert [event["event"].partition(" at")[0] for event in played] == [
        "restart switch", "restart switch", "restart worker 1", "restart worker 1", "restart controller",
    ]  # fmt: skip
    rows = [[float(row["t_s"]) for row in training.rows(worker)] for worker in range(2)]
    for event, iteration in zip(played, (6, 6, 9, 12, 16), strict=True):
        assert sum(t <= event["t"] for t in rows[1]) >= iteration, event
    # One whose answer was lost with a session is not done again.
    assert all(18 <= len(of_worker) <= 20 for of_worker in rows)
    shown = re.findall(r"steps (\d+) (\d+) of 20", training.output)
    assert [int(steps) for steps, _ in shown] == sorted(int(steps) for steps, _ in shown)


STEPS = 30


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    lacking = missing(mininet=False)
    if lacking:
        pytest.skip(f"a local run needs {lacking}")
    with disks.disk(tmp_path / "small", "16m") as place:
        yield place


def test_run_writes_its_results_elsewhere_if_the_disk_fills(small: Path, tmp_path: Path) -> None:
    """Every step of every worker, and the replicas, are elsewhere, and the run prints where."""
    (tmp_path / "spare").mkdir()
    options = ("--no-mininet", "--workers", 2, "--steps", STEPS, "--compute-ms", 100)
    environment = {"TMPDIR": str(tmp_path / "spare")}
    training = Run(small / "runs" / "out", tmp_path / "log", *options, environment=environment)
    try:
        training.until_training(step=3)
        disks.fill(small)
        assert training.wait() == 1
        output = training.output
        assert "Traceback" not in output
        found = re.search(
            r"error: OUT: cannot write \S+: No space left on device; the results are written to (\S+) instead", output
        )
        assert found, output
        assert ": exactly once" in output, "the table is shown all the same"
        kept = Path(found[1])
        summary = json.loads((kept / "summary.json").read_text())
        assert summary["contributions_sent"] == summary["contributions_applied"] > 0
        with (kept / "metrics.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert sorted((int(row["worker"]), int(row["step"])) for row in rows) == [
            (worker, step) for worker in range(2) for step in range(1, STEPS + 1)
        ]
        replicas = [np.load(kept / f"parameters-{worker}.npy") for worker in range(2)]
        assert np.array_equal(*replicas)
        assert list((tmp_path / "spare").glob("serene-*")) == [kept], "nothing else stays"
        until(lambda: not training.alive(), "every process has ended")
        assert sorted(path.name for path in small.rglob("*")) == ["ballast", "runs"]
    finally:
        training.end()
