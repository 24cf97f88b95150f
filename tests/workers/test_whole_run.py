"""Workers as processes, through a switch and under a controller: no root, frames in UDP on loopback."""

from __future__ import annotations

import hashlib
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from serene.strategy import ASP, BSP
from serene.workers import reference, train
from serene.workers.training import Recipe
from tests.commands import called
from tests.controller.processes import ControllerProcess, SwitchProcess, until
from tests.ports import some_ports
from tests.workers.running import SLOTS, Workers, done

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
def test_worker_that_does_not_fit_the_job_is_refused(workers: Workers, job_of: int, worker: int, message: str) -> None:
    workers.create(job_of, BSP())
    done = called(train.main, *workers.arguments(worker, 2))
    assert (done.returncode, done.stderr) == (1, f"error: worker {worker}: {message}\n")
    assert workers.client.job(0).state == ("finished" if worker == 0 else "waiting"), "who has joined leaves"


def test_worker_with_a_nan_gradient_leaves_with_an_error(workers: Workers) -> None:
    workers.create(1, BSP())
    done = called(train.main, *workers.arguments(0, 1, "--steps", ENDLESS, "--learning-rate", "1e30"))
    assert done.returncode == 1 and "only finite numbers can be added up" in done.stderr
    assert workers.client.job(0).state == "finished"
    assert workers.results(0)["steps"] >= 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--dataset", "mnist", "--data-dir", "/nowhere"], "/nowhere/mnist/train-images-idx3-ubyte is missing"),
        (["--join-timeout", "0.3"], "error: worker 0: no WELCOME for worker 0 of job 0 within 0.3 s"),
    ],
)
def test_worker_without_data_or_welcome_exits_with_an_error(options: list[str], message: str) -> None:
    ports = some_ports(2, socket.SOCK_DGRAM)
    done = called(train.main, "--worker", 0, "--workers", 1, "--frame-udp", f"{ports[0]}:{ports[1]}", *options)
    assert done.returncode == 1 and message in done.stderr
