"""Workers that are ended, by a signal or an error, leave their job: the others wait for none of them."""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from torch.optim import SGD

from serene.http import CONTROLLER
from serene.torch import DistributedOptimizer, termination
from serene.torch.opening import Controller
from serene.torch.work import Runner
from tests.controller.processes import states, until
from tests.torch.local import Local, outputs
from tests.torch.sharers import Plant
from tests.torch.small import network, train

WORKERS = 3
AT = 10  # the step before which the last worker waits, outside of the optimizer, and the others wait for it
LEFT_S = 20.0  # more than the worker takes to leave, and less than until a silent worker's job ends
TERMINATED, INTERRUPTED = -signal.SIGTERM, 128 + signal.SIGINT
pytestmark = pytest.mark.timeout(600)


def check_others(plant: Plant, others: dict[int, subprocess.Popen[str]]) -> None:
    """They continue, and end with the same parameters. others: processes by number."""
    assert all("all have left" in text for text in outputs([*others.values()]))
    first, second = (plant.saved(number).parameters for number in others)
    np.testing.assert_array_equal(first, second)


def waiting(plant: Plant) -> int:
    """The number of workers that have reported that they wait."""
    jobs = plant.controller.client.jobs()
    return sum((worker.report or {}).get("state") == "waiting" for job in jobs for worker in job.workers)


@pytest.mark.parametrize(
    ("number", "within", "own", "status"),
    [
        (signal.SIGTERM, False, {}, TERMINATED),  # ends the program at once, also within `with`
        (signal.SIGHUP, True, {}, -signal.SIGHUP),
        (signal.SIGTERM, True, {"exits": 3}, 3),
        (signal.SIGTERM, False, {"exits": 3}, 3),
        (signal.SIGINT, True, {}, INTERRUPTED),
        (signal.SIGINT, False, {}, INTERRUPTED),
    ],
    ids=["term", "hup", "own handler", "own handler bare", "int", "int bare"],
)
@pytest.mark.parametrize("waits", [True, False], ids=["waits for others", "computes"])
def test_signalled_worker_leaves_its_job(
    plant: Plant, number: signal.Signals, within: bool, own: dict[str, int], status: int, waits: bool
) -> None:
    """The exit status stays the signal's, or the one that the program's own handler chooses."""
    first = plant.start(0, within=within, **own)
    second = plant.start(1)
    last = plant.start(2, waits_at=AT, within=within, **own)
    plant.reached(2, AT)
    until(lambda: waiting(plant) == WORKERS - 1, "the others wait for the last one")
    ended = first if waits else last
    ended.send_signal(number)
    until(lambda: states(plant.controller.client).count("left") == 1, "it has left", LEFT_S)
    ended.communicate(timeout=LEFT_S)
    assert ended.returncode == status
    plant.go()
    check_others(plant, {1: second, 2: last} if waits else {0: first, 1: second})


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_a_worker_that_waits_in_close(plant: Plant, number: signal.Signals) -> None:
    ended = plant.start(0, steps=5)
    others = {worker: plant.start(worker, waits_at=AT) for worker in (1, 2)}
    plant.reached(0, 5)
    until(lambda: states(plant.controller.client).count("left") == 1, "it has left")
    ended.send_signal(number)
    ended.communicate(timeout=LEFT_S)
    assert ended.returncode == (TERMINATED if number == signal.SIGTERM else INTERRUPTED)
    plant.go()
    check_others(plant, others)


@pytest.mark.parametrize("within", [True, False])
def test_worker_whose_program_fails_leaves_its_job(plant: Plant, within: bool) -> None:
    others = {number: plant.start(number) for number in range(WORKERS - 1)}
    fails = plant.start(2, fails_at=AT, within=within)
    (text,) = outputs([fails], expect=1)
    assert f"RuntimeError: step {AT} fails" in text
    assert bool(re.search("left without close", text)) != within
    check_others(plant, others)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_worker_that_is_signalled_while_it_joins_leaves_its_job(plant: Plant, number: signal.Signals) -> None:
    """The controller has admitted it: the others wait for it."""
    others = {worker: plant.start(worker) for worker in range(WORKERS - 1)}
    ended = plant.start(2, joins_until=number)
    ended.communicate(timeout=LEFT_S + 60)
    assert ended.returncode == (TERMINATED if number == signal.SIGTERM else INTERRUPTED)
    check_others(plant, others)


def test_worker_leaves_when_its_torchrun_is_terminated(plant: Plant) -> None:
    others = {number: plant.start(number) for number in range(WORKERS - 1)}
    torchrun = plant.start(2, torchrun=True, waits_at=AT)
    plant.reached(2, AT)
    torchrun.send_signal(signal.SIGTERM)
    until(lambda: states(plant.controller.client).count("left") == 1, "its worker has left", LEFT_S)
    torchrun.communicate(timeout=60)
    check_others(plant, others)


def fails(*_: object) -> None:
    raise RuntimeError("DataLoader worker is killed by signal: Terminated.")


