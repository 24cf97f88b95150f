"""The workers of a run: they contribute random numbers by `serene.client.Client`, and add up what it returns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any
from typing import Protocol as Interface

import numpy as np

from serene.client import Client, NoAnswer, Refused, SessionLost, Update
from serene.client.protocol.protocol import Membership, Protocol
from serene.client.session.restoration import Restored
from serene.client.transport.transport import Trouble
from serene.controller.coordinator import Coordinator
from serene.controller.switch.fabric import Fabric, OnConnected, OnPacket
from serene.entries import Entry
from serene.experiments.correctness.virtual.checks import Violation
from serene.experiments.correctness.virtual.clock import Process, Timeline
from serene.experiments.correctness.virtual.ledger import Contribution, Ledger
from serene.experiments.correctness.virtual.plan import Plan
from serene.experiments.correctness.virtual.switch import CommandedSwitch, frame_head
from serene.experiments.correctness.virtual.watch import Watch
from serene.faults import Direction
from serene.fixedpoint import DEFAULT_SCALE
from serene.sim.hosts import Host
from serene.wire import ENCAPSULATION_BYTES, SERENE_UDP_PORT, SWITCH_IP, SWITCH_MAC, encapsulation

FOREVER_S = 1e9
GIVES_UP_AFTER_S = 0.002  # so early that a packet or its answer is still under way
_UDP_LENGTH = slice(38, 40)


def _connected(host: Host) -> tuple[bytes, bytes]:
    """What a frame has to carry for a host's kernel to hand it to a socket that is connected to the switch: the
    destination MAC; and source IP, destination IP, source and destination UDP port."""
    head = encapsulation(
        0, source=(SWITCH_MAC, SWITCH_IP, SERENE_UDP_PORT), destination=(host.mac, host.ip, host.udp_port)
    )
    return head[0:6], head[26:38]


class World(Interface):
    """What workers, controller and hostile host use of a run (`Schedule` of schedule.py)."""

    plan: Plan
    switches: Sequence[CommandedSwitch]
    lanes: int
    time: Timeline
    watch: Watch
    happened: Counter[str]
    job: int
    ledger: Ledger
    places: list[Place]
    restarted_at: float  # when the switch did so last

    def fabric(self, reach: Callable[..., Any], on_packet: OnPacket, on_connected: OnConnected) -> Fabric:
        """What the controller commands. reach: as of `Switch`; the address in the options is a switch's number."""

    def new_incarnation(self) -> int: ...
    def carry(self, worker: int, direction: Direction, port: int, frame: bytes) -> None: ...
    def to_port(self, port: int, frame: bytes) -> None: ...
    def compute_s(self, place: Place) -> float: ...
    def happen(self, place: Place) -> None: ...
    def joined(self, incarnation: Incarnation, membership: Membership) -> Ledger: ...
    def refused(self, incarnation: Incarnation, reason: str) -> None: ...
    def packet_out(self, number: int, port: int, frame: bytes) -> None: ...
    async def taken_over(self, coordinator: Coordinator) -> None: ...
    def wrote(self, switch: CommandedSwitch, entry: Entry) -> None: ...
    def failed(self, error: BaseException) -> None: ...


