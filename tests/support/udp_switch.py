"""The P4 program behind UDP sockets on loopback, with faults: for workers that are threads, on real sockets."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import select
import socket
import threading
import time
from dataclasses import replace
from types import TracebackType

from typing_extensions import Self

from serene import entries
from serene.client.transport.transport import FrameTransport
from serene.experiments.correctness.virtual.switch import P4Switch
from serene.faults import Direction, Faults, Links
from serene.sim.hosts import job_of
from serene.strategy import BSP, Strategy
from tests.support.pools import admitted

LARGEST = 65536


class UdpSwitch:
    """A switch with one running job. Frames travel as datagrams between each worker's socket and the one of its
    port."""

    sessions = itertools.count(1000)

    def __init__(self, switch: P4Switch, workers: int, slots: int, faults: Faults) -> None:
        self.switch, self.workers, self.slots = switch, workers, slots
        self.session = next(self.sessions)
        self.hosts = admitted(switch, workers)
        switch.put(job_of(0, slots=slots, vector_length=slots * switch.lanes, workers=workers))
        self.put_policy(BSP(), 1)
        self._links = Links(faults)
        self._ports = {worker: self._socket() for worker in range(workers)}
        self._ends = {worker: self._socket() for worker in range(workers)}
        for worker, port in self._ports.items():
            port.connect(self._ends[worker].getsockname())
        self._worker_at = {host.port: worker for worker, host in self.hosts.items()}
        self._late: list[tuple[float, int, int, Direction, bytes]] = []  # heap
        self._number = itertools.count()
        self._lock = threading.Lock()
        self._stopped, self._stop = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    @staticmethod
    def _socket() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        made.bind(("127.0.0.1", 0))
        return made

    def transport(self, worker: int) -> FrameTransport:
        switch = self._ports[worker].getsockname()
        return FrameTransport(worker, local=self._ends.pop(worker).detach(), switch=switch)

    def put_policy(self, strategy: Strategy, epoch: int, precision: int = 32) -> None:
        fields = replace(strategy.compile(range(self.workers)), precision=precision)
        self.switch.put(entries.policy(0, self.session, epoch, fields))

    def swap(self, strategy: Strategy, epoch: int, precision: int = 32) -> None:
        """Puts another policy in force while the switch serves."""
        with self._lock:
            self.put_policy(strategy, epoch, precision)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.close()
        self._thread.join()
        for end in (*self._ports.values(), *self._ends.values(), self._stopped):
            end.close()

    def _serve(self) -> None:
        workers = {port: worker for worker, port in self._ports.items()}
        while True:
            wait = max(self._late[0][0] - time.monotonic(), 0.0) if self._late else None
            for ready in select.select([*workers, self._stopped], [], [], wait)[0]:
                if ready is self._stopped:
                    return
                with contextlib.suppress(ConnectionRefusedError):  # an earlier datagram went to a worker that has ended
                    self._carry(workers[ready], Direction.TO_SWITCH, ready.recv(LARGEST))
            while self._late and self._late[0][0] <= time.monotonic():
                _, _, worker, direction, frame = heapq.heappop(self._late)
                self._arrive(worker, direction, frame)

    def _carry(self, worker: int, direction: Direction, frame: bytes) -> None:
        for delay, got in self._links.fate(frame, worker, direction, time.monotonic()):
            if delay:
                due = time.monotonic() + delay
                heapq.heappush(self._late, (due, next(self._number), worker, direction, got))
            else:
                self._arrive(worker, direction, got)

    def _arrive(self, worker: int, direction: Direction, frame: bytes) -> None:
        if direction is Direction.TO_WORKER:
            with contextlib.suppress(ConnectionRefusedError):
                self._ports[worker].send(frame)
        else:
            with self._lock:
                caused = self.switch.process([(self.hosts[worker].port, frame)])
            for port, data in caused:
                if port in self._worker_at:
                    self._carry(self._worker_at[port], Direction.TO_WORKER, data)
