"""Workers of shared training as processes, at a switch and a controller that a test may disturb."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.controller.processes import ROOT, ControllerProcess, SwitchProcess, until
from tests.ports import some_port
from tests.support.warm import warm_python
from tests.torch.local import PATIENCE_S


@dataclass
class Result:
    """A worker's saved results."""

    read: np.ndarray
    sent: np.ndarray
    parameters: np.ndarray
    start: np.ndarray
    unit: float


TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "1")


def worker_process(
    folder: Path, number: int, controller: str, *, torchrun: bool = False, **settings: Any
) -> subprocess.Popen[str]:
    """A worker, whose files are in the folder. torchrun: starts it. settings: of `tests.torch.sharing`."""
    given = {"out": str(folder / f"worker-{number}"), "number": number, **settings}
    starter = TORCHRUN if torchrun else ("-W", "ignore::FutureWarning")
    return subprocess.Popen(
        [warm_python(), *starter, "-m", "tests.torch.sharing", json.dumps(given)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        env={**os.environ, "SERENE_CONTROLLER": controller, "PYTHON_EXEC": warm_python()},
    )


def saved(file: Path) -> Result:
    with np.load(file) as there:
        return Result(there["read"], there["sent"], there["parameters"], there["start"], float(there["unit"]))


class Plant:
    """A switch and its controller."""

    def __init__(self, switch: SwitchProcess, folder: Path) -> None:
        self.switch, self.folder = switch, folder
        self._http = f"127.0.0.1:{some_port()}"
        self._controllers: list[ControllerProcess] = []
        self._workers: list[subprocess.Popen[str]] = []
        self.start_controller()

    @property
    def controller(self) -> ControllerProcess:
        return self._controllers[-1]

    def start_controller(self) -> None:
        peers = self.switch.peer_udp_ports
        listed = ",".join(f"{port}:{at}:{peers[port]}" for port, at in self.switch.udp_ports.items())
        log = self.folder / f"controller-{len(self._controllers)}.log"
        self._controllers.append(ControllerProcess(self.switch, log, "--udp-ports", listed, http=self._http))

    def start(self, number: int, **settings: Any) -> subprocess.Popen[str]:
        """Starts a worker. settings: of `tests.torch.sharing`."""
        self._workers.append(worker_process(self.folder, number, self.controller.url, **settings))
        return self._workers[-1]

    def losses(self, number: int) -> list[float]:
        file = self.folder / f"worker-{number}.losses"
        return [float(line) for line in file.read_text().splitlines()] if file.exists() else []

    def reached(self, number: int, steps: int) -> None:
        """Waits until the worker has done so many steps."""
        until(lambda: len(self.losses(number)) >= steps, f"step {steps} of worker {number}", PATIENCE_S)

    def saved(self, number: int) -> Result:
        file = self.folder / f"worker-{number}.npz"
        until(file.exists, f"{file} is there", PATIENCE_S)
        return saved(file)

    def go(self) -> None:
        """Lets the workers that wait at a step continue."""
        (self.folder / "go").touch()

    def stop(self) -> None:
        for worker in self._workers:
            worker.kill()
            worker.wait()
        for controller in self._controllers:
            if controller.process.poll() is None:
                controller.kill()
        for log in self.folder.glob("controller-*.log"):
            assert "Traceback" not in log.read_text()


def check(results: list[Result], *more_sent: np.ndarray) -> None:
    """All replicas are the same bits, and are the start plus what was sent, to the last unit. more_sent: by workers
    that have died."""
    first = results[0]
    sent = sum([result.sent for result in results] + list(more_sent))
    for result in results:
        assert result.unit == first.unit
        np.testing.assert_array_equal(result.read, sent)
        expected = first.start.astype(np.float64) + first.unit * result.read.astype(np.float64)
        np.testing.assert_array_equal(result.parameters, expected.astype(np.float32))
    assert np.abs(first.read).max() > 1000, "nothing was learned"
