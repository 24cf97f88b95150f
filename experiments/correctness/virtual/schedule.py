"""One run in virtual time: workers, a bad network, live swaps, a controller and a switch.

The workers run `serene.client.Client`, the controller is the real one, the switch is the compiled P4
program in the embedded switch (or, in tests, a model of it in Python), and `serene.faults.Links` decides what becomes
of every packet. Meanwhile the events of a `Plan` come: workers pause, die, join twice and are evicted, the controller
dies, jobs are deleted, strategies are swapped. Everything follows from the seed.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from serene.client.protocol.protocol import Membership
from serene.controller.coordinator import Coordinator
from serene.controller.jobs.job import RETURN_S, Job, JobState, WorkerState
from serene.controller.switch.connection import Learned, PacketIn
from serene.controller.switch.fabric import Fabric, OnConnected, OnPacket
from serene.controller.switch.plan_entries import installed
from serene.controller.switch.switch import Switch, SwitchOptions
from serene.entries import CPU_PORT, OWN, Entry
from serene.experiments.correctness.virtual.checks import Violation
from serene.experiments.correctness.virtual.clock import Due, Timeline
from serene.experiments.correctness.virtual.controller import VirtualController
from serene.experiments.correctness.virtual.events import WELCOMED_S, Events
from serene.experiments.correctness.virtual.hostile import PORT as HOSTILE_PORT
from serene.experiments.correctness.virtual.hostile import Hostile
from serene.experiments.correctness.virtual.ledger import Ledger
from serene.experiments.correctness.virtual.plan import Outcome, Plan
from serene.experiments.correctness.virtual.switch import CommandedSwitch, Plane
from serene.experiments.correctness.virtual.watch import INCARNATION, OP, Watch, field
from serene.experiments.correctness.virtual.worker import Incarnation, Place
from serene.faults import Direction, Links
from serene.strategy import PolicyFields, Strategy, shrunk
from serene.wire import Op

WIRE_S = 0.001  # time that a packet takes over a link without faults
PACKET_IN_LATE_S = 0.05  # by which a tenth of the packet-ins are late
BACK_S = 0.3  # mean time until a worker whose job was deleted is started again
JOBS = 2  # ids that the jobs of a run may have

_OF_JOBS = frozenset(("member", "address", "job", "known_source", "forward", "root", "prepared"))  # tables
_SEQ, _SESSION = field("seq"), field("session")
_DO_NOT_VOTE = frozenset(("joined again", "gave up and joined again", "evicted", "jobs deleted"))  # or not surely
_TO_INCARNATION = frozenset((Op.WELCOME, Op.REFUSED, Op.BYE, Op.WAIT))  # these carry the incarnation that they are for


class Schedule:
    """One run. ``switch`` may have had other runs before. ``strategies``: the first one, and those that it is swapped
    for. Raises BadFaults."""

    def __init__(self, switch: Plane, plan: Plan, strategies: Iterator[Strategy]) -> None:
        plan.check()
        self.plan = plan
        self.switch, self.switches, self.lanes = switch, switch.switches, switch.lanes
        self.time = Timeline(self._tick)
        self.watch = self.new_watch()
        self.links = Links(plan.faults)
        self.happened: Counter[str] = Counter()
        self._rng = random.Random(plan.seed)
        self._strategies = strategies
        self.strategy = next(strategies)
        self.swaps = self._switched = 0
        self.restarted_at = -math.inf
        self.job = 0
        self._ledgers: dict[int, Ledger] = {}  # by session
        self.ledger = self._new_ledger()
        self._deleting = False  # whether its user is about to delete the job
        self.next_too = False  # whether to delete also the job that follows a deleted one, while its workers join
        self.places = [self.place(worker) for worker in range(plan.workers)]
        self._port_of = {worker + 1: worker for worker in range(plan.workers)}
        self.controller = VirtualController(self)
        self.events = Events(self, plan, self._rng)
        self._failure: BaseException | None = None
        self._hostile = Hostile(self, plan.hostile_every_s) if plan.hostile_every_s else None

    def new_watch(self) -> Watch:
        return Watch()

    def place(self, worker: int) -> Place:
        return Place(self, worker)

    def fabric(self, reach: Callable[..., Any], on_packet: OnPacket, on_connected: OnConnected) -> Fabric:
        return Switch(
            SwitchOptions("0", 0, 1, [*self._port_of, HOSTILE_PORT], OWN),
            self.switches[0].program,
            on_packet=lambda port, frame: on_packet(0, port, frame),
            on_connected=on_connected,
            reach=reach,
        )

    def _new_ledger(self) -> Ledger:
        sums = np.zeros((self.plan.slots, self.lanes), np.uint32)
        return Ledger(self.job, sums, [0] * self.plan.workers)

    def new_incarnation(self) -> int:
        return self._rng.randrange(1, 2**32)

    # -- a run -----------------------------------------------------------------------------------------------

    def run(self) -> Outcome:
        """Plays until every worker has left and read once more. Raises Violation."""
        try:
            self.start()
            while self.left():
                if not self.time.step() or self.time.now > self.plan.too_late_s:
                    raise self._stuck()
            return self._outcome()
        finally:
            self.close()

    def left(self) -> set[int]:
        """Workers that have not read last."""
        return set(range(self.plan.workers)) - self.ledger.finals.keys()

    def start(self) -> None:
        self.controller.start()
        for place in self.places:
            self.time.at(self.begins_at(place), place.start)
        self.time.at(self._rng.expovariate(1 / self.plan.swap_every_s), self._swap)
        if self._hostile is not None:
            self._hostile.start()

    def begins_at(self, place: Place) -> float:
        """When a place's first process is started, in virtual seconds."""
        return self._rng.uniform(0.0, 0.01)

    def close(self) -> None:
        """Ends all processes and removes the jobs' entries from the switch, except the policies: they keep the
        sessions' numbers, which the next run has to exceed."""
        self.controller.close()
        for place in self.places:
            for incarnation in place.incarnations:
                incarnation.process.interrupt()
        for switch in self.switches:
            for entry in switch.entries():
                if entry.table in _OF_JOBS:
                    switch.delete(entry)

    def _outcome(self) -> Outcome:
        incarnations = [incarnation for place in self.places for incarnation in place.incarnations]
        for incarnation in incarnations:
            incarnation.interrupted()
        return Outcome(
            contributions=sum(len(ledger.certain) for ledger in self._ledgers.values()) * self.plan.slots,
            packets=self._switched,
            lost=self.links.lost,
            duplicated=self.links.duplicated,
            reordered=self.links.reordered,
            retransmissions=sum(each.client.counts.retransmissions for each in incarnations if each.ledger is not None),
            swaps=self.swaps,
            epochs=len(self.watch.fields),
            bsp_reads=self.watch.bsp_reads,
            balance=self.ledger.check(self.plan.seed, all_notified=self.all_vote()),
            virtual_s=self.time.now,
            happened=dict(self.happened),
        )

    def all_vote(self) -> bool:
        """Whether everybody who contributed to a lost session has helped to restore its sums."""
        alone = all(len(place.incarnations) == 1 for place in self.places)
        return alone and not _DO_NOT_VOTE & self.happened.keys()

    def _stuck(self) -> Violation:
        where = [
            (each.client.epoch, each.client.round) if each.ledger is not None else "not joined"
            for each in (place.present for place in self.places)
        ]
        return Violation("no stuck worker", f"under {self.strategy}: workers at {where}, done {self.ledger.done}")

    def run_until(self, until_s: float) -> None:
        """Plays up to a virtual time, in seconds."""
        while self.time.step(until_s):
            pass

    def _tick(self, due: Due) -> None:
        if due.to_switch:
            self._through_the_switch(due.to_switch)
        for port, frames in due.to_port.items():
            self._note_replies(port, frames)
            self.places[self._port_of[port]].hear(frames)
        for action in due.actions:
            action()
        if self._failure is not None:
            raise self._failure

    def failed(self, error: BaseException) -> None:
        """Ends the run, with an error that the controller had or made, at the end of the tick."""
        if not isinstance(error, Violation):
            violation = Violation("nobody is stopped", f"the controller: {type(error).__name__}: {error}")
            violation.__cause__ = error
            error = violation
        self._failure = self._failure or error

    def _through_the_switch(self, packets: list[tuple[int, bytes]]) -> None:
        packets = [(port, frame) for port, frame in packets if self.controller.servers[self.enters(port)].up]
        if not packets:
            return
        self._switched += len(packets)
        self.watch.arrivals.come(self.in_job(port, frame) for port, frame in packets if port in self._port_of)
        came_out = self.switch.process(packets)
        self.watch.frames_sent([self.in_job(port, frame) for port, frame in came_out if port < CPU_PORT])
        for port, frame in came_out:
            self.to_port(port, frame)
        if any(port == HOSTILE_PORT for port, _ in packets):  # workers' packets are not ordinary ones
            self.learn()

    def enters(self, port: int) -> int:
        """The number of the switch that a packet at this port enters."""
        return 0

    def in_job(self, port: int, frame: bytes) -> bytes:
        """A frame that comes in or goes out at a port, with the worker's number in the job, and masks of these."""
        return frame

    def learn(self) -> None:
        """Notifies the controller of the hosts that switches did not know."""
        for number, switch in enumerate(self.switches):
            if sources := switch.learned():
                self.controller.hear(number, Learned(sources, None))

    # -- the network -----------------------------------------------------------------------------------------

    def carry(self, worker: int, direction: Direction, port: int, frame: bytes) -> None:
        """Sends a frame over a worker's link, with its faults. port: the switch's, at its other end."""
        if direction is Direction.TO_SWITCH and self._hostile is not None:
            self._hostile.overhears(frame)
        for delay, packet in self.links.fate(frame, worker, direction, self.time.now):
            due = self.time.after(WIRE_S + delay)
            if direction is Direction.TO_SWITCH:
                due.to_switch.append((port, packet))
            else:
                due.to_port.setdefault(port, []).append(packet)

    def to_port(self, port: int, frame: bytes) -> None:
        """Sends a frame that comes out of the switch at a port; one without a worker has nobody who listens."""
        worker = self._port_of.get(port)
        if port == CPU_PORT:
            self.packet_in(0, frame)
        elif worker is not None:
            self.carry(worker, Direction.TO_WORKER, port, frame)

    def packet_in(self, number: int, frame: bytes) -> None:
        """Hands a frame from the CPU port of a switch to the controller. It begins with the packet-in header: nine bits
        of port, seven of padding."""
        port, data = int.from_bytes(frame[:2], "big") >> 7, frame[2:]
        if port in self._port_of:
            here = self.places[self._port_of[port]].incarnations
            if here and int.from_bytes(data[INCARNATION], "big") != here[-1].client.incarnation:
                self.happened[f"{Op(data[OP]).name} of an older incarnation"] += 1
        late = PACKET_IN_LATE_S if self._rng.random() < 0.1 else 0.0
        hear = lambda: self.controller.hear(number, PacketIn(port, data))  # noqa: E731
        self.controller.servers[number].packet_in(lambda: self.time.at(late, hear))

    def packet_out(self, number: int, port: int, frame: bytes) -> None:
        """The controller has a switch send a frame out of a port."""
        self.time.after(0.0).to_switch.append((self.cpu_port(number), (port << 7).to_bytes(2, "big") + frame))

    def cpu_port(self, number: int) -> int:
        """The port of a switch to the controller."""
        return CPU_PORT

    def _note_replies(self, port: int, frames: list[bytes]) -> None:
        for frame in frames:
            incarnations = self.places[self._port_of[port]].incarnations
            if len(frame) <= OP or frame[OP] not in _TO_INCARNATION or not incarnations:
                continue
            if int.from_bytes(frame[INCARNATION], "big") != incarnations[-1].client.incarnation:
                self.happened[f"{Op(frame[OP]).name} to an older incarnation"] += 1
            elif frame[OP] == Op.WAIT and any(frame[_SEQ]) and any(frame[_SESSION]):
                old = int.from_bytes(frame[_SESSION], "big") != incarnations[-1].session
                self.happened["called for an older session" if old else "called"] += 1

    # -- workers ---------------------------------------------------------------------------------------------

    def compute_s(self, place: Place) -> float:
        return self.plan.mean_s[place.id] * self._rng.expovariate(1.0)

    def joined(self, incarnation: Incarnation, membership: Membership) -> Ledger:
        """The ledger of the job that an incarnation has joined. Raises Violation."""
        ledger = self._ledgers[membership.session]
        # It may first have joined the deleted job, by a WELCOME that was late, but then it has read nothing of it.
        if incarnation.ledger not in (None, ledger) and incarnation.replica.any():
            raise Violation(
                "no wrong read", f"worker {incarnation.place.id} of a deleted job continues in the next one"
            )
        return ledger

    def refused(self, incarnation: Incarnation, reason: str) -> None:
        """An incarnation ends because it was refused. If it was started for a job that was deleted, its user starts
        another one for the next job. Raises Violation if it should not have been refused."""
        place = incarnation.place
        others = [other for other in place.incarnations if other is not incarnation]
        if self.holds_its_place(incarnation) and not self._deleting:
            raise Violation("nobody is stopped", f"worker {place.id} is a member, and was refused: {reason}")
        if incarnation.started_for is not self.ledger or self._deleting:
            self.happened["sent away"] += 1
            if not place.awaited and not any(other.process.alive for other in others):
                place.start_after(self._rng.expovariate(1 / BACK_S))
        elif self._was_left_out(place):
            self.happened["evicted, and back when the job was over"] += 1
            self.ledger.finals[place.id] = None
        elif any(self.holds_its_place(other, before=True) and not other.process.alive for other in others):
            # The other one asked, was ended, and then got the place: nobody can know, and its user starts another one.
            self.happened["the place went to a process that had ended"] += 1
            if not place.awaited:
                place.start_after(self._rng.expovariate(1 / BACK_S))
        elif not place.awaited and not any(other.process.alive or other.finished for other in others):
            raise Violation("nobody is stopped", f"worker {place.id} was refused: {reason}")

    def _was_left_out(self, place: Place) -> bool:
        """Whether the job is over, and the controller has waited in vain for this evicted worker after a loss."""
        job = self.controller.known(self.job)
        if job is None or job.state is not JobState.FINISHED or self.time.now < self.restarted_at + RETURN_S:
            return False
        return bool(job.lost_sessions) and job.workers[place.id].state is WorkerState.EVICTED

    # -- users, and what they command ------------------------------------------------------------------------

    async def taken_over(self, coordinator: Coordinator) -> None:
        """A controller has taken over. A job that still waited for workers is in no entry: its user creates it
        again."""
        self.watch.successor()
        if coordinator.jobs.get(self.job) is None and not self._deleting:
            await self._create(coordinator)

    async def _create(self, coordinator: Coordinator) -> None:
        await coordinator.create_job(self.plan.workers, self.strategy, job=self.job)

    def wrote(self, switch: CommandedSwitch, entry: Entry) -> None:
        """The controller inserts or replaces an entry."""
        try:
            if entry.table == "policy":
                job = installed([entry]).jobs[entry.match["job"]]
                assert job.fields is not None
                self.decided(entry.match["job"], job.session, job.epoch, job.fields)
            elif entry.table == "member":
                self.watch.admitted(entry.match["job"], entry.match["worker"], entry.match["incarnation"])
        except Violation as violation:
            self.failed(violation)

    def decided(self, job: int, session: int, epoch: int, fields: PolicyFields) -> None:
        """The controller puts a policy in force. Raises Violation."""
        if session not in self._ledgers:
            self._begin(job, session)
        self.watch.decided(session, epoch, fields)

    def _begin(self, job: int, session: int) -> None:
        """A job begins a session. Raises Violation if its number is not the highest so far."""
        assert job == self.ledger.job
        if session in self._ledgers or session <= max(self._ledgers, default=0):
            raise Violation("no wrong read", f"session {session} after {sorted(self._ledgers)}")
        self._ledgers[session] = self.ledger
        self.ledger.sessions.add(session)
        if self.next_too:
            self.next_too = False
            self.time.at(self._rng.uniform(0.0, WELCOMED_S), lambda: self.controller.command(self.delete_job))

    def install(self, strategy: Strategy) -> None:
        """Commands a live swap."""
        self.controller.command(lambda coordinator: self._install(coordinator, strategy))

    def running(self, coordinator: Coordinator) -> Job | None:
        """The job, if it runs and has members."""
        job = coordinator.jobs.get(self.job)
        return job if job is not None and job.state is JobState.RUNNING and job.members() else None

    async def _install(self, coordinator: Coordinator, strategy: Strategy) -> None:
        """Swaps the strategy, restricted to the members that are left."""
        job = self.running(coordinator)
        if job is not None and (await coordinator.set_strategy(self.job, shrunk(strategy, job.members()))).changed:
            self.strategy = strategy

    def _swap(self) -> None:
        if self.swaps < self.plan.swaps:
            self.controller.command(self._swap_now)

    async def _swap_now(self, coordinator: Coordinator) -> None:
        try:
            if self.running(coordinator) is not None:
                self.swaps += 1
                await self._install(coordinator, next(self._strategies))
        finally:
            self.time.at(self._rng.expovariate(1 / self.plan.swap_every_s), self._swap)

    async def delete_job(self, coordinator: Coordinator) -> None:
        """Deletes the job, and creates another one, perhaps with the same id. Where the controller dies meanwhile, its
        user does the rest by the next one."""
        if not self._deleting:
            if self.running(coordinator) is None:
                return
            self.happened["jobs deleted"] += 1
            self._deleting = True
        if coordinator.jobs.get(self.job) is not None:
            await coordinator.delete_job(self.job)
        self._deleting = False
        self.job = self._rng.randrange(JOBS)
        self.ledger = self._new_ledger()
        await self._create(coordinator)

    # -- what befalls them -----------------------------------------------------------------------------------

    def happen(self, place: Place) -> None:
        """Plays the events that are due now that a worker has finished an iteration."""
        self.events.happen(place)

    def lose_switch(self, number: int, away_s: float) -> None:
        """A switch restarts."""
        self.restarted_at = self.time.now
        self.controller.restart_switch(number, away_s)

    def at_work(self, incarnation: Incarnation) -> bool:
        """Whether a process is alive, in the present job, and not leaving."""
        return incarnation.process.alive and incarnation.ledger is self.ledger and not incarnation.leaving

    def holds_its_place(self, process: Incarnation, before: bool = False) -> bool:
        """Whether the controller holds a process for its worker: one that joins again may have taken the place back.
        before: or did so when the session was lost, and the place is empty since."""
        job = self.controller.known(self.job)
        if job is None or process.ledger is not self.ledger:
            return False
        held = job.workers[process.place.id]
        at = held.endpoint or (held.before if before else None)
        return at is not None and at.incarnation == process.client.incarnation
