"""DistributedDataParallel by the hook goes on when the switch, or the controller, is started again in the middle."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import pytest

from serene.controller.http.client import ControllerClient
from serene.strategy import ASP, BSP, SSP, Strategy
from tests.controller.conftest import start, switch
from tests.controller.processes import ControllerProcess, SwitchProcess, until
from tests.ports import some_port
from tests.torch.ranks import started

__all__ = ["start", "switch"]

WORKERS, STEPS, PATIENCE_S = 3, 60, 240
pytestmark = pytest.mark.timeout(900)
WAITS_AT = 30
Start = Callable[..., ControllerProcess]


class Training:
    """As many ranks as there are ports. Rank 0 waits before a step, until ``go``; the others in its middle."""

    def __init__(self, switch: SwitchProcess, out: Path) -> None:
        self.out = out
        out.mkdir()
        rendezvous = some_port()
        self.processes = [self._start(switch, rank, rendezvous) for rank in range(WORKERS)]

    def _start(self, switch: SwitchProcess, rank: int, rendezvous: int) -> BaseProcess:
        settings = {"steps": STEPS, "waits_at": WAITS_AT}
        return started(switch, self._log(rank), rank, WORKERS, rendezvous, self.out / f"{rank}.npy", settings)

    def _log(self, rank: int) -> Path:
        return self.out / f"{rank}.log"

    def losses(self, rank: int) -> list[str]:
        file = self.out / f"{rank}.losses"
        return file.read_text().splitlines() if file.exists() else []

    def reached(self, steps: int) -> None:
        def there() -> bool:
            return len(self.losses(0)) >= steps or not all(process.is_alive() for process in self.processes)

        until(there, f"step {steps}")
        assert all(process.is_alive() for process in self.processes), self.said()

    def go(self) -> None:
        (self.out / "go").touch()

    def end(self, expect: int = 0) -> list[str]:
        """What each said."""
        self.go()
        for process in self.processes:
            process.join(PATIENCE_S)
        assert [process.exitcode for process in self.processes] == [expect] * WORKERS, self.said()
        return self.said()

    def said(self) -> list[str]:
        return [self._log(rank).read_text() for rank in range(WORKERS)]

    def results(self) -> list[tuple[list[str], bytes]]:
        """Each rank's losses and parameters."""
        return [(self.losses(rank), np.load(self.out / f"{rank}.npy").tobytes()) for rank in range(WORKERS)]

    def stop(self) -> None:
        for process in self.processes:
            process.kill()
            process.join()


@pytest.fixture
def trainings() -> Iterator[list[Training]]:
    begun: list[Training] = []
    yield begun
    for training in begun:
        training.stop()


@pytest.fixture
def begin(trainings: list[Training], switch: SwitchProcess, tmp_path: Path) -> partial[Training]:
    def one(client: ControllerClient, strategy: Strategy) -> Training:
        for job in client.jobs():
            client.delete_job(job.job)
        client.create_job(WORKERS, strategy)
        trainings.append(Training(switch, tmp_path / f"training-{len(trainings)}"))
        return trainings[-1]

    return partial(one)


def restored(client: ControllerClient, times: int) -> None:
    def over() -> bool:
        job = client.job(0)
        return job.lost_sessions == times and job.state == "running" and not job.restoring

    until(over, "the job is restored")


_undisturbed: list[tuple[list[str], bytes]] = []


def undisturbed(begin: partial[Training], client: ControllerClient) -> Sequence[tuple[list[str], bytes]]:
    """What a training without restarts ends with, always the same."""
    if not _undisturbed:
        training = begin(client, BSP())
        training.end()
        _undisturbed.extend(training.results())
        assert [len(losses) for losses, _ in _undisturbed] == [STEPS] * WORKERS
    return _undisturbed


def test_under_bsp_nothing_differs_from_a_run_without_restarts(
    begin: partial[Training], start: Start, switch: SwitchProcess
) -> None:
    """The switch is started again twice, and the controller before the second time."""
    controller: ControllerProcess = start()
    expected = undisturbed(begin, controller.client)
    training = begin(controller.client, BSP())
    training.reached(9)
    switch.restart()
    restored(controller.client, 1)
    training.reached(WAITS_AT)
    controller.kill()
    controller = start()
    until(controller.client.jobs, "it has taken the job over")
    switch.restart()
    restored(controller.client, 2)
    said = training.end()
    assert training.results() == expected
    for text in said:
        assert text.count("the job's session is") == 2, text


@pytest.mark.parametrize("strategy", [SSP(3), ASP()], ids=str)
def test_a_job_goes_on_under_its_strategy(
    begin: partial[Training], start: Start, switch: SwitchProcess, strategy: Strategy
) -> None:
    controller = start()
    training = begin(controller.client, strategy)
    training.reached(9)
    switch.restart()
    restored(controller.client, 1)
    assert controller.client.job(0).strategy == strategy
    training.end()
    for losses, _ in training.results():
        assert len(losses) == STEPS
    replicas = [np.frombuffer(parameters, np.float32) for _, parameters in training.results()]
    for replica in replicas[1:]:
        assert np.linalg.norm(replica - replicas[0]) < 0.3 * np.linalg.norm(replicas[0])


def test_ranks_that_are_started_again_with_the_switch_begin_anew(
    begin: partial[Training], trainings: list[Training], start: Start, switch: SwitchProcess, tmp_path: Path
) -> None:
    """As torchrun does it when a rank dies: all of them, to the same job, whose switch has lost its state meanwhile."""
    controller = start()
    expected = undisturbed(begin, controller.client)
    first = begin(controller.client, BSP())
    first.reached(9)
    first.stop()
    switch.restart()
    again = Training(switch, tmp_path / "again")
    trainings.append(again)
    again.end()
    assert again.results() == expected


def test_a_switch_and_a_controller_that_are_lost_at_once_end_the_training(
    begin: partial[Training], start: Start, switch: SwitchProcess
) -> None:
    """Nobody knows the job any more; every rank is told so by its backward()."""
    controller = start()
    training = begin(controller.client, BSP())
    training.reached(9)
    controller.kill()
    switch.restart()
    start()
    for text in training.end(expect=1):
        assert "Refused" in text and "there is no job 0" in text, text
