"""Workers of shared training as processes, at a switch, a controller and links that a test may disturb."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from serene.faults import Direction, Faults, Links
from tests.controller.processes import ROOT, ControllerProcess, SwitchProcess, until
from tests.ports import some_port, some_ports
from tests.support.warm import warm_python

PATIENCE_S = 240.0


class LossyLinks:
    """Carries datagrams between the ports of a switch and workers, with faults. ports: by number, where the workers
    send to and where they are, as a controller tells them."""

    def __init__(self, switch: SwitchProcess, faults: Faults) -> None:
        self._links = Links(faults)
        chosen = iter(some_ports(2 * len(switch.udp_ports), socket.SOCK_DGRAM))
        self.ports: dict[int, tuple[int, int]] = {}
        self._ends: list[socket.socket] = []
        for port, at_switch in switch.udp_ports.items():
            ours, workers = next(chosen), next(chosen)
            self.ports[port] = ours, workers
            here, there = socket.socket(type=socket.SOCK_DGRAM), socket.socket(type=socket.SOCK_DGRAM)
            for end, address in ((here, ours), (there, switch.peer_udp_ports[port])):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
                end.bind(("127.0.0.1", address))
            self._ends += [here, there]
            at = ("127.0.0.1", at_switch), ("127.0.0.1", workers)
            for come, go, to, way in (
                (here, there, at[0], Direction.TO_SWITCH),
                (there, here, at[1], Direction.TO_WORKER),
            ):
                threading.Thread(target=self._carry, args=(come, go, to, port, way), daemon=True).start()

    @property
    def lost(self) -> int:
        return self._links.lost

    def _carry(self, come: socket.socket, go: socket.socket, to: tuple[str, int], port: int, way: Direction) -> None:
        began = time.monotonic()
        while come.fileno() >= 0:
            try:
                frame = come.recv(65536)
            except ConnectionRefusedError:  # of what went to a worker that has ended
                continue
            except OSError:
                return
            for delay, arrived in self._links.fate(frame, port, way, time.monotonic() - began):
                if delay:
                    threading.Timer(delay, self._send, (go, arrived, to)).start()
                else:
                    self._send(go, arrived, to)

    @staticmethod
    def _send(go: socket.socket, frame: bytes, to: tuple[str, int]) -> None:
        with suppress(OSError):
            go.sendto(frame, to)

    def close(self) -> None:
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


@dataclass
class Result:
    """What a worker has saved."""

    read: np.ndarray
    sent: np.ndarray
    parameters: np.ndarray
    start: np.ndarray
    unit: float


def worker_process(folder: Path, number: int, controller: str, **settings: Any) -> subprocess.Popen[str]:
    """A worker, whose files are in the folder. settings: of `tests.torch.sharing`."""
    given = {"out": str(folder / f"worker-{number}"), "number": number, **settings}
    return subprocess.Popen(
        [warm_python(), "-W", "ignore::FutureWarning", "-m", "tests.torch.sharing", json.dumps(given)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        env={**os.environ, "SERENE_CONTROLLER": controller},
    )


def saved(file: Path) -> Result:
    with np.load(file) as there:
        return Result(there["read"], there["sent"], there["parameters"], there["start"], float(there["unit"]))


class Plant:
    """A switch, its controller, and perhaps links with faults."""

    def __init__(self, switch: SwitchProcess, folder: Path, faults: Faults | None = None) -> None:
        self.switch, self.folder = switch, folder
        self.links = None if faults is None else LossyLinks(switch, faults)
        self._http = f"127.0.0.1:{some_port()}"
        self._controllers: list[ControllerProcess] = []
        self._workers: list[subprocess.Popen[str]] = []
        self.start_controller()

    @property
    def controller(self) -> ControllerProcess:
        return self._controllers[-1]

    def start_controller(self) -> None:
        straight = {port: (at, self.switch.peer_udp_ports[port]) for port, at in self.switch.udp_ports.items()}
        ports = straight if self.links is None else self.links.ports
        listed = ",".join(f"{port}:{at}:{host}" for port, (at, host) in ports.items())
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
        """Workers that wait at a step go on."""
        (self.folder / "go").touch()

    def stop(self) -> None:
        for worker in self._workers:
            worker.kill()
            worker.wait()
        for controller in self._controllers:
            if controller.process.poll() is None:
                controller.kill()
        if self.links is not None:
            self.links.close()


def said(*workers: subprocess.Popen[str], expect: int | None = 0, patience_s: float = PATIENCE_S) -> list[str]:
    """What each has printed, when all have ended. expect: the status with which each has to end."""
    texts = [worker.communicate(timeout=patience_s)[0] for worker in workers]
    assert expect is None or [worker.returncode for worker in workers] == [expect] * len(workers), texts
    return texts


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
