"""A worker's connection to its job: join, exchange gradients, report, leave.

with Client(UdpTransport(), job=0, worker=2, vector_length=79510) as client:
    client.join()
    client.catch_up()                       # None, unless the job has begun before
    update = client.exchange(gradient)      # blocks until the switch lets this worker continue
    parameters -= lr / client.membership.workers * update.delta
"""

from __future__ import annotations

import ctypes
import json
import logging
import math
import os
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from serene.client.compiled.fastpath import FastPath, Link, Outcome, dequantise, library, quantise
from serene.client.protocol.protocol import NOTHING, Counts, Membership, Protocol
from serene.client.protocol.window import LARGEST_WINDOW, Window
from serene.client.session.leaving import Leaving
from serene.client.session.requests import NoAnswer, Requests, SessionLost
from serene.client.session.restoration import ALL, Remains, Restored, restore
from serene.client.session.updates import CaughtUp, Update
from serene.client.transport.transport import Transport, TransportError
from serene.errors import SereneError
from serene.fixedpoint import FixedPoint
from serene.wire import HEADER, Op

LOG = logging.getLogger("serene")
WARN_AFTER_S = 3.0  # of HELLOs without a WELCOME
HELLO_EVERY_S = 0.1
WAITING_S = 0.1  # after this time without a packet the worker waits at the barrier, or the network is down


