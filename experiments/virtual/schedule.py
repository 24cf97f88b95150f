"""One run in virtual time: workers, a bad network, live swaps, and the P4 program.

The workers run ``serene.client.Protocol``, the code that runs over sockets; the switch is p4c's output in the embedded
switch; `serene.faults.Links` decides what becomes of every packet. Workers are slow at random, stand still, or die and
start anew, and strategies are swapped while all this goes on. Everything follows from the seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import numpy as np

from controller.jobs import shrunk
from experiments.virtual.arrivals import Arrivals
from experiments.virtual.checks import Balance, Sent, Violation, balance
from experiments.virtual.plan import Outcome, Plan
from experiments.virtual.switch import SCALE, VirtualSwitch
from experiments.virtual.timeline import Due, Timeline
from serene.client.protocol import Membership, Protocol, Read
from serene.faults import Action, Direction, Event, Links
from serene.fixedpoint import DEFAULT_LIMIT
from serene.strategy import PolicyFields, Strategy
from serene.wire import ENCAPSULATION_BYTES, ReadMode

WIRE_S = 0.001  # what a packet takes without any fault
HELLO_S = 0.1  # until a worker that starts anew is let in again
LARGEST_VALUE = 1000  # of a contribution


class Worker:
    """A training worker without the training: random contributions, and a replica of the sum."""

    def __init__(self, id_: int, protocol: Protocol) -> None:
        self.id = id_
        self.protocol = protocol
        self.values = np.zeros(0, np.int32)  # contributed last
        self.done = 0  # iterations
        self.life = 0  # how often it has started anew
        self.alive = True
        self.still_until = 0.0  # stopped; what arrives waits for it
        self.left = False
        self.pulling = False
        self.timer = 0  # number of the one that counts; older ones are void


class Schedule:
    """One run on a switch that may have had others. ``strategies``: the first, and those that it is swapped for."""

    def __init__(self, switch: VirtualSwitch, plan: Plan, strategies: Iterator[Strategy]) -> None:
        plan.check()
        self.plan = plan
        self.switch = switch
        self.time = Timeline()
        self.links = Links(plan.faults)
        self._rng = random.Random(plan.seed)
        self._strategies = strategies
        self.strategy = next(strategies)
        self.epoch = 1
        self.swaps = self._switched = 0
        self.fields: dict[int, PolicyFields] = {1: self.strategy.compile(range(plan.workers))}  # by epoch
        self.session = switch.begin(plan.workers, plan.slots, self.fields[1])
        self._applied_before = [switch.contributions(worker) for worker in range(plan.workers)]
        self._reads: dict[tuple[int, int], bytes] = {}  # BSP reads by (epoch, round)
        self.bsp_reads = 0
        self.arrivals = Arrivals()
        self._controller_back = 0.0
        self._contributed: list[tuple[int, int, int]] = []  # (worker, life, seq)
        self._interrupted: list[tuple[int, int, int]] = []
        self._sum = np.zeros((plan.slots, switch.program.lanes), np.uint32)
        self._events = list(plan.faults.events)
        self.workers = [Worker(worker, self._protocol(worker)) for worker in range(plan.workers)]

    # -- a run -----------------------------------------------------------------------------------------------

    def run(self) -> Outcome:
        """Until every worker has left and read once more. Raises Violation."""
        for worker in self.workers:
            self.begin(worker)
        self.time.at(self._rng.expovariate(1 / self.plan.swap_every_s), self._swap)
        self._play(lambda: not all(worker.left for worker in self.workers))
        for worker in self.workers:
            self._pull(worker)
        self._play(lambda: any(worker.pulling for worker in self.workers))
        return Outcome(
            contributions=len(self._contributed) * self.plan.slots,
            packets=self._switched,
            lost=self.links.lost,
            duplicated=self.links.duplicated,
            reordered=self.links.reordered,
            retransmissions=sum(worker.protocol.counts.retransmissions for worker in self.workers),
            swaps=self.swaps,
            epochs=self.epoch,
            bsp_reads=self.bsp_reads,
            balance=self.check_exactly_once(),
            virtual_s=self.time.now,
        )

    def begin(self, worker: Worker) -> None:
        """Sets a worker going; it computes, pushes, and goes on until it has done its iterations."""
        self._happen(worker)
        self._compute(worker)

    def _play(self, unfinished: Callable[[], bool]) -> None:
        while unfinished():
            due = self.time.next()
            if due is None or self.time.now > self.plan.too_late_s:
                where = [(worker.protocol.epoch, worker.protocol.round, worker.done) for worker in self.workers]
                raise Violation("no stuck worker", f"under {self.strategy}, epoch {self.epoch}: workers at {where}")
            self._tick(due)

    def run_until(self, until_s: float) -> None:
        """Plays what has begun, up to a time."""
        while (due := self.time.next(until_s)) is not None:
            self._tick(due)

    def _tick(self, due: Due) -> None:
        if due.to_switch:
            self._switched += len(due.to_switch)
            answers = self.switch.process(due.to_switch)
            self.arrivals.come(frame for _, frame in due.to_switch)
            self.arrivals.answered(frame for _, frame in answers)
            for out, frame in answers:
                self._carry(out - 1, Direction.TO_WORKER, frame)
        for worker, frames in due.to_worker.items():
            self._hear(self.workers[worker], frames)
        for action in due.actions:
            action()

    # -- the network -----------------------------------------------------------------------------------------

    def _carry(self, worker: int, direction: Direction, frame: bytes) -> None:
        for delay, packet in self.links.fate(frame, worker, direction, self.time.now):
            due = self.time.after(WIRE_S + delay)
            if direction is Direction.TO_SWITCH:
                due.to_switch.append((self.switch.hosts[worker].port, packet))
            else:
                due.to_worker.setdefault(worker, []).append(packet)

    def _send(self, worker: Worker) -> None:
        """What the worker's protocol wants to send now, and its next timer."""
        rows = worker.protocol.packets(self.time.now)
        if len(rows):
            head = self.switch.frame_head(worker.id, rows.shape[1])
            for row in rows:
                self._carry(worker.id, Direction.TO_SWITCH, head + row.tobytes())
        worker.timer += 1
        deadline = worker.protocol.deadline()
        if deadline is not None:
            self.time.at(deadline - self.time.now, lambda number=worker.timer: self._timer(worker, number))  # type: ignore[misc]

    def _timer(self, worker: Worker, number: int) -> None:
        if number != worker.timer or not worker.alive or worker.protocol.done:
            return
        if self.time.now < worker.still_until:
            self.time.at(worker.still_until - self.time.now, lambda: self._timer(worker, number))
        else:
            self._send(worker)

    def _hear(self, worker: Worker, frames: list[bytes]) -> None:
        if self.time.now < worker.still_until:
            self.time.after(worker.still_until - self.time.now).to_worker.setdefault(worker.id, []).extend(frames)
            return
        if not worker.alive or worker.protocol.done:
            return
        answers: dict[int, list[bytes]] = {}  # by length, as the client sorts them
        for frame in frames:
            answers.setdefault(len(frame), []).append(frame)
        for length in sorted(answers, reverse=True):
            rows = np.frombuffer(b"".join(answers[length]), np.uint8).reshape(-1, length)
            worker.protocol.receive(rows[:, ENCAPSULATION_BYTES:], self.time.now)
        if not worker.protocol.done:
            self._send(worker)
        elif worker.pulling:
            worker.protocol.finish()
            worker.pulling = False
            if not worker.left:
                self._compute(worker)
        else:
            self._went_on(worker)

    # -- a worker's life -------------------------------------------------------------------------------------

    def _protocol(self, worker: int) -> Protocol:
        lanes = self.switch.program.lanes
        membership = Membership(
            session=self.session,
            epoch=self.epoch,
            vector_length=self.plan.slots * lanes,
            slots=self.plan.slots,
            lanes=lanes,
            scale=SCALE,
            limit=int(DEFAULT_LIMIT * SCALE),
            workers=self.plan.workers,
        )
        return Protocol(0, worker, membership, self.switch.hosts[worker].incarnation)

    def contribution(self, worker: int, life: int, seq: int) -> np.ndarray:
        """int32[slots, lanes]; each is made again when it is asked for."""
        numbers = np.random.Generator(np.random.PCG64((self.plan.seed, worker, life, seq)))
        return numbers.integers(-LARGEST_VALUE, LARGEST_VALUE, self._sum.shape, np.int32)

    def _compute(self, worker: Worker) -> None:
        life = worker.life
        time = self.plan.mean_s[worker.id] * self._rng.expovariate(1.0)
        self.time.at(time, lambda: self._computed(worker, life))

    def _computed(self, worker: Worker, life: int) -> None:
        if self.time.now < worker.still_until:
            self.time.at(worker.still_until - self.time.now, lambda: self._computed(worker, life))
        elif worker.life == life and worker.alive:
            self.push(worker)

    def push(self, worker: Worker) -> None:
        worker.values = self.contribution(worker.id, worker.life, worker.protocol.seq + 1)
        worker.protocol.push(worker.values, self.time.now)
        self._send(worker)

    def _pull(self, worker: Worker) -> None:
        worker.protocol.pull(self.time.now)
        worker.pulling = True
        self._send(worker)

    def _went_on(self, worker: Worker) -> None:
        self._contributed.append((worker.id, worker.life, worker.protocol.seq))
        self._sum += worker.values.view(np.uint32)
        worker.done += 1
        read = worker.protocol.finish()
        fields = self.fields[read.epoch]
        told_of_another = worker.protocol.epoch != read.epoch
        if fields.sync_mask >> worker.id & 1 and not told_of_another:
            self.arrivals.went_on(worker.id, self.session, read, fields, self.plan.slots)
            if fields.read_mode is ReadMode.SNAPSHOT and fields.quorum == fields.sync_mask.bit_count():
                self._check_isolation(worker, read)
        self._happen(worker)
        if not worker.alive:
            return
        if worker.done >= self.plan.iterations[worker.id]:
            life = worker.life
            self._command(lambda: self._leave(worker, life))
        else:
            self._compute(worker)

    def _leave(self, worker: Worker, life: int) -> None:
        if worker.life != life:
            return  # it died before the controller heard of it, and will come back
        worker.left = True
        if not all(other.left for other in self.workers):
            self.install(self.strategy)

    # -- the controller --------------------------------------------------------------------------------------

    def _command(self, action: Callable[[], None]) -> None:
        """Now, or when the controller is back."""
        if self.time.now < self._controller_back:
            self.time.at(self._controller_back - self.time.now, lambda: self._command(action))
        else:
            action()

    def install(self, strategy: Strategy) -> None:
        """A live swap, among the workers that have not left."""
        members = [worker.id for worker in self.workers if not worker.left]
        self.epoch += 1
        self.strategy = strategy
        self.fields[self.epoch] = shrunk(strategy, members).compile(members)
        self.switch.swap(self.epoch, self.fields[self.epoch])

    def _swap(self) -> None:
        if self.swaps < self.plan.swaps and not all(worker.left for worker in self.workers):
            self._command(self._swap_now)

    def _swap_now(self) -> None:
        if not all(worker.left for worker in self.workers):
            self.swaps += 1
            self.install(next(self._strategies))
            self.time.at(self._rng.expovariate(1 / self.plan.swap_every_s), self._swap)

    # -- faults of processes ---------------------------------------------------------------------------------

    def _happen(self, worker: Worker) -> None:
        """What the plan has for this moment of a worker."""
        least = min((other.done for other in self.workers), default=0) if len(self._events) else 0
        for event in list(self._events):
            if event.worker == worker.id and event.iteration <= worker.done:
                self._events.remove(event)
                self._befall(worker, event)
            elif event.worker is None and event.iteration <= least:
                self._events.remove(event)
                self._controller_back = self.time.now + event.seconds

    def _befall(self, worker: Worker, event: Event) -> None:
        if event.action is Action.PAUSE_WORKER:
            worker.still_until = max(worker.still_until, self.time.now + event.seconds)
        else:
            # In the middle of what it does next: it has just gone on, and will compute, and push.
            self.time.at(self.plan.mean_s[worker.id], lambda: self._kill(worker, event.seconds))

    def _kill(self, worker: Worker, away_s: float) -> None:
        if worker.left or not worker.alive:
            return
        if not worker.protocol.done and not worker.pulling:
            self._interrupted.append((worker.id, worker.life, worker.protocol.seq))
        worker.alive = worker.pulling = False
        worker.life += 1
        self.time.at(away_s + HELLO_S, lambda: self._command(lambda: self._come_back(worker)))

    def _come_back(self, worker: Worker) -> None:
        """As the controller does it: its entries move to the new process, and a new epoch begins."""
        self.switch.readmit(worker.id)
        self.install(self.strategy)
        worker.protocol = self._protocol(worker.id)
        worker.alive, worker.still_until = True, 0.0
        self._pull(worker)

    # -- what must hold --------------------------------------------------------------------------------------

    def _check_isolation(self, worker: Worker, read: Read) -> None:
        held = worker.protocol.held_values.tobytes()
        if self._reads.setdefault((read.epoch, read.round), held) != held:
            raise Violation(
                "isolated BSP", f"worker {worker.id} read another sum in round {read.round} of epoch {read.epoch}"
            )
        self.bsp_reads += 1

    def check_exactly_once(self) -> Balance:
        """At rest: every replica is the same, and what it lacks or holds twice. Raises Violation."""
        held = self.workers[0].protocol.held_values
        for worker in self.workers:
            if not np.array_equal(worker.protocol.held_values, held):
                raise Violation("exactly once", f"worker {worker.id} holds another sum than worker 0")
        if not self._interrupted:
            applied = sum(self.switch.contributions(w.id) - self._applied_before[w.id] for w in self.workers)
            counted = applied - len(self._contributed) * self.plan.slots
            if np.array_equal(held, self._sum) and counted:
                raise Violation("exactly once", f"the switch counted {counted:+} contributions")
        if np.array_equal(held, self._sum):
            return Balance()
        sent = Sent(
            [self.contribution(*key) for key in self._contributed],
            [self.contribution(*key) for key in self._interrupted],
        )
        return balance(sent, held)
