"""Workers, a bad network and the P4 program in one process and in virtual time.

The workers run ``serene.client.Protocol``, the code that runs over sockets; the switch is p4c's output in the embedded
switch. Packets are lost, repeated and overtaken at random, workers are slow at random, and strategies are swapped
while all this goes on. Everything follows from the seed.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from serene.client.protocol import Membership, Protocol, Read
from serene.strategy import ASP, BSP, SSP, Mixed, PolicyFields, Quorum, Strategy
from serene.wire import ENCAPSULATION_BYTES, UNBOUNDED, ReadMode
from tests.frames import frame

if TYPE_CHECKING:
    from tests.dataplane.conftest import EmbeddedDataPlane

LANES, SLOTS, SESSION, SCALE = 320, 3, 7, 2**20
TOO_LATE = 10_000.0  # virtual seconds; a run takes some hundred


@dataclass(frozen=True)
class Weather:
    """Of the network: probabilities of loss and repetition, and the mean delay in seconds."""

    loss: float = 0.0
    repeat: float = 0.0
    delay_s: float = 0.01


@dataclass
class Worker:
    """A training worker without the training: random contributions, and a replica of the sum."""

    id: int
    iterations: int
    mean_s: float
    protocol: Protocol
    sent: np.ndarray = field(default_factory=lambda: np.zeros((SLOTS, LANES), np.uint32))
    left: bool = False
    pulling: bool = False
    wake: int = 0  # number of the timer that counts; older ones are void


class Schedule:
    """One run. ``swaps`` yields the strategies that come after the first, each at a random time."""

    def __init__(
        self,
        plane: EmbeddedDataPlane,
        seed: int,
        *,
        workers: int,
        strategies: Iterator[Strategy],
        swaps: int,
        weather: Weather,
        iterations: int = 25,
    ) -> None:
        self.rng = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.plane = plane
        self.weather = weather
        self.now = 0.0
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._events = 0
        self._strategies = strategies
        self._swaps = swaps
        self.epoch = 1
        self.strategy = next(strategies)
        self.fields: dict[int, PolicyFields] = {}  # by epoch
        self.reads: dict[tuple[int, int], bytes] = {}  # BSP reads by (epoch, round)
        self.bsp_reads = 0
        membership = Membership(SESSION, 1, SLOTS * LANES, SLOTS, LANES, SCALE, workers)
        self.workers = [
            Worker(worker, iterations + self.rng.randrange(10), self.rng.choice([0.02, 0.2, 1.0]),
                   Protocol(0, worker, membership))
            for worker in range(workers)
        ]  # fmt: skip
        plane.clear()
        plane.start_job(self.strategy, slots=SLOTS, workers=workers)
        self.fields[1] = self.strategy.compile(range(workers))

    # -- time ------------------------------------------------------------------------------------------------

    def at(self, delay: float, action: Callable[[], None]) -> None:
        self._events += 1
        heapq.heappush(self._queue, (self.now + delay, self._events, action))

    def run(self) -> None:
        """Until every worker has left and read once more. Fails when somebody is stuck."""
        for worker in self.workers:
            self._compute(worker)
        self.at(self.rng.expovariate(0.5), self._swap)
        while self._queue and not all(worker.left and not worker.pulling for worker in self.workers):
            self.now, _, action = heapq.heappop(self._queue)
            assert self.now < TOO_LATE, f"stuck under {self.strategy}: {[w.protocol.seq for w in self.workers]}"
            action()
        self._read_once_more()

    def run_until(self, until: float) -> None:
        """Plays events up to a time, and no worker's life beyond what was begun."""
        while self._queue and self._queue[0][0] <= until:
            self.now, _, action = heapq.heappop(self._queue)
            action()

    def _read_once_more(self) -> None:
        for worker in self.workers:
            worker.protocol.pull(self.now)
            worker.pulling = True
            self._send(worker)
        while self._queue and any(worker.pulling for worker in self.workers):
            self.now, _, action = heapq.heappop(self._queue)
            assert self.now < TOO_LATE, "stuck in the last read"
            action()

    # -- swaps -----------------------------------------------------------------------------------------------

    def install(self, strategy: Strategy) -> None:
        members = [worker.id for worker in self.workers if not worker.left]
        self.epoch += 1
        self.strategy = strategy
        try:
            fields = strategy.compile(members)
        except Exception:
            fields = ASP().compile(members)  # meant for workers that have left
        self.fields[self.epoch] = fields
        self.plane.modify("policy", [0], "set_policy", self.plane.policy(SESSION, self.epoch, fields))

    def _swap(self) -> None:
        if self._swaps and not all(worker.left for worker in self.workers):
            self._swaps -= 1
            self.install(next(self._strategies))
            self.at(self.rng.expovariate(0.5), self._swap)

    # -- the network -----------------------------------------------------------------------------------------

    def _net(self, action: Callable[[], None]) -> None:
        if self.rng.random() < self.weather.loss:
            return
        self.at(self.rng.expovariate(1 / self.weather.delay_s), action)
        if self.rng.random() < self.weather.repeat:
            self.at(self.rng.expovariate(0.1 / self.weather.delay_s), action)

    def _send(self, worker: Worker) -> None:
        """What the worker's protocol wants to send now, and its next timer."""
        for payload in worker.protocol.packets(self.now):
            data = frame(payload.tobytes(), worker.id)
            self._net(lambda data=data: self._at_switch(worker.id, data))
        worker.wake += 1
        deadline = worker.protocol.deadline()
        if deadline is not None:
            self.at(max(deadline - self.now, 0.001), lambda number=worker.wake: self._timer(worker, number))

    def _timer(self, worker: Worker, number: int) -> None:
        if number == worker.wake and not worker.protocol.done:
            self._send(worker)

    def _at_switch(self, sender: int, data: bytes) -> None:
        for port, reply in self.plane.switch.process(sender + 1, data):
            receiver = self.workers[port - 1]
            payload = np.frombuffer(reply[ENCAPSULATION_BYTES:], np.uint8)
            self._net(lambda receiver=receiver, payload=payload: self._arrives(receiver, payload))

    def _arrives(self, worker: Worker, payload: np.ndarray) -> None:
        if worker.protocol.done:
            return
        worker.protocol.receive(payload[None, :], self.now)
        if not worker.protocol.done:
            self._send(worker)
        elif worker.pulling:
            worker.protocol.finish()
            worker.pulling = False
        else:
            self._went_on(worker)

    # -- a worker's life -------------------------------------------------------------------------------------

    def _compute(self, worker: Worker) -> None:
        self.at(worker.mean_s * self.rng.expovariate(1.0), lambda: self.push(worker))

    def push(self, worker: Worker) -> None:
        values = self.numbers.integers(-1000, 1000, (SLOTS, LANES)).astype(np.int32)
        worker.sent += values.astype(np.uint32)
        worker.protocol.push(values, self.now)
        self._send(worker)

    def _went_on(self, worker: Worker) -> None:
        announced = bool(worker.protocol._announced)
        read = worker.protocol.finish()
        fields = self.fields[read.epoch]
        if not announced and fields.sync_mask >> worker.id & 1 and fields.quorum == fields.sync_mask.bit_count():
            self._check_staleness(worker, read, fields)
            if fields.read_mode is ReadMode.SNAPSHOT:
                self._check_isolation(worker, read)
        if worker.protocol.seq >= worker.iterations:
            worker.left = True
            if not all(other.left for other in self.workers):
                self.install(self.strategy)
        else:
            self._compute(worker)

    # -- what must hold --------------------------------------------------------------------------------------

    def _check_staleness(self, worker: Worker, read: Read, fields: PolicyFields) -> None:
        if fields.staleness == UNBOUNDED:
            return
        # Another worker's round is the one it is in: it has contributed to all before it.
        others = [other for other in self.workers if fields.sync_mask >> other.id & 1 and other is not worker]
        rounds = [
            other.protocol.round if other.protocol.epoch == read.epoch else -1
            for other in others
            if other.protocol.epoch <= read.epoch
        ]
        ahead = read.round - min(rounds, default=read.round)
        assert ahead <= fields.staleness, (worker.id, read.epoch, read.round, rounds, fields)

    def _check_isolation(self, worker: Worker, read: Read) -> None:
        held = worker.protocol.held_values.tobytes()
        assert self.reads.setdefault((read.epoch, read.round), held) == held, (worker.id, read.epoch, read.round)
        self.bsp_reads += 1

    def check_exactly_once(self) -> None:
        """Every replica equals the sum of every contribution, and the switch counted each of them once."""
        total = sum((worker.sent for worker in self.workers), np.zeros((SLOTS, LANES), np.uint32))
        for worker in self.workers:
            assert np.array_equal(worker.protocol.held_values, total), worker.id
            assert self.plane.counter("contributions", worker.id) == worker.protocol.seq * SLOTS


def any_strategy(rng: random.Random, workers: int) -> Strategy:
    return rng.choice(
        [BSP(), SSP(rng.randint(1, 15)), ASP(), Quorum(rng.randint(1, workers)), Mixed((rng.randrange(workers),)),
         Mixed((rng.randrange(workers),), rng.randint(1, 5))]
    )  # fmt: skip
