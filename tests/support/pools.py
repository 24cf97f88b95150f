"""Pools in virtual time: each worker a process with a `Pool`, a bad network, and a switch that is
the P4 program in process, or the protocol's rules in Python (tests/model_switch.py)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from serene import entries
from serene.client.allreduce.pool import Pool
from serene.experiments.correctness.virtual.clock import Clock, Process
from serene.experiments.correctness.virtual.switch import VirtualSwitch
from serene.faults import Direction, Faults, Links, PacketFaults
from serene.sim.hosts import Host, job_of
from serene.strategy import BSP, Strategy
from serene.wire import ENCAPSULATION_BYTES
from tests.support.transports import Untroubled, received

WIRE_S = 0.0001
FINE = Faults()


class Stuck(AssertionError):
    """A worker waits for something that will not come."""


def lossy(seed: int, loss: float = 0.05) -> Faults:
    return Faults(seed, (PacketFaults(loss=loss, duplication=loss, reordering=loss, late_s=0.01, jitter_s=0.0005),))


@dataclass
class Wire(Untroubled):
    """A worker's transport over the simulated network."""

    run: PoolRun
    worker: int
    mail: list[bytes] = field(default_factory=list)

    def send(self, payloads: np.ndarray) -> None:
        host = Host.of(self.worker)
        for row in payloads:
            frame = host.frame_head(payloads.shape[1]) + row.tobytes()
            self.run.carry(self.worker, Direction.TO_SWITCH, frame, lambda got: self.run.into_switch(host.port, got))

    def hear(self, frame: bytes) -> None:
        self.mail.append(frame[ENCAPSULATION_BYTES:])
        self.run.processes[self.worker].mail()

    def receive(self, timeout_s: float) -> tuple[np.ndarray, np.ndarray]:
        if not self.mail:
            self.run.processes[self.worker].wait_for_mail(max(timeout_s, 1e-4))
        mail, self.mail = self.mail, []
        return received(mail)


def admitted(switch: VirtualSwitch, workers: int) -> dict[int, Host]:
    """Writes the entries of job 0's workers, in place of those of the job before, and returns their hosts."""
    for entry in switch.entries():
        if entry.table in ("member", "address", "job"):
            switch.delete(entry)
    hosts = {worker: Host.of(worker) for worker in range(workers)}
    for worker, host in hosts.items():
        switch.put(entries.member(0, worker, host))
        switch.put(entries.address(0, worker, host))
    switch.set_group(entries.job_group(0, hosts))
    return hosts


class PoolRun(Clock):
    """One job on a switch that may have had other jobs before: ``sessions`` grow from run to run. too_late_s: when a
    run that still lasts is `Stuck`."""

    sessions = itertools.count(7)

    def __init__(
        self,
        switch: VirtualSwitch,
        workers: int,
        slots: int,
        faults: Faults = FINE,
        strategy: Strategy | None = None,
        *,
        give_up_s: float = 60.0,
        too_late_s: float = 3000.0,
    ) -> None:
        super().__init__()
        self.switch, self.workers, self.slots, self.too_late_s = switch, workers, slots, too_late_s
        self.links = Links(faults)
        self.processes: list[Process] = []
        self.session = next(self.sessions)
        self.wires = [Wire(self, worker) for worker in range(workers)]
        self.errors: dict[int, BaseException] = {}
        self.punted: list[bytes] = []
        self._worker_at = {host.port: worker for worker, host in admitted(switch, workers).items()}
        self._put_job(0)
        self.put_policy(strategy or BSP(), 1)
        self.pools = [
            Pool(wire, 0, wire.worker, slots=slots, lanes=switch.lanes, incarnation=1, clock=lambda: self.now,
                 give_up_s=give_up_s)
            for wire in self.wires
        ]  # fmt: skip

    def put_policy(
        self, strategy: Strategy, epoch: int, members: Sequence[int] | None = None, precision: int = 32
    ) -> None:
        """Swaps the policy while the job runs; with other ``members`` it is an eviction, with another ``precision`` a
        change of the format."""
        fields = replace(strategy.compile(range(self.workers) if members is None else members), precision=precision)
        self.switch.put(entries.policy(0, self.session, epoch, fields))

    def _put_job(self, lost_sessions: int) -> None:
        place = {"slots": self.slots, "vector_length": self.slots * self.switch.lanes, "workers": self.workers}
        self.switch.put(job_of(0, **place, lost_sessions=lost_sessions))

    def lose_session(self) -> None:
        """Begins a new session of the job, as after a restart of the switch."""
        self._put_job(1)
        self.session = next(self.sessions)
        self.put_policy(BSP(), 1)

    # -- packets ---------------------------------------------------------------------------------------------

    def carry(self, worker: int, direction: Direction, frame: bytes, arrive: Callable[[bytes], None]) -> None:
        for delay, got in self.links.fate(frame, worker, direction, self.now):
            self.at(WIRE_S + delay, lambda got=got: arrive(got))  # type: ignore[misc]

    def into_switch(self, port: int, frame: bytes) -> None:
        for out, data in self.switch.process([(port, frame)]):
            worker = self._worker_at.get(out)
            if worker is None:
                self.punted.append(data)
            else:
                self.carry(worker, Direction.TO_WORKER, data, self.wires[worker].hear)

    # -- workers ---------------------------------------------------------------------------------------------

    def kill(self, worker: int) -> None:
        self.processes[worker].interrupt()

    def play(self, body: Callable[[int, Pool], None]) -> None:
        """Joins all workers, and runs ``body`` in each until it ends. Exceptions that it raises are kept in
        ``errors``."""

        def live(worker: int) -> None:
            try:
                self.pools[worker].join()
                body(worker, self.pools[worker])
            except Exception as error:
                self.errors[worker] = error

        self.processes = [Process(self, partial(live, worker)) for worker in range(self.workers)]
        for process in self.processes:
            process.start()
        while any(process.alive for process in self.processes):
            if self.now > self.too_late_s or not self.step():
                raise Stuck(f"after {self.now:g} s: {self.errors}")
        while self.step():  # packets that are still on their way
            pass

    def all_reduce(self, vectors: Sequence[np.ndarray], **options: Any) -> list[np.ndarray]:
        """Plays one collective, and returns what each worker has afterwards. options: of `Pool.all_reduce`. Raises the
        first worker's error."""
        results = [vector.copy() for vector in vectors]
        self.play(lambda worker, pool: pool.all_reduce(results[worker], **options))
        for error in self.errors.values():
            raise error
        return results