class Client:
    """One worker of one job.

    transport: closed with the client. job, worker: numbers from 0; over several racks, the worker's number in its rack.
    vector_length: values of a gradient. window: slots in flight at first. silence_s: after this time without a packet
    the worker asks the switch (HELLO) whether the session continues; give_up_s: after this time without a packet,
    NoAnswer is raised. clock: in seconds; another than the monotonic one rules out the fast path. incarnation, rack: as
    for `Requests`. keeps_reads: for a caller that uses the sum, `held`, and no differences: these are empty then.
    Raises SereneError for a number that its header field does not hold. Not thread-safe.
    """

    def __init__(
        self,
        transport: Transport,
        job: int,
        worker: int,
        vector_length: int,
        *,
        window: int = 32,
        silence_s: float = 2.0,
        give_up_s: float = 60.0,
        incarnation: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        rack: int | None = None,
        keeps_reads: bool = False,
    ) -> None:
        self._transport = transport
        self._requests = Requests(transport, job, worker, vector_length, incarnation, rack)
        self._job, self._worker, self._vector_length = job, worker, vector_length
        self._first_window = window
        self.keeps_reads = keeps_reads
        self.silence_s = silence_s
        self._give_up_s = give_up_s
        self.clock = clock
        self._protocol: Protocol | None = None
        self._fast: FastPath | None = None
        self.while_waiting: Callable[[], None] = lambda: None  # called repeatedly while no packet arrives
        self._heard_at = self._asked_at = 0.0
        self._remains: Remains | None = None  # of a lost session
        self._caught_up = False  # the worker has read the present session's sum since it first joined
        self._unread = False  # it has joined that session again, without a read since
        self._fixed = FixedPoint()  # the job's, when the worker has joined it
        self._session_lost = self._left = False
        self._leaving: Leaving | None = None
        self.contributions_sent = 0  # packets in this session: slots times iterations
        self.clipped_values = 0  # of all gradients so far

    @property
    def window(self) -> float:
        """The number of slots that may be in flight now. Raises SereneError before `join`."""
        return self._joined.window.size

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the transport, without sending LEAVE."""
        self._transport.close()

    @property
    def membership(self) -> Membership:
        """The data of the present session's WELCOME. Raises SereneError before `join`."""
        return self._joined.membership

    @property
    def protocol(self) -> Protocol:
        """The worker's side of the protocol in the present session. Raises SereneError before `join`."""
        return self._joined

    @property
    def held(self) -> np.ndarray:
        """The sum read last, int32[vector_length], in units. With ``keeps_reads`` later reads leave this one as it is.
        Raises SereneError before `join`."""
        held = self._joined.held_values
        if self._remains is not None:  # those of the present session may be votes
            held = self._remains.held
        return held.reshape(-1)[: self._vector_length].view(np.int32)

    @property
    def fixed_point(self) -> FixedPoint:
        """The job's scale and limit; the default ones before `join`."""
        return self._fixed

    @property
    def incarnation(self) -> int:
        """The number that distinguishes this client from other processes of the same worker."""
        return self._requests.incarnation

    @property
    def counts(self) -> Counts:
        """Packets in the present session. Raises SereneError before `join`."""
        return self._joined.counts

    @property
    def epoch(self) -> int:
        """The epoch of the unfinished iteration, or of the next one. Raises SereneError before `join`."""
        return self._joined.epoch

    @property
    def members(self) -> int:
        """The number of members, by the last answer. Raises SereneError before `join`."""
        return self._joined.members

    @property
    def round(self) -> int:
        """The round, within its epoch, of the unfinished iteration, or of the next one."""
        return self._joined.round

    @property
    def _joined(self) -> Protocol:
        if self._protocol is None:
            raise SereneError("the worker has not joined its job yet: call join() first")
        return self._protocol

    @property
    def _running(self) -> Protocol:
        """The protocol of a worker that has caught up: its next read returns the contributions since its last one."""
        if self._protocol is not None and (self._session_lost or self._requests.joining):
            why = "session is lost" if self._session_lost else "last join() has failed"
            raise SereneError(f"the worker's {why}: call join() and catch_up() first")
        if self._protocol is not None and not self._caught_up:
            raise SereneError("the job began before this worker joined: call catch_up() first and apply its delta")
        if self._unread:
            # Another process may have had the place meanwhile: contributions with its seqs would count as repeats.
            raise SereneError("the worker has joined again: call catch_up() first, and apply its delta")
        return self._joined

    @property
    def _contributing(self) -> Protocol:
        """The protocol of a worker that has not left. The controller has stored the number of its contributions at its
        LEAVE, and the switch would add more."""
        if self._left:
            raise SereneError("the worker has left its job: call join() first")
        return self._running

    # -- membership ------------------------------------------------------------------------------------------

    def join(self, timeout_s: float = 60.0) -> Membership:
        """Sends HELLO until the job is complete and the switch answers with WELCOME.

        A client that has joined before takes its place again, in the same session or in the one after it. ``catch_up``
        then returns the contributions since its last read. Raises Refused with the controller's reason, BadWelcome, or
        NoAnswer after ``timeout_s``.
        """
        if self._protocol is not None and not self._session_lost:
            # Late answers to earlier packets would count as answers to those of the next iteration.
            self._requests.begin_incarnation()
        self._requests.joining = True
        began = asked = self.clock()
        warned = False
        while asked < began + timeout_s:
            self._hello()
            if asked - began > WARN_AFTER_S and not warned:
                warned = True
                LOG.warning("worker %d of job %d waits to join: %s", self._worker, self._job, self._why_no_answer())
            while self.clock() < asked + HELLO_EVERY_S:
                for payload in self._requests.answers(asked + HELLO_EVERY_S - self.clock()):
                    welcome = self._requests.welcome(payload)
                    if welcome is not None and self._is_current(welcome):
                        self._begin_session(welcome)
                        return welcome
            asked = self.clock()
        raise NoAnswer(
            f"no WELCOME for worker {self._worker} of job {self._job} within {timeout_s:g} s: {self._why_no_answer()}"
        )

    def _why_no_answer(self) -> str:
        """The possible reason of a missing WELCOME or BYE."""
        reaches = f"check that the controller runs and that {self._transport.route()} reaches the switch"
        why = self._requests.missing or reaches
        return why + self._trouble()

    def _is_current(self, welcome: Membership) -> bool:
        """Session numbers only increase: a WELCOME of an older session, or of the lost one, was delayed in the
        network."""
        if self._protocol is None:
            return True
        ours = self._protocol.membership.session
        return welcome.session > ours if self._session_lost else welcome.session >= ours

    def _begin_session(self, welcome: Membership) -> None:
        before = self._protocol
        window = Window(self._first_window, max(self._first_window, LARGEST_WINDOW))
        protocol = Protocol(
            self._job, self._worker, welcome, self._requests.incarnation, window, keeps_reads=self.keeps_reads
        )
        if before is not None and before.membership.session == welcome.session:
            protocol.go_on_from(before)
            self._unread = True
        else:
            if before is not None and self._caught_up and not self._session_lost:
                self._remains = Remains.of(before)
            if not welcome.lost_sessions:
                self._remains = None  # of a deleted job
            self.contributions_sent = 0
            self._unread = False
            self._caught_up = not welcome.lost_sessions and welcome.epoch == 1
        self._protocol, self._session_lost, self._left = protocol, False, False
        self._requests.session, self._requests.epoch = welcome.session, welcome.epoch
        self._requests.joining, self._requests.missing = False, ""
        self._fixed = FixedPoint(welcome.scale, welcome.limit / welcome.scale)
        compiled = self.compiled_link()
        self._fast = None if compiled is None else FastPath(compiled[0], protocol, compiled[1])

    def compiled_link(self) -> tuple[ctypes.CDLL, Link] | None:
        """The link for a fast path. None without a C compiler, in virtual time, or if the transport has no link."""
        link = self._transport.link(self._joined.payloads.shape[1])
        compiled = library()
        if link is None or compiled is None or self.clock is not time.monotonic:
            return None
        return compiled, link

    def catch_up(self) -> CaughtUp | None:
        """Call it after every ``join``. Returns the sum since this worker's last read, or None if the job has just
        begun.

        A worker that was restarted or evicted, or whose switch lost its state, has the others' parameters after
        applying it. If the worker has joined again in the middle of ``exchange``, it is not known whether the sum has
        that contribution. Raises as ``exchange``, and SereneError if the sums of a lost session cannot be restored.
        After another SessionLost, join and catch up again.
        """
        protocol = self._joined
        remains = self._remains
        if self._caught_up and not self._unread:
            return None
        before = NOTHING
        if not self.keeps_reads:
            before = protocol.held_values.copy() if remains is None else remains.held
        restored = None
        if protocol.membership.epoch == 1:  # no worker has joined again: that begins an epoch
            restored = restore(protocol, remains, lambda values: self._contribute(protocol, values))
            contributions = restored.missed
        else:
            protocol.pull(self.clock())
            self._exchange_packets(protocol, self.clock())
            contributions = int(protocol.finish().contributions.max())
            if remains is not None:  # the others have restored the sums without this worker's vote
                restored = Restored(None, False, bool(remains.vote.under_way), 0, contributions, ALL)
        self._remains, self._caught_up, self._unread = None, True, False
        if not self.keeps_reads:
            before = np.subtract(protocol.held_values, before, out=before).view(np.int32)
        return CaughtUp(
            dequantise(before.reshape(-1)[: self._vector_length], self._fixed),
            contributions,
            (contributions if restored is None else restored.apart) > self._fixed.capacity,
            restored,
        )

    def _contribute(self, protocol: Protocol, values: np.ndarray) -> None:
        self.contributions_sent += protocol.membership.slots
        protocol.push(values, self.clock())
        self._exchange_packets(protocol, self.clock())
        protocol.finish()

    def leave(self, timeout_s: float = 10.0, died: Collection[int] = ()) -> bool:
        """Sends LEAVE until the controller answers with BYE, or the time is up. In that time three HELLOs fit, which
        detect another session. Returns whether the job is over. died: as of `Leaving`. Raises SessionLost, Refused or
        BadWelcome."""
        return self._leave(timeout_s, died, wait_for_others=False)

    def leave_and_wait(self, timeout_s: float) -> bool:
        """Sends LEAVE, and waits until every worker has left, so that a last ``pull`` reads the whole sum; or until the
        time is up. Returns whether the whole job is over. Raises as ``leave``.

        After it has left it may be refused: then the job was over long ago, or was deleted. Then it returns False.
        """
        return self._leave(timeout_s, wait_for_others=True)

    def _leave(self, timeout_s: float, died: Collection[int] = (), *, wait_for_others: bool) -> bool:
        self._left = self._protocol is not None
        self._leaving = Leaving(
            self._requests, self.clock, self.contributions_sent, self._hello, self.silence_s, self._check_session,
            self._why_no_answer, died,
        )  # fmt: skip
        return self._leaving.run(timeout_s, wait_for_others=wait_for_others)

    @property
    def has_left(self) -> bool:
        """Whether the controller has accepted this worker's last LEAVE. Any thread may ask."""
        return self._leaving is not None and self._leaving.has_left

    def ask_while_idle(self) -> None:
        """Call it between iterations: asks at most every ``silence_s`` whether the session continues. If the switch has
        lost it, the others need this worker's sum. Raises SessionLost, Refused or BadWelcome."""
        self._ask(max(self._heard_at, self._asked_at))
        for payload in self._requests.answers(0.0):
            self._check_session(payload)

    def _ask(self, last: float) -> None:
        now = self.clock()
        if now - last > self.silence_s:
            self._asked_at = now
            self._hello()

    def report(self, facts: Mapping[str, Any]) -> None:
        """Sends telemetry to the controller as JSON in one packet, which may be lost."""
        self._requests.send(Op.REPORT, json.dumps(facts).encode())

    # -- gradients -------------------------------------------------------------------------------------------

    def exchange(self, gradient: np.ndarray) -> Update:
        """Contributes a gradient, float32[vector_length], and reads the sum of all contributions since the last read.

        int32[vector_length] is contributed unchanged, in units; then the read is in units, too. Blocks until the
        strategy lets this worker continue. Raises BadGradient for values that are not finite, SessionLost, NoAnswer,
        PlaceTaken, Refused, BadWelcome or TransportError; and SereneError for another shape, and for a worker that has
        not joined or caught up, or has left.
        """
        if gradient.shape != (self._vector_length,):
            raise SereneError(
                f"a gradient of shape {gradient.shape}: expected ({self._vector_length},), as the job's vector has"
            )
        protocol = self._contributing
        if not protocol.done:
            raise SereneError(
                "an earlier exchange failed, and it is unknown whether it counts: call join() and catch_up() first"
            )
        clipped = quantise(gradient, self._fixed, protocol)
        self.clipped_values += clipped
        self.contributions_sent += protocol.membership.slots
        began, before = self.clock(), protocol.counts.retransmissions
        protocol.begin(began)
        return self._finish(began, before, clipped, in_units=gradient.dtype == np.int32)

    def pull(self, timeout_s: float = math.inf) -> Update:
        """Reads without contributing. Raises as ``exchange``, and NoAnswer after ``timeout_s``."""
        protocol = self._running
        began, before = self.clock(), protocol.counts.retransmissions
        protocol.pull(began)
        return self._finish(began, before, 0, timeout_s)

    def _finish(
        self, began: float, retransmissions: int, clipped: int, timeout_s: float = math.inf, *, in_units: bool = False
    ) -> Update:
        protocol = self._running
        self._exchange_packets(protocol, began, timeout_s)
        ended = self.clock()
        read = protocol.finish()
        most = int(read.contributions.max())
        difference = read.difference.reshape(-1)[: self._vector_length]
        return Update(
            delta=difference if in_units else dequantise(difference, self._fixed),
            contributions=most,
            epoch=read.epoch, round=read.round, sync_mask=read.sync_mask, staleness=read.staleness,
            quorum=read.quorum, read_mode=read.read_mode, members=read.members,
            network_s=ended - began - read.waited_s,
            waiting_s=read.waited_s,
            retransmissions=protocol.counts.retransmissions - retransmissions,
            clipped=clipped,
            read_at_risk=most > self._fixed.capacity,
        )  # fmt: skip

    def _exchange_packets(self, protocol: Protocol, began: float, timeout_s: float = math.inf) -> None:
        self._heard_at = self._asked_at = began
        while not protocol.done:
            if self.clock() - began > timeout_s:
                raise NoAnswer(f"some of the job's slots could not be read within {timeout_s:g} s{self._trouble()}")
            self.exchange_round()

    def exchange_round(self, step: Callable[[Protocol], bool] | None = None) -> None:
        """Sends and receives for a while, after the caller has begun an iteration or pieces. step: replaces
        ``fast_round`` or ``plain_round``, and returns whether anything arrived. Raises as ``exchange``."""
        protocol, received = self._joined, self._joined.counts.received
        if step is not None:
            anything = step(protocol)
        else:
            anything = self.fast_round(protocol, self._fast) if self._fast else self.plain_round(protocol)
        now = self.clock()
        if anything:
            self._heard_at = now
        elif now - self._heard_at > WAITING_S:
            self.while_waiting()
        # The controller's calls do not show that the session continues: the HELLO after the first may be lost.
        self._asked_at = now if protocol.counts.received > received else self._asked_at
        self._ask(self._asked_at)
        if now - self._heard_at > self._give_up_s:
            silent = f"the switch has sent nothing for {self._give_up_s:g} s, and has not answered HELLO"
            raise NoAnswer(silent + self._trouble())
        trouble = self._transport.trouble()
        if trouble is not None and trouble.lasts_s > self._give_up_s:
            raise TransportError(f"cannot send to the switch for {self._give_up_s:g} s: {trouble}")

    def _trouble(self) -> str:
        """For the end of a message: the reason why packets cannot be sent, or ""."""
        trouble = self._transport.trouble()
        return f" (cannot send: {trouble})" if trouble else ""

    def skip_catch_up(self) -> None:
        """For a pool (serene.client.allreduce.pool), which needs no catching up in any epoch."""
        self._caught_up = True

    def expect_answers(self, announced: int) -> None:
        """A pool's collective begins (allreduce/pool.py): silence counts from now on. announced: the newest epoch that
        the pool knows."""
        self._contributing.exchange.restart(self.clock())
        self._contributing.exchange.announced = announced
        self._heard_at = self._asked_at = self.clock()

    def begin_slots(self, slots: np.ndarray) -> None:
        """Contributes ``protocol.values`` of these slots. slots: their numbers, int[n]."""
        self._contributing.begin_slots(slots)
        self.contributions_sent += len(slots)

    def plain_round(self, protocol: Protocol) -> bool:
        """Sends the protocol's packets, and receives once. Returns whether anything arrived."""
        now = self.clock()
        self._transport.send(protocol.packets(now))
        payloads, lengths = self._transport.receive((protocol.deadline() or now) - self.clock())
        if len(payloads):
            self._hand_over(payloads, lengths)
        return bool(len(payloads))

    def fast_round(self, protocol: Protocol, fast: FastPath) -> bool:
        """Sends and receives in C until the protocol has to decide. Returns whether anything arrived."""
        self._transport.send(protocol.retransmissions(self.clock()))
        sent, received = protocol.counts.sent, protocol.counts.received
        try:
            outcome = fast.run()
        except OSError as error:
            raise TransportError(f"{error.strerror}: {os.strerror(error.errno or 0)}") from error
        if protocol.counts.sent > sent:
            self._transport.note(fast.refused, protocol.payloads.shape[1])
        if outcome is Outcome.ODD_PACKETS:
            self._hand_over(*fast.odd_packets())
        return outcome is Outcome.ODD_PACKETS or protocol.counts.received > received

    def _hand_over(self, payloads: np.ndarray, lengths: np.ndarray) -> None:
        """Passes answers and nudges to the protocol. Messages of the controller or of a new session are handled here.
        payloads: uint8[n, bytes]; lengths: int[n]."""
        protocol, now = self._joined, self.clock()
        width = HEADER.itemsize + 4 * protocol.membership.lanes
        whole = lengths == width
        protocol.receive(payloads[whole][:, :width], now)
        for row in np.flatnonzero(~whole & (lengths >= HEADER.itemsize)):
            payload = payloads[row, : lengths[row]]
            if payload[1] == Op.NUDGE:
                protocol.receive(payload[None, :], now)
            else:
                self._check_session(payload.tobytes(), answered=protocol.done)

    def _check_session(self, payload: bytes, *, answered: bool = False) -> None:
        """Raises SessionLost on a newer session's WELCOME, unless the iteration is ``answered`` and has to be read
        first; Refused or BadWelcome as `Requests.welcome`."""
        if not self._requests.is_answered_by(payload):
            return
        welcome = self._requests.welcome(payload)
        if self._protocol is None:  # it leaves before it has joined
            return
        ours = self._protocol.membership.session
        if welcome is not None and welcome.session > ours and not answered:
            if self._caught_up:  # else the session was lost while it was restored: what the one before left stays valid
                self._remains = Remains.of(self._joined)
            self._session_lost = True
            raise SessionLost(f"the job is now in session {welcome.session}, this worker was in {ours}")

    def _hello(self) -> None:
        self._requests.hello(0 if self._protocol is None or self._session_lost else self._protocol.epoch)
