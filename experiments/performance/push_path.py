"""The speed of the embedded switch's PUSH path alone: in this process, in one thread, without sockets."""

from __future__ import annotations

import time

import numpy as np

from serene.errors import SereneError
from serene.program import Program
from serene.sim.hosts import Host
from serene.sim.switch import ProgramSwitch
from serene.strategy import BSP
from serene.wire import push_payloads

SLOTS = 256
ROUNDS = 78  # of all slots in one measurement


class PushPath:
    """A switch with a job of one worker under BSP, so that every PUSH is answered. ``compiler_flags``: as of
    `Switch.load`."""

    def __init__(self, program: Program, compiler_flags: tuple[str, ...] = ()) -> None:
        host, size = Host.of(0), 40 + 4 * program.lanes
        plane = ProgramSwitch(program, compiler_flags)
        plane.start_job({0: host}, BSP().compile([0]), slots=SLOTS, vector_length=SLOTS * program.lanes)
        self.switch = plane.switch
        self._head = host.frame_head(size)
        self._incarnation = host.incarnation
        self._bytes = len(self._head) + size
        self._values = np.ones((SLOTS, program.lanes), np.int32)
        self._seq = 0

    def measure(self) -> float:
        """Packets a second, over some 20,000 of them. Raises SereneError if one is not answered."""
        frames = np.empty((ROUNDS, SLOTS, self._bytes), np.uint8)
        frames[:, :, : len(self._head)] = np.frombuffer(self._head, np.uint8)
        for number in range(ROUNDS):
            self._seq += 1
            frames[number, :, len(self._head) :] = push_payloads(
                self._values,
                job=0,
                worker=0,
                session=1,
                epoch=1,
                round=self._seq - 1,
                seq=self._seq,
                incarnation=self._incarnation,
            )
        ports, lengths = np.ones(SLOTS, np.uint32), np.full(SLOTS, self._bytes, np.uint32)
        elapsed = 0.0
        for data in frames:
            began = time.perf_counter()
            until, _, _ = self.switch.process_batch(ports, lengths, data)
            elapsed += time.perf_counter() - began
            if int(until[-1]) != SLOTS:
                raise SereneError(f"{int(until[-1])} answers to {SLOTS} packets: the measurement is void")
        return ROUNDS * SLOTS / elapsed