def terminated(leave: Callable[[], object]) -> tuple[bool, int]:
    """Whether a program has left that gets a SIGTERM, and its exit status."""
    receives, sends = os.pipe()

    def leaves() -> None:
        leave()
        os.write(sends, b"left")

    child = os.fork()
    if not child:
        try:
            for number in (signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(signal.SIGCHLD, fails)
            termination.begin(object(), leaves)
            signal.raise_signal(signal.SIGTERM)
        finally:
            os._exit(0)
    os.close(sends)
    with open(receives, "rb") as pipe:
        return pipe.read() == b"left", os.waitpid(child, 0)[1]


def test_worker_leaves_although_its_data_loaders_processes_end_too() -> None:
    """SLURM ends all processes of a job: PyTorch's handler of SIGCHLD raises an error while the worker leaves."""
    assert terminated(lambda: signal.raise_signal(signal.SIGCHLD)) == (True, signal.SIGTERM)


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_second_signal_does_not_end_a_program_before_it_has_left(second: signal.Signals) -> None:
    """torchrun signals its workers again when SLURM, systemd or a terminal has signalled all processes."""
    assert terminated(lambda: signal.raise_signal(second)) == (True, signal.SIGTERM)


def test_program_ends_although_its_own_handler_exits_while_it_leaves() -> None:
    def leave() -> None:
        signal.signal(signal.SIGUSR1, lambda *_: sys.exit(3))
        signal.raise_signal(signal.SIGUSR1)

    assert terminated(leave) == (False, signal.SIGTERM)


class TestHandlers:
    """The signals' handlers in a program that trains."""

    @pytest.fixture(autouse=True)
    def program(self, local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(CONTROLLER, local.client.url)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)

    def test_default_handlers_return_when_the_last_job_is_left(self) -> None:
        model, other = network(), network()
        with DistributedOptimizer(SGD(model.parameters(), lr=0.1), job="one", workers=1) as optimizer:
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
            train(model, optimizer, range(1))
            with DistributedOptimizer(SGD(other.parameters(), lr=0.1), job="two", workers=1) as second:
                train(other, second, range(1))
            assert signal.getsignal(signal.SIGTERM) not in (signal.SIG_DFL, signal.SIG_IGN)
        assert signal.getsignal(signal.SIGTERM) is signal.getsignal(signal.SIGHUP) is signal.SIG_DFL

    @pytest.mark.parametrize("late", [False, True])
    def test_the_programs_own_handler_stays(self, late: bool) -> None:
        def own(*_: object) -> None: ...

        model = network()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with DistributedOptimizer(SGD(model.parameters(), lr=0.1), job="own", workers=1) as optimizer:
            if late:
                train(model, optimizer, range(1))
            signal.signal(signal.SIGTERM, own)
            train(model, optimizer, range(1))
            assert signal.getsignal(signal.SIGTERM) is own
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) is own
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def test_training_in_another_thread_sets_no_handler(self) -> None:
        model, failed = network(), list[BaseException]()

        def run() -> None:
            try:
                with DistributedOptimizer(SGD(model.parameters(), lr=0.1), job="thread", workers=1) as optimizer:
                    train(model, optimizer, range(2))
                    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        assert not failed

    def test_forked_process_has_the_default_handlers(self) -> None:
        """For example of a DataLoader, which ends its processes by SIGTERM."""
        model = network()
        with DistributedOptimizer(SGD(model.parameters(), lr=0.1), job="forks", workers=1) as optimizer:
            train(model, optimizer, range(1))
            child = os.fork()
            if not child:
                os._exit(signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL)
            assert os.waitpid(child, 0)[1] == 0
            train(model, optimizer, range(1))
            mask = Path("/proc/self/status").read_text()
            assert re.search(r"SigBlk:\s+0+$", mask, re.M), "no signal is blocked"


class TestDropped:
    """An optimizer that nothing refers to any more."""

    @pytest.fixture(autouse=True)
    def program(self, local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(CONTROLLER, local.client.url)

    def test_optimizer_dropped_without_close_leaves_the_job(self, caplog: pytest.LogCaptureFixture) -> None:
        """A function may return only its model: the process lives on, and the others must not wait for it."""
        model = network()
        optimizer = DistributedOptimizer(SGD(model.parameters(), lr=0.1), job="forgotten", workers=1)
        train(model, optimizer, range(2))
        controller = Controller()
        assert controller.find("forgotten") is not None
        del optimizer
        gc.collect()
        until(lambda: controller.find("forgotten") is None, "the worker has left")
        assert "job 'forgotten' was left without close(): this worker's unsent updates are lost" in caplog.text

    @pytest.mark.parametrize("own", [False, True], ids=["here", "in its own thread"])
    def test_optimizer_that_a_parameters_hook_refers_to_leaves_when_dropped(self, own: bool) -> None:
        """Nothing that waits for the optimizer's end may keep parameters. The collector runs in any thread."""
        units = list[float]()

        def train_and_drop() -> Runner:
            model = network()
            optimizer = DistributedOptimizer(SGD(model.parameters(), lr=0.1), job="hooked", workers=1)
            for parameter in model.parameters():
                parameter.register_hook(lambda _: units.append(optimizer.unit))  # type: ignore[no-untyped-call]
            train(model, optimizer, range(2))
            assert optimizer._member is not None and optimizer._member._runner is not None
            return optimizer._member._runner

        def collect() -> None:
            gc.collect()

        gc.disable()
        try:
            runner = train_and_drop()
            assert units
            controller = Controller()
            assert controller.find("hooked") is not None
            if own:
                runner.submit(collect, []).wait()
            else:
                collect()
        finally:
            gc.enable()
        until(lambda: controller.find("hooked") is None, "the worker has left")
        assert not termination._leave
