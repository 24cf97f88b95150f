"""The whole PUSH path of the embedded switch in this process: one thread, no sockets, every packet answered."""

from __future__ import annotations

import time

import numpy as np

from serene.errors import SereneError
from serene.program import Program
from serene.switch import Exact, Switch
from serene.wire import SERENE_UDP_PORT, SWITCH_IP, SWITCH_MAC, encapsulation, push_payloads

SLOTS = 256
ROUNDS = 78  # of all slots in one measurement


class PushPath:
    """A switch with a job of one worker under BSP. ``compiler_flags`` as for `Switch.load`."""

    def __init__(self, program: Program, compiler_flags: tuple[str, ...] = ()) -> None:
        self.switch = Switch.load(program.config_path, compiler_flags=compiler_flags)
        place = [0x0200_0000_0001, 0x0A00_0001, 40000]
        switch_place = [0x0200_0000_FEFE, 0x0A00_00FE]
        admission, answer = "SereneIngress.admission.", "SereneEgress.answer."
        job = [0, SLOTS, SLOTS * program.lanes, 1, 1, 0, 65536]
        bsp_of_one = [1, 1, 1, 0, 1, 1]
        add = self.switch.table_add
        add(admission + "member", [Exact(value) for value in (1, *place, 0, 0)], admission + "admit")
        add(answer + "address", [Exact(0), Exact(0)], answer + "to_member", [*place, *switch_place])
        add(admission + "job", [Exact(0)], admission + "set_job", job)
        add(admission + "policy", [Exact(0)], admission + "set_policy", bsp_of_one)
        size = 40 + 4 * program.lanes
        self._head = encapsulation(
            size, source=("02:00:00:00:00:01", "10.0.0.1", 40000), destination=(SWITCH_MAC, SWITCH_IP, SERENE_UDP_PORT)
        )
        self._bytes = len(self._head) + size
        self._values = np.ones((SLOTS, program.lanes), np.int32)
        self._seq = 0

    def measure(self) -> float:
        """Packets per second over some 20,000 of them. Raises SereneError if one is not answered."""
        frames = np.empty((ROUNDS, SLOTS, self._bytes), np.uint8)
        frames[:, :, : len(self._head)] = np.frombuffer(self._head, np.uint8)
        for number in range(ROUNDS):
            self._seq += 1
            frames[number, :, len(self._head) :] = push_payloads(
                self._values, job=0, worker=0, session=1, epoch=1, round=self._seq - 1, seq=self._seq
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
