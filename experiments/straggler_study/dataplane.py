"""The P4 program in this process, with one job: what the simulated engine's packets pass."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from serene.program import Program
from serene.sim.entries import Host
from serene.sim.switch import ProgramSwitch
from serene.strategy import Strategy
from serene.wire import ENCAPSULATION_BYTES, HEADER

JOB, SESSION, FIRST_EPOCH = 0, 1, 1
STALENESS_CLASSES = 16


class DataPlane:
    """Workers 0 to n-1 of one job, behind a port each."""

    def __init__(self, program: Program, workers: int, vector_length: int, strategy: Strategy) -> None:
        self.program = program
        self.slots = -(-vector_length // program.lanes)
        self._plane = ProgramSwitch(program)
        hosts = [Host.of(worker) for worker in range(workers)]
        self.incarnation = hosts[0].incarnation  # of every worker
        self._ports = np.array([host.port for host in hosts], np.uint32)
        self._worker_at = {host.port: worker for worker, host in enumerate(hosts)}
        self._heads = [np.frombuffer(host.frame_head(HEADER.itemsize + 4 * program.lanes), np.uint8) for host in hosts]
        self._plane.start_job(
            dict(enumerate(hosts)), strategy.compile(range(workers)), slots=self.slots, vector_length=vector_length,
            job=JOB, session=SESSION, epoch=FIRST_EPOCH,
        )  # fmt: skip

    def close(self) -> None:
        self._plane.close()

    def install(self, epoch: int, strategy: Strategy, members: list[int]) -> None:
        """A new policy; one entry, so one step for packets."""
        self._plane.set_policy(SESSION, epoch, strategy.compile(members))

    def pushes(self, worker: int, payloads: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Packets of one worker, one after the other.

        payloads: uint8[n, bytes]. Yields, for each worker that is sent something, the worker, the index of the packet
        that caused each row (int64[m]), and the rows: uint8[m, bytes], all of the same length.
        """
        count = len(payloads)
        frames = np.empty((count, ENCAPSULATION_BYTES + payloads.shape[1]), np.uint8)
        frames[:, :ENCAPSULATION_BYTES] = self._heads[worker]
        frames[:, ENCAPSULATION_BYTES:] = payloads
        ports = np.full(count, self._ports[worker], np.uint32)
        lengths = np.full(count, frames.shape[1], np.uint32)
        until, items, data = self._plane.switch.process_batch(ports, lengths, frames.reshape(-1))
        if not len(items):
            return
        cause = np.searchsorted(until, np.arange(len(items)), side="right")
        keys = items["port"].astype(np.int64) << 32 | items["length"]
        for key in np.unique(keys):
            chosen = np.flatnonzero(keys == key)
            width = int(key & 0xFFFFFFFF)
            rows = np.empty((len(chosen), width - ENCAPSULATION_BYTES), np.uint8)
            for row, offset in zip(rows, items["offset"][chosen].tolist(), strict=True):
                row[:] = data[offset + ENCAPSULATION_BYTES : offset + width]
            yield self._worker_at[int(key >> 32)], cause[chosen], rows

    def count(self, counter: str, worker: int) -> int:
        """Packets in a counter that has a cell for each worker."""
        return self._plane.count(counter, JOB * self.program.max_workers + worker)

    def staleness(self, worker: int) -> np.ndarray:
        """The worker's contributions (packets) by how many rounds old they were: int64[16], the last 15 or more."""
        first = (JOB * self.program.max_workers + worker) * STALENESS_CLASSES
        name = self._plane.names["staleness"]
        values = self._plane.switch.counter_read_all(name, first, STALENESS_CLASSES)
        return np.array([value.packets for value in values], np.int64)

    def dropped(self) -> int:
        """Packets that the program refused, for whatever reason."""
        return sum(self._plane.dropped().values())
