"""One run in virtual time: workers, a bad network, live swaps, a controller and a switch.

The workers run `serene.client.Client`, the controller decides with `controller.jobs`, the switch is p4c's output in the
embedded switch (or, in tests, the protocol's rules in Python), and `serene.faults.Links` decides what becomes of every
packet. Workers are slow at random, stand still, die and come back, join twice, are evicted; the controller dies; jobs
are deleted and others begin; strategies are swapped while all this goes on. Everything follows from the seed.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import numpy as np

from experiments.correctness.virtual.checks import Violation
from experiments.correctness.virtual.controller import VirtualController
from experiments.correctness.virtual.hostile import PORT as HOSTILE_PORT
from experiments.correctness.virtual.hostile import Hostile
from experiments.correctness.virtual.ledger import Ledger
from experiments.correctness.virtual.plan import Happening, Outcome, Plan, What
from experiments.correctness.virtual.switch import CPU_PORT, VirtualSwitch
from experiments.correctness.virtual.timeline import Due, Timeline
from experiments.correctness.virtual.watch import INCARNATION, OP, Watch
from experiments.correctness.virtual.worker import Incarnation, Place
from serene.client.protocol import Membership
from serene.faults import Action, Direction, Event, Links
from serene.strategy import Strategy
from serene.wire import Op

WIRE_S = 0.001  # what a packet takes without any fault
PACKET_IN_LATE_S = 0.05  # what a request waits for the controller, now and then
BACK_S = 0.3  # until a worker that was sent away is started anew
WELCOMED_S = 0.3  # after a job has begun, its workers know it; unless packets are lost
JOBS = 2  # ids that jobs of a run have

_TOLD = frozenset((Op.WELCOME, Op.REFUSED, Op.BYE, Op.WAIT))  # carry the incarnation that they are meant for


class Schedule:
    """One run on a switch that may have had others. ``strategies``: the first, and those that it is swapped for."""

    def __init__(self, switch: VirtualSwitch, plan: Plan, strategies: Iterator[Strategy]) -> None:
        plan.check()
        self.plan = plan
        self.switch = switch
        self.time = Timeline(self._tick)
        self.watch = self.new_watch()
        self.links = Links(plan.faults)
        self.happened: Counter[str] = Counter()
        self._rng = random.Random(plan.seed)
        self._strategies = strategies
        self.strategy = next(strategies)
        self.swaps = self._switched = 0
        self.job = 0
        self._ledgers: dict[int, Ledger] = {}  # by session
        self.ledger = self._new_ledger()
        self._events: list[Event | Happening] = [*plan.faults.events, *plan.happenings]
        self._clock_steps = list(plan.clock_steps_s)
        self._next_too = False  # the job after one that was deleted is deleted as it begins
        switch.set_ports([*(worker + 1 for worker in range(plan.workers)), HOSTILE_PORT])
        self.places = [self.place(worker) for worker in range(plan.workers)]
        self._port_of = {worker + 1: worker for worker in range(plan.workers)}
        self.controller = VirtualController(self)
        self._hostile = Hostile(self, plan.hostile_every_s) if plan.hostile_every_s else None

    def new_watch(self) -> Watch:
        return Watch()

    def place(self, worker: int) -> Place:
        return Place(self, worker)

    def _new_ledger(self) -> Ledger:
        sums = np.zeros((self.plan.slots, self.switch.lanes), np.uint32)
        return Ledger(self.job, sums, [0] * self.plan.workers)

    def new_incarnation(self) -> int:
        return self._rng.randrange(1, 2**32)

    # -- a run -----------------------------------------------------------------------------------------------

    def run(self) -> Outcome:
        """Until every worker has left and read once more. Raises Violation."""
        try:
            self.start()
            while len(self.ledger.finals) < self.plan.workers:
                if not self.time.step() or self.time.now > self.plan.too_late_s:
                    raise self._stuck()
            return self._outcome()
        finally:
            self.close()

    def start(self) -> None:
        self.controller.start()
        for place in self.places:
            self.time.at(self._rng.uniform(0.0, 0.01), place.start)
        self.time.at(self._rng.expovariate(1 / self.plan.swap_every_s), self._swap)
        if self._hostile is not None:
            self._hostile.start()

    def close(self) -> None:
        """Ends all processes, and leaves nothing of the run's jobs in the switch but the record of their sessions."""
        self.controller.close()
        for place in self.places:
            for incarnation in place.incarnations:
                incarnation.process.interrupt()
        for (table, _), entry in list(self.switch.table.items()):
            if table in ("member", "address", "job"):
                self.switch.delete(entry)

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
            balance=self.ledger.check(self.plan.seed),
            virtual_s=self.time.now,
            happened=dict(self.happened),
        )

    def _stuck(self) -> Violation:
        where = [
            (each.client.epoch, each.client.round) if each.ledger is not None else "not joined"
            for each in (place.present for place in self.places)
        ]
        return Violation("no stuck worker", f"under {self.strategy}: workers at {where}, done {self.ledger.done}")

    def run_until(self, until_s: float) -> None:
        """Plays what has begun, up to a time."""
        while self.time.step(until_s):
            pass

    def _tick(self, due: Due) -> None:
        if due.to_switch:
            self._through_the_switch(due.to_switch)
        for port, frames in due.to_port.items():
            self._told(port, frames)
            self.places[self._port_of[port]].hear(frames)
        for action in due.actions:
            action()

    def _through_the_switch(self, packets: list[tuple[int, bytes]]) -> None:
        self._switched += len(packets)
        self.watch.arrivals.come(frame for port, frame in packets if port in self._port_of)
        came_out = self.switch.process(packets)
        self.watch.said([frame for port, frame in came_out if port != CPU_PORT])
        for port, frame in came_out:
            if port == CPU_PORT:
                self._packet_in(frame)
            else:
                self.to_port(port, frame)

    # -- the network -----------------------------------------------------------------------------------------

    def carry(self, worker: int, direction: Direction, port: int, frame: bytes) -> None:
        """Over a worker's link, on whose other end that port is."""
        if direction is Direction.TO_SWITCH and self._hostile is not None:
            self._hostile.overhears(frame)
        for delay, packet in self.links.fate(frame, worker, direction, self.time.now):
            due = self.time.after(WIRE_S + delay)
            if direction is Direction.TO_SWITCH:
                due.to_switch.append((port, packet))
            else:
                due.to_port.setdefault(port, []).append(packet)

    def to_port(self, port: int, frame: bytes) -> None:
        """A frame that comes out of the switch."""
        worker = self._port_of.get(port)
        if worker is not None:
            self.carry(worker, Direction.TO_WORKER, port, frame)

    def _packet_in(self, frame: bytes) -> None:
        """A packet-in begins with its header: nine bits of port, seven of padding."""
        port, data = int.from_bytes(frame[:2], "big") >> 7, frame[2:]
        if port in self._port_of:
            here = self.places[self._port_of[port]].incarnations
            if int.from_bytes(data[INCARNATION], "big") != here[-1].client.incarnation:
                self.happened[f"{Op(data[OP]).name} of an older incarnation"] += 1
        late = PACKET_IN_LATE_S if self._rng.random() < 0.1 else 0.0
        self.time.at(late, lambda: self.controller.packet_in(port, data))

    def _told(self, port: int, frames: list[bytes]) -> None:
        for frame in frames:
            if len(frame) > OP and frame[OP] in _TOLD:
                incarnations = self.places[self._port_of[port]].incarnations
                if int.from_bytes(frame[INCARNATION], "big") != incarnations[-1].client.incarnation:
                    self.happened[f"{Op(frame[OP]).name} to an older incarnation"] += 1

    # -- workers ---------------------------------------------------------------------------------------------

    def compute_s(self, place: Place) -> float:
        return self.plan.mean_s[place.id] * self._rng.expovariate(1.0)

    def joined(self, incarnation: Incarnation, membership: Membership) -> Ledger:
        """The job whose session it has been welcomed to."""
        ledger = self._ledgers[membership.session]
        # A WELCOME that was late may have brought it into the deleted job, of which it has read nothing then.
        if incarnation.ledger not in (None, ledger) and incarnation.replica.any():
            raise Violation("no wrong read", f"worker {incarnation.place.id} of a deleted job goes on in the next one")
        return ledger

    def refused(self, incarnation: Incarnation, reason: str) -> None:
        """It ends. A worker of a job that was deleted is started anew, for the next one."""
        place = incarnation.place
        others = [other for other in place.incarnations if other is not incarnation]
        if self._holds_its_place(incarnation):
            raise Violation("nobody is stopped", f"worker {place.id} is a member, and was refused: {reason}")
        if incarnation.started_for is not self.ledger:
            self.happened["sent away"] += 1
            if not place.awaited and not any(other.process.alive for other in others):
                place.start_after(self._rng.expovariate(1 / BACK_S))
        elif not place.awaited and not any(other.process.alive or other.finished for other in others):
            raise Violation("nobody is stopped", f"worker {place.id} was refused: {reason}")

    def active(self) -> set[int]:
        """The workers that have been heard lately: nobody is away for long."""
        return {place.id for place in self.places}

    # -- users, and what they command ------------------------------------------------------------------------

    def taken_over(self) -> None:
        """A controller is up; jobs that waited for workers are known to users only."""
        if self.controller.jobs.get(self.job) is None:
            self.controller.create(self.job, self.plan.workers, self.strategy)

    def began(self, job: int, session: int) -> None:
        """A job has a session."""
        assert job == self.ledger.job
        if session in self._ledgers or session <= max(self._ledgers, default=0):
            raise Violation("no wrong read", f"session {session} after {sorted(self._ledgers)}")
        self._ledgers[session] = self.ledger
        self.ledger.sessions.add(session)
        if self._next_too:
            self._next_too = False
            self.time.at(self._rng.uniform(0.0, WELCOMED_S), lambda: self.controller.command(self._delete))

    def install(self, strategy: Strategy) -> None:
        """A live swap, among the workers that have not left."""
        self.controller.command(lambda controller: self._install(controller, strategy))

    def _install(self, controller: VirtualController, strategy: Strategy) -> None:
        if controller.swap(self.job, strategy):
            self.strategy = strategy

    def _swap(self) -> None:
        if self.swaps < self.plan.swaps:
            self.controller.command(self._swap_now)

    def _swap_now(self, controller: VirtualController) -> None:
        if controller.running(self.job) is not None:
            self.swaps += 1
            self._install(controller, next(self._strategies))
        self.time.at(self._rng.expovariate(1 / self.plan.swap_every_s), self._swap)

    def _delete(self, controller: VirtualController) -> None:
        if controller.running(self.job) is None:
            return
        self.happened["jobs deleted"] += 1
        controller.delete(self.job)
        self.job = self._rng.randrange(JOBS)
        self.ledger = self._new_ledger()
        controller.create(self.job, self.plan.workers, self.strategy)

    # -- what befalls them -----------------------------------------------------------------------------------

    def happen(self, place: Place) -> None:
        """What the plan has for this moment of a worker."""
        if not self._events:
            return
        least = min(self.ledger.done)
        for event in list(self._events):
            if event.worker == place.id and event.iteration <= self.ledger.done[place.id]:
                self._events.remove(event)
                self._befall(place, event)
            elif event.worker is None and event.iteration <= least:
                self._events.remove(event)
                self._befall_all(event)

    def _befall_all(self, event: Event | Happening) -> None:
        if isinstance(event, Happening):
            self.controller.command(self._delete)
            self._next_too = True
            return
        if self._clock_steps:
            step = self._clock_steps.pop()
            self.controller.clock_s += step
            self.happened["clock set back" if step < 0 else "clock set ahead"] += 1
        # In the middle of letting somebody in, if anybody comes. The next controller takes an evicted worker that was
        # about to be let in for one that has left, so those plans are spared.
        kinds = {happening.what for happening in self.plan.happenings}
        if kinds and What.EVICTED not in kinds and self._rng.random() < 0.5:
            self.controller.dies_for_s = event.seconds
        else:
            self.time.at(0.0, lambda: self.controller.die(event.seconds))

    def _befall(self, place: Place, event: Event | Happening) -> None:
        # Most of it in the middle of what the worker does next: it has just gone on, and will compute, and push.
        soon = self.plan.mean_s[place.id]
        if isinstance(event, Event):
            if event.action is Action.PAUSE_WORKER:
                self.happened["stood still"] += 1
                process = place.present.process
                process.still_until = max(process.still_until, self.time.now + event.seconds)
            else:
                self.time.at(soon, lambda: self._kill(place, event.seconds))
        elif event.what is What.JOINS_AGAIN:
            self.happened["joined again"] += 1
            place.present.joins_again = True
        elif event.what is What.GIVES_UP:
            place.present.gives_up = True
        elif event.what is What.SECOND_PROCESS:
            self.time.at(soon, lambda: self._second(place, event.seconds))
        else:
            self._command_eviction(place.id, True)
            self.time.at(event.seconds, lambda: self._command_eviction(place.id, False))

    def _command_eviction(self, worker: int, evicted: bool) -> None:
        def command(controller: VirtualController) -> None:
            if controller.evict(self.job, worker, evicted):
                self.happened["evicted" if evicted else "readmitted"] += 1

        self.controller.command(command)

    def _at_work(self, place: Place) -> Incarnation | None:
        """A worker's process, if it takes part and will go on to do so."""
        incarnation = place.present
        takes_part = incarnation.process.alive and incarnation.ledger is self.ledger and not incarnation.leaving
        return incarnation if takes_part else None

    def _kill(self, place: Place, away_s: float) -> None:
        incarnation = self._at_work(place)
        if incarnation is not None:
            self.happened["restarted"] += 1
            incarnation.die()
            place.start_after(away_s)

    def _second(self, place: Place, both_s: float) -> None:
        incarnation = self._at_work(place)
        if incarnation is not None:
            self.happened["second processes"] += 1
            place.start(udp_port=incarnation.host.udp_port + 1)
            self.time.at(both_s, lambda: self._end_first(incarnation, both_s))

    def _holds_its_place(self, process: Incarnation) -> bool:
        """To the controller's knowledge: a process that joins again takes its place back from a second one."""
        job = self.controller.jobs.get(self.job)
        at = job.workers[process.place.id].endpoint if job is not None and process.ledger is self.ledger else None
        return at is not None and at.incarnation == process.client.incarnation

    def _end_first(self, first: Incarnation, again_s: float) -> None:
        """Its user ends it, once another process has its place."""
        if not first.process.alive or first.leaving:
            return
        others = [incarnation for incarnation in first.place.incarnations if incarnation is not first]
        if any(other.process.alive and self._holds_its_place(other) for other in others):
            first.die()
        else:
            self.time.at(again_s, lambda: self._end_first(first, again_s))
