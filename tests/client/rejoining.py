"""A client that joins again, and the controller that moves its place."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from serene import entries
from serene.client import Client
from serene.entries import Entry
from serene.sim.hosts import Host, job_of
from serene.strategy import ASP, BSP
from serene.wire import ENCAPSULATION_BYTES, HEADER, Op
from tests.client.answers import SLOTS, VALUES
from tests.dataplane.conftest import EmbeddedDataPlane
from tests.support.in_process import InProcess

ONES = np.ones(VALUES, np.float32)


class Controller:
    """Handles punted HELLOs as the controller does: the worker's place goes to the newcomer, and a new epoch begins."""

    def __init__(self, wire: InProcess) -> None:
        self.plane = wire.plane
        self.admitted, self.epoch, self.session = 1, 1, 7
        wire.meanwhile = self.look

    def look(self) -> None:
        while (punted := self.plane.punted()) is not None:
            header = np.frombuffer(punted[1], HEADER, 1, ENCAPSULATION_BYTES)[0]
            if header["op"] == Op.HELLO and header["incarnation"] != self.admitted:
                self.plane.delete(place(self.admitted))
                self.admitted = int(header["incarnation"])
                self.plane.insert(place(self.admitted))
                self.epoch += 1
                self.plane.swap(ASP(), self.epoch, session=self.session)


def begin(plane: EmbeddedDataPlane, session: int, epoch: int = 1, lost_sessions: int = 1) -> None:
    """Begins a session in which worker 0 is alone."""
    plane.modify(job_of(0, slots=SLOTS, vector_length=VALUES, workers=1, lost_sessions=lost_sessions))
    plane.swap(BSP(), epoch, session=session, workers=1)


def place(incarnation: int) -> Entry:
    """A process of worker 0 is admitted by it."""
    return entries.member(0, 0, replace(Host.of(0), incarnation=incarnation))


def client(wire: InProcess, incarnation: int = 1, length: int = VALUES) -> Client:
    return Client(wire, 0, 0, length, incarnation=incarnation, clock=wire.clock)