class Incarnation:
    """One process of a worker, from its first HELLO to its last PULL, which is also the transport of its client.

    number: of the worker's processes, from 1. started_for, ledger: the job that there was when it started, and the one
    that it has joined. joins_again, gives_up: events that are to come before, and in the middle of, its next iteration.
    """

    contribution_type = Contribution

    def __init__(self, run: World, place: Place, number: int, host: Host) -> None:
        self._run, self.place, self.number, self.host = run, place, number, host
        self._mail: list[bytes] = []
        self._for_us = _connected(host)
        self._rows = np.zeros((64, ENCAPSULATION_BYTES + 4 * run.lanes + 64), np.uint8)
        self.process = Process(run.time, self._work)
        self.started_for = run.ledger
        self.ledger: Ledger | None = None
        self.contributing: Contribution | None = None  # until the answers to it have been read
        self._unsettled: Contribution | None = None  # the session was lost meanwhile; until the worker has caught up
        self.leaving = self.finished = False
        self.joins_again = self.gives_up = False
        self._contributions = 0
        self._clock_rate = run.plan.slow.clocks[place.id] if run.plan.slow.clocks else 1.0
        self.client = Client(
            self,
            run.job,
            place.number,
            run.plan.slots * run.lanes,
            give_up_s=FOREVER_S,
            incarnation=host.incarnation,
            clock=lambda: run.time.now * self._clock_rate,
            rack=place.rack,
        )
        self._session, self._totals = 0, np.zeros(run.plan.slots, np.uint32)  # of the last read
        self.replica = np.zeros((run.plan.slots, run.lanes), np.int64)

    # -- serene.client.Transport ---------------------------------------------------------------------------

    def send(self, payloads: np.ndarray) -> None:
        if len(payloads):
            head = frame_head(self.host, payloads.shape[1])
            for row in payloads:
                self._run.carry(self.place.id, Direction.TO_SWITCH, self.host.port, head + row.tobytes())

    def receive(self, timeout_s: float) -> tuple[np.ndarray, np.ndarray]:
        if not self._mail:
            self.process.wait_for_mail(timeout_s / self._clock_rate)
        mail, self._mail = self._mail[: len(self._rows)], self._mail[len(self._rows) :]
        for row, payload in zip(self._rows, mail, strict=False):
            row[: len(payload)] = np.frombuffer(payload, np.uint8)
        return self._rows[: len(mail)], np.array([len(payload) for payload in mail], np.int64)

    def link(self, payload_bytes: int) -> None:
        return None

    def trouble(self) -> Trouble | None:
        return None

    def route(self) -> str:
        return "the transport"

    def note(self, refused: int, payload_bytes: int) -> None: ...

    def close(self) -> None: ...

    def hear(self, frames: list[bytes]) -> None:
        """Frames arrive at the host together. Like a kernel, it drops those that are not for this socket."""
        for frame in frames:
            if (frame[0:6], frame[26:38]) == self._for_us:
                length = int.from_bytes(frame[_UDP_LENGTH], "big") - 8
                self._mail.append(frame[ENCAPSULATION_BYTES : ENCAPSULATION_BYTES + length])
        if self._mail:
            self.process.mail()

    # -- a worker --------------------------------------------------------------------------------------------

    @property
    def protocol(self) -> Protocol:
        return self.client.protocol

    @property
    def session(self) -> int:
        """The one that it has joined last; 0: none."""
        return self.client.membership.session if self.ledger is not None else 0

    def die(self) -> None:
        """Kills the worker's process."""
        self.interrupted()
        self.process.interrupt()

    def interrupted(self) -> None:
        """Notes that the contribution that is under way, if there is one, may count or not."""
        for each in (self.contributing, self._unsettled):
            if each is not None and self.ledger is not None:
                self.ledger.interrupted.append(each)
        self.contributing = self._unsettled = None

    def _work(self) -> None:
        try:
            self._join()
            while not self.finished:
                try:
                    if not self._to_do():
                        self._leave()
                        continue
                    if self.joins_again:
                        self.joins_again = False
                        self._join()
                    self._compute()
                    if self._to_do():
                        self._iterate()
                        self._run.happen(self.place)
                except NoAnswer:
                    self.interrupted()
                    self._run.happened["gave up and joined again"] += 1
                    self._join()
                except SessionLost:
                    self._unsettled, self.contributing = self.contributing, None
                    self.leaving = False
                    self._join()
        except Refused as refused:
            self.interrupted()
            self._run.refused(self, str(refused))
        except Violation:
            raise
        except Exception as error:
            what = f"worker {self.place.id} ended with {type(error).__name__}: {error}"
            raise Violation("nobody is stopped", what) from error

    def _to_do(self) -> bool:
        """Whether iterations are left; another process of the worker may have done them meanwhile."""
        return self._current.done[self.place.id] < self._run.plan.iterations[self.place.id]

    @property
    def _current(self) -> Ledger:
        assert self.ledger is not None
        return self.ledger

    def _join(self) -> None:
        while True:
            membership = self.client.join(FOREVER_S)
            ledger = self._run.joined(self, membership)
            if ledger is not self.ledger:
                self.interrupted()
            self.ledger = ledger
            with suppress(SessionLost):
                caught_up = self.client.catch_up()
                break
        self._settle(caught_up.restored if caught_up is not None else None)
        if caught_up is not None:
            self._read(caught_up.delta)

    def _settle(self, restored: Restored | None) -> None:
        """After a lost session: the contribution that was under way is in the restored sum, may be, or is not.
        In the last case it is not in the ledger, so that the sum must not hold it."""
        unsettled, self._unsettled, ledger = self._unsettled, None, self._current
        if restored is not None:
            ledger.restored(self.place.id, restored.lost, restored.repeated)
            if restored.missed < 0:
                raise Violation("exactly once", f"the restored sum lacks what worker {self.place.id} has read")
            held, others = self.protocol.held_values, not self.protocol.held_by_mode
            anything = held.any() or self.replica.any()
            if restored.donor is not None and anything and held.tobytes() not in ledger.reads and not others:
                raise Violation("exactly once", "the restored sum is not one that a worker has read")
            if restored.donor == self.protocol.number:
                self._run.watch.restored(self.session, self.replica)
        if unsettled is None:
            return
        if restored is None or restored.repeated:
            ledger.interrupted.append(unsettled)
        elif restored.contained:
            self._count(unsettled)

    def _count(self, contribution: Contribution) -> None:
        """The contribution is in the sum, and the iteration is done."""
        ledger = self._current
        ledger.certain.append(contribution)
        ledger.sum += contribution.values(self._run.plan.seed, *self.replica.shape).view(np.uint32)
        ledger.done[self.place.id] += 1

    def _compute(self) -> None:
        if self._run.plan.slow.punts:
            self.client.report({"iteration": self._contributions})
        self.process.sleep(self._run.compute_s(self.place))

    def _iterate(self) -> None:
        worker, protocol = self.place.id, self.protocol
        self._contributions += 1
        self.contributing = self.contribution_type(worker, self.number, self._contributions)
        values = self.contributing.values(self._run.plan.seed, *self.replica.shape)
        session, epoch, round_ = protocol.membership.session, protocol.epoch, protocol.round
        if self.gives_up:
            self.gives_up = False
            self._run.time.at(GIVES_UP_AFTER_S, self._give_up)
        delta = self.exchange((values / DEFAULT_SCALE).astype(np.float32).reshape(-1))
        self._count(self.contributing)
        self.contributing = None
        self._read(delta)
        if self.client.epoch == epoch:
            self._run.watch.ends(worker, session, epoch, round_, protocol.held_values)

    def _give_up(self) -> None:
        if self.contributing is not None:
            self.process.interrupt(NoAnswer("nothing for long"))

    def take_back(self) -> None:
        """Has its user join again: at once if it is exchanging, else before its next iteration."""
        self.joins_again = self.contributing is None
        self._give_up()

    def exchange(self, gradient: np.ndarray) -> np.ndarray:
        """Contributes float32[vector_length]; returns the difference to the last read, of the same shape."""
        return self.client.exchange(gradient).delta

    def _read(self, delta: np.ndarray) -> None:
        self.replica += np.rint(delta.astype(np.float64) * DEFAULT_SCALE).astype(np.int64).reshape(self.replica.shape)
        protocol = self.protocol
        session = protocol.membership.session
        if session == self._session and (protocol.held_totals < self._totals).any():
            raise Violation("no wrong read", f"worker {self.place.id} has read less than before")
        self._session, self._totals = session, protocol.held_totals.copy()
        self._current.reads.add(protocol.held_values.tobytes())
        self._run.watch.reads(self.place.id, session, protocol.held_values, protocol.held_totals, self.replica)

    def _leave(self) -> None:
        self.leaving, began = True, self._run.time.now
        self.client.leave_and_wait(FOREVER_S)
        final = None
        try:
            update: Update = self.client.pull()
            self._read(update.delta)
            final = self.protocol.held_values.copy()
        except Refused as refused:
            # Or its session was lost after it had left, because others left during a restoration: nobody waits for it.
            another = self.client.has_left and self.session < max(self._current.sessions)
            if not another and not (refused.has_left and began <= self._run.restarted_at):
                raise
            self._run.happened["nothing to read when the job was over"] += 1
        self._current.finals[self.place.id] = final
        self.finished = True


