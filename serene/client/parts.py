"""A gradient, part by part, while the rest of it is still being computed.

    with Parts(Session(client)) as parts:
        last = parts.submit(40, gradient_of_the_last_layer)     # to slots 40, 41, ...: a Future
        first = parts.submit(0, gradient_of_the_first_layer)    # when the backward pass has come to it
        update = first.result().delta

A thread of its own sends and receives, so the packets of one layer travel while the next is computed. Each slot has
rounds of its own, and all slots of one iteration go out under one epoch: an iteration is over when every slot has had
its part.
"""

from __future__ import annotations

import math
import os
import queue
import threading
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import Self

from serene.client.requests import NoAnswer, SessionLost
from serene.client.transport import readable
from serene.client.updates import PartUpdate
from serene.errors import SereneError

if TYPE_CHECKING:
    from serene.client.protocol import Read
    from serene.client.session import Session

IDLE_S = 0.5  # after so long without a part, the switch is asked whether the session goes on


@dataclass(frozen=True)
class _Part:
    slots: slice
    gradient: np.ndarray
    result: Future[PartUpdate]


class Waiting:
    """What `Parts` tells about a long wait for other workers, in this order. This class does nothing with it."""

    def begin(self) -> None:
        """The worker has waited for half of its patience."""

    def go_on(self) -> None:
        """The worker still waits; called repeatedly."""

    def end(self) -> None:
        """The worker waits no longer: a part has ended."""

    def absent(self) -> str:
        """The worker's patience is over. Returns whom it has waited for, for the error's message."""
        return "other workers"


