"""A worker's transport to the P4 program in this process, with a clock of its own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from serene.client.transport.transport import Trouble
from serene.wire import ENCAPSULATION_BYTES
from tests.dataplane.conftest import EmbeddedDataPlane
from tests.frames import frame
from tests.support.transports import Untroubled, received


class InProcess(Untroubled):
    """A worker's transport to the switch in this process. Time passes only while the worker waits; ``meanwhile`` is
    called then."""

    def __init__(self, plane: EmbeddedDataPlane, worker: int = 0) -> None:
        self.plane = plane
        self.worker = worker
        self.now = 100.0
        self.cut = False
        self.sent: list[bytes] = []
        self.mail: list[bytes] = []
        self.troubled: Trouble | None = None
        self.meanwhile: Callable[[], None] = lambda: None

    def clock(self) -> float:
        return self.now

    def send(self, payloads: np.ndarray) -> None:
        for payload in payloads:
            self.sent.append(payload.tobytes())
            if not self.cut:
                self.carry(self.worker, payload.tobytes())

    def carry(self, sender: int, payload: bytes) -> None:
        for port, data in self.plane.send(sender + 1, frame(payload, sender)):
            if port == self.worker + 1 and not self.cut:
                self.mail.append(data[ENCAPSULATION_BYTES:])

    def receive(self, timeout_s: float) -> tuple[np.ndarray, np.ndarray]:
        if not self.mail:
            self.now += max(timeout_s, 0.001)
            self.meanwhile()
        mail, self.mail = self.mail, []
        return received(mail)

    def trouble(self) -> Trouble | None:
        return self.troubled

    def close(self) -> None:
        self.cut = True

    def ops(self) -> list[int]:
        return [payload[1] for payload in self.sent]