class Place:
    """One of a job's workers: a host, and the processes on it. number: the worker's in packets. rack: where it believes
    it is; None: it has none."""

    incarnation_type = Incarnation

    def __init__(self, run: World, worker: int, number: int | None = None, rack: int | None = None) -> None:
        self.id = worker
        self.number, self.rack = worker if number is None else number, rack
        self._run = run
        self._host = Host.of(worker)
        self.incarnations: list[Incarnation] = []
        self.awaited = 0  # processes that its user is going to start

    @property
    def present(self) -> Incarnation:
        """The newest process, which may have ended."""
        return self.incarnations[-1]

    def start(self, udp_port: int | None = None) -> None:
        """Starts a process, by default on the UDP port of the last one; does nothing while another has that port."""
        where = udp_port or self._host.udp_port
        if any(each.process.alive and each.host.udp_port == where for each in self.incarnations):
            return
        number = len(self.incarnations) + 1
        incarnation = self._run.new_incarnation()
        self._host = Host(self._host.port, self._host.mac, self._host.ip, where, incarnation)
        self.incarnations.append(self.incarnation_type(self._run, self, number, self._host))
        self.present.process.start()

    def start_after(self, seconds: float) -> None:
        """Has its user start another process after so many seconds."""
        self.awaited += 1
        self._run.time.at(seconds, self._start_awaited)

    def _start_awaited(self) -> None:
        self.awaited -= 1
        self.start()

    def hear(self, frames: list[bytes]) -> None:
        together = self._run.plan.frames_together
        for incarnation in self.incarnations:
            if incarnation.process.alive:
                for first in range(0, len(frames), together):
                    incarnation.hear(frames[first : first + together])
