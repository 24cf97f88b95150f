"""Workers as processes, through a switch and under a controller: no root, frames in UDP on loopback."""

from __future__ import annotations

import hashlib
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from serene.strategy import ASP, BSP
from serene.workers import reference
from serene.workers.training import Recipe
from tests.controller.processes import ControllerProcess, SwitchProcess, until
from tests.ports import some_ports
from tests.workers.running import SLOTS, Workers, done, ended

WORKERS, STEPS = 2, 8
ENDLESS = 100_000


@pytest.fixture(scope="module")
def controller(switch: SwitchProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControllerProcess]:
    process = ControllerProcess(switch, tmp_path_factory.mktemp("controller") / "log")
    yield process
    process.stop()


@pytest.fixture
def workers(switch: SwitchProcess, controller: ControllerProcess, tmp_path: Path) -> Iterator[Workers]:
    started = Workers(switch, controller.client, tmp_path / "out")
    yield started
    started.stop()


@pytest.mark.parametrize("packets", ["compiled", "numpy", "scapy"])
def test_bsp_run_equals_one_process_to_the_bit(workers: Workers, packets: str) -> None:
    """packets: the code of worker 0; the other's is compiled."""
    workers.create(WORKERS, BSP())
    options = ("--steps", STEPS, "--eval-every", 3)
    started = [workers.start(0, WORKERS, *options, "--packets", packets), workers.start(1, WORKERS, *options)]
    for process in started:
        done(process)

    expected = reference.train(Recipe(workers=WORKERS, steps=STEPS, seed=1))
    digest = hashlib.sha256(expected.tobytes()).hexdigest()
    job = workers.client.job(0)
    for worker in range(WORKERS):
        results = workers.results(worker)
        assert workers.parameters(worker).tobytes() == expected.tobytes()
        assert results["parameters_sha256"] == results["parameters_sha256_when_left"] == digest
        applied = job.workers[worker].contributions
        assert results["contributions_sent"] == applied == STEPS * SLOTS
        assert (results["steps"], results["clipped_values"], results["reads_at_risk"]) == (STEPS, 0, 0)
        assert results["packets_sent"] - results["retransmissions"] == (STEPS + 1) * SLOTS  # and the last PULL
        assert results["initial_accuracy"] < 0.3 < results["final_accuracy"]

        steps = workers.steps(worker)
        assert [int(step["step"]) for step in steps] == list(range(1, STEPS + 1))
        assert {step["contributions"] for step in steps} == {str(WORKERS)}
        assert [int(step["step"]) for step in steps if step["accuracy"]] == [3, 6, 8]
        for part in ("compute_s", "network_s", "waiting_s"):
            total = sum(float(step[part]) for step in steps)
            assert results[part] == pytest.approx(total, abs=1e-4) and min(float(step[part]) for step in steps) >= 0
        assert sum(results[part] for part in ("compute_s", "network_s", "waiting_s")) <= (
            results["ended_unix"] - results["started_unix"]
        )
    assert {path.name for path in workers.out.iterdir()} == {
        f"{stem}-{worker}.{end}"
        for worker in range(WORKERS)
        for stem, end in (("worker", "csv"), ("worker", "json"), ("parameters", "npy"))
    }, "temporary files are left"


def test_sigterm_makes_worker_leave_and_others_continue(workers: Workers) -> None:
    workers.create(2, BSP())
    stopped = workers.start(0, 2, "--steps", ENDLESS)
    other = workers.start(1, 2, "--steps", ENDLESS)
    workers.reached(0, 3)
    stopped.send_signal(signal.SIGTERM)
    done(stopped, 128 + signal.SIGTERM)
    assert workers.client.job(0).workers[0].state == "left"
    assert 2 <= len(workers.steps(0)) == workers.results(0)["steps"]
    assert workers.parameters(0).shape == (79_510,)
    before = workers.client.job(0).workers[1].iteration
    until(lambda: workers.client.job(0).workers[1].iteration > before + 3, "the other one continues")
    other.send_signal(signal.SIGINT)
    done(other, 128 + signal.SIGINT)
    assert workers.client.job(0).state == "finished"


def test_worker_stopped_while_waiting_for_others_writes_results(workers: Workers) -> None:
    workers.create(2, ASP())
    fast = workers.start(0, 2, "--steps", 2)
    workers.start(1, 2, "--steps", ENDLESS)
    until(lambda: workers.client.job(0).workers[0].state == "left", "the fast one is through")
    fast.send_signal(signal.SIGTERM)
    done(fast, 128 + signal.SIGTERM)
    assert workers.results(0)["steps"] == 2
    assert workers.results(0)["contributions_sent"] == 2 * SLOTS


@pytest.mark.parametrize(
    ("job_of", "worker", "message"),
    [
        (1, 0, "--workers 2: job 0 has 1 workers"),
        (1, 1, "job 0 has no worker 1: expected 0"),
    ],
)
def test_worker_that_does_not_fit_the_job_is_refused(
    workers: Workers, job_of: int, worker: int, message: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    workers.create(job_of, BSP())
    assert ended(monkeypatch, *workers.arguments(worker, 2)) == 1
    assert capsys.readouterr().err == f"error: worker {worker}: {message}\n"
    assert workers.client.job(0).state == ("finished" if worker == 0 else "waiting"), "who has joined leaves"


def test_worker_with_a_nan_gradient_leaves_with_an_error(
    workers: Workers, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    workers.create(1, BSP())
    assert ended(monkeypatch, *workers.arguments(0, 1, "--steps", ENDLESS, "--learning-rate", "1e30")) == 1
    assert "only finite numbers can be added up" in capsys.readouterr().err
    assert workers.client.job(0).state == "finished"
    assert workers.results(0)["steps"] >= 1


ALONE = ["--worker", "0", "--workers", "1"]


def test_training_command_names_missing_data(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = [*ALONE, "--dataset", "mnist", "--data-dir", str(tmp_path), "--frame-udp"]
    ports = some_ports(2, socket.SOCK_DGRAM)
    assert ended(monkeypatch, *arguments, f"{ports[0]}:{ports[1]}") == 1
    assert f"{tmp_path}/mnist/train-images-idx3-ubyte is missing" in capsys.readouterr().err


def test_worker_without_welcome_exits_with_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ports = some_ports(2, socket.SOCK_DGRAM)
    arguments = ["--frame-udp", f"{ports[0]}:{ports[1]}", "--join-timeout", "0.3"]
    assert ended(monkeypatch, *ALONE, *arguments) == 1
    assert "error: worker 0: no WELCOME for worker 0 of job 0 within 0.3 s" in capsys.readouterr().err