class Parts:
    """The parts of one session whose client has joined and caught up; nobody else may use the client meanwhile.

    When the switch loses the session, its sums are restored and what was under way is contributed again: in the sum of
    what a slot's parts give, each contribution is there once, as far as `Session` can promise that. Each iteration has
    to contribute to all slots before the next one begins; else the sums cannot be restored, and parts fail.

    patience_s: when no part under way has ended for so long though the switch answers, all fail with NoAnswer. waiting:
    is told of long waits.
    """

    def __init__(self, session: Session, *, patience_s: float = math.inf, waiting: Waiting | None = None) -> None:
        self._session = session
        self._client = session.client
        self._patience_s, self._waiting = patience_s, waiting or Waiting()
        self._moved_at = self._client.clock()  # when a part began while none was under way, or ended
        self._waits = False  # whether `_waiting` was told that it waits
        self._confirmed: int | None = None  # how often the switch had answered when the patience was over
        self._exchanging_s = 0.0
        self._queue: queue.SimpleQueue[_Part] = queue.SimpleQueue()
        self._pending: list[_Part] = []  # parts whose slots are under way, and those to be begun again in a new session
        self._under_way: list[_Part] = []
        self._iteration: list[_Part] = []  # parts of the present iteration, answered or not
        # What was read and no part has given yet: float32[slots * lanes], to be added to what the slots' next parts
        # give. A part that was answered before the session was lost is exchanged again after it, and has its result
        # already.
        self._owed: np.ndarray | None = None
        self._waker = os.eventfd(0, os.EFD_NONBLOCK)
        self._lock = threading.Lock()
        self._ended = False  # the thread will look at nothing more
        self._failed: BaseException | None = None
        self._client.wake_with(self._waker)
        self._thread = threading.Thread(target=self._run, name="serene-parts", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the thread; parts under way fail with SereneError. The client stays open."""
        if self._waker < 0:
            return
        self._failed = self._failed or SereneError("the exchange was closed")
        os.eventfd_write(self._waker, 1)
        self._thread.join()
        self._client.wake_with(-1)
        os.close(self._waker)
        self._waker = -1

    def submit(self, first_slot: int, gradient: np.ndarray) -> Future[PartUpdate]:
        """Contributes float32[n] to the slots from ``first_slot`` on, the last one filled up with zeros. The result is
        what all workers contributed there since the last read, delta: float32[n]; or it raises the error that ended the
        exchange. Raises SereneError where n is 0 or the job has too few slots."""
        membership = self._client.membership
        count = -(-len(gradient) // membership.lanes)
        if first_slot < 0 or not count or first_slot + count > membership.slots:
            raise SereneError(
                f"{len(gradient)} values from slot {first_slot} on: expected at least one, in the job's "
                f"{membership.slots} slots of {membership.lanes} values"
            )
        part = _Part(slice(first_slot, first_slot + count), gradient, Future())
        with self._lock:
            if self._ended:
                part.result.set_exception(self._why())
            else:
                self._queue.put(part)
                os.eventfd_write(self._waker, 1)
        return part.result

    def _why(self) -> BaseException:
        return self._failed or SereneError("the exchange was closed")

    # -- in the thread ---------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while self._failed is None:
                if not self._under_way and not self._pending:
                    self._rest()
                self._pending += self._drain()  # stays whole until all have been tried: beginning a part may raise
                self._pending = [part for part in self._pending if not self._begin(part)]
                try:
                    self._exchange() if self._under_way else self._idle()
                except SessionLost as lost:
                    self._resume(lost)
        except BaseException as error:
            self._failed = error
        with self._lock:
            self._ended = True
        for part in (*self._iteration, *self._under_way, *self._pending, *self._drain()):
            if not part.result.done():
                part.result.set_exception(self._why())

    def _rest(self) -> None:
        """Waits until something is submitted, or for IDLE_S. After the first iteration, that time is computing."""
        began = self._client.clock()
        readable(self._waker, IDLE_S)
        if self._session.iteration:
            self._session.facts["compute_s"] += self._client.clock() - began

    def _idle(self) -> None:
        """Notices a lost session: the others may need what this worker holds before it contributes the next time."""
        self._session.report("computing")
        self._client.ask_while_idle()

    def _exchange(self) -> None:
        session = self._session
        session.report("exchanging")
        exchange, began = self._client.protocol.exchange, self._client.clock()
        waited = exchange.waited_s
        self._client.exchange_round()
        self._exchanging_s += self._client.clock() - began
        session.waiting_s += max(exchange.waited_s - waited, 0.0)
        session.network_s = max(self._exchanging_s - session.waiting_s, 0.0)
        self._finish_done()
        if self._under_way:
            self._be_patient()

    def _be_patient(self) -> None:
        """Gives up on other workers, but only where the switch answers: the client gives up on a switch that does
        not."""
        waited_s = self._client.clock() - self._moved_at
        if waited_s > self._patience_s / 2 and not self._waits:
            self._waits = True
            self._waiting.begin()
        if self._waits:
            self._waiting.go_on()
        if waited_s > self._patience_s:
            confirmations = self._client.ask_while_waiting()
            if self._confirmed is None:
                self._confirmed = confirmations
            elif confirmations > self._confirmed:
                raise NoAnswer(f"waited {self._patience_s:g} s for {self._waiting.absent()}")

    def _reset_patience(self) -> None:
        self._moved_at, self._confirmed = self._client.clock(), None
        if self._waits:
            self._waits = False
            self._waiting.end()

    def _drain(self) -> list[_Part]:
        """What has been submitted since the last look."""
        try:
            os.eventfd_read(self._waker)
        except BlockingIOError:
            return []
        parts = []
        while not self._queue.empty():
            parts.append(self._queue.get())
        return parts

    def _begin(self, part: _Part) -> bool:
        """Whether it could: not while another part is under way in one of its slots."""
        busy = any(
            part.slots.start < other.slots.stop and other.slots.start < part.slots.stop for other in self._under_way
        )
        if not busy:
            if not self._under_way:
                self._reset_patience()
            self._client.begin_part(part.slots, part.gradient)
            self._under_way.append(part)
            self._iteration.append(part)
        return not busy

    def _finish_done(self) -> None:
        for part in [part for part in self._under_way if self._client.part_done(part.slots)]:
            self._under_way.remove(part)
            self._reset_patience()
            self._give(part, self._client.finish_part(part.slots))
        if not self._client.protocol.iterating:
            self._end_iteration(self._client.protocol.last)

    def _end_iteration(self, last: Read | None) -> None:
        session = self._session
        session.iteration += 1
        if last is not None:
            session.epoch, session.round = last.epoch, last.round
        self._iteration.clear()
        if self._owed is not None and not self._owed.any():
            self._owed = None

    def _give(self, part: _Part, update: PartUpdate) -> None:
        """What was read in the part's slots becomes its result, or is kept for the slots' next part if it has one."""
        self._session.reads_at_risk += update.overflow_possible
        where = self._values(part.slots)
        if part.result.done():
            self._owe(where, update.delta)
            return
        delta = update.delta
        if self._owed is not None:
            delta = delta + self._owed[where]
            self._owed[where] = 0
        part.result.set_result(replace(update, delta=delta[: len(part.gradient)]))

    def _values(self, slots: slice) -> slice:
        """The slots' values in the vector."""
        lanes = self._client.membership.lanes
        return slice(slots.start * lanes, slots.stop * lanes)

    def _owe(self, where: slice, delta: np.ndarray) -> None:
        if self._owed is None:
            membership = self._client.membership
            self._owed = np.zeros(membership.slots * membership.lanes, np.float32)
        self._owed[where] += delta

    def _resume(self, lost: SessionLost) -> None:
        """Joins the next session; then the iteration under way is in the restored sums, or is begun again."""
        last = self._client.protocol.last
        missed = self._session.resume(lost)
        self._client.wake_with(self._waker)
        if missed is None:
            raise SereneError(
                "the job's next session knows of none before it: nobody can tell whether what was under way has counted"
            )
        self._under_way = []
        self._session.reads_at_risk += missed.overflow_possible
        self._owe(slice(0, len(missed.delta)), missed.delta)
        if missed.restored is not None and missed.restored.contained and last is not None:
            for part in self._iteration:
                nothing = np.zeros((part.slots.stop - part.slots.start) * self._client.membership.lanes, np.float32)
                self._give(part, PartUpdate(nothing, last.members, overflow_possible=False))
            self._end_iteration(last)
        else:
            self._pending, self._iteration = self._iteration + self._pending, []
