"""A worker's side of the protocol, without sockets and without a clock.

The caller passes packets and the time, and gets packets to send and the time of the next call (docs/protocol.md, "What
a worker may believe"). So the same code runs over UDP, over the switch in process with simulated loss, and in virtual
time.

    protocol.push(values, now)
    while not protocol.done:
        send(protocol.packets(now)); ...; protocol.receive(payloads, now)
    read = protocol.finish()

A pool's slots (`serene.client.allreduce.pool`) have rounds of their own: ``begin_slots`` and ``finish_slots``.

compiled/fastpath.py does the same as ``packets`` and ``receive`` in C, on the arrays of this class, in the common case.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from serene.client.protocol.exchange import ANSWERED, IN_FLIGHT, UNSENT, Exchange
from serene.client.protocol.window import RoundTrip, Window
from serene.errors import SereneError
from serene.wire import (
    HEADER,
    PROTOCOL_VERSION,
    UNBOUNDED,
    Op,
    ReadMode,
    headers_of,
    members_in,
    values_of,
)

PULL_SEQ = 1 << 31  # PULLs have separate seqs, above those of contributions
READ_MODES = np.isin(np.arange(2**8), list(ReadMode))  # by the value of a byte: whether it is a read mode
_ANSWER, _NUDGE = int(Op.ANSWER), int(Op.NUDGE)  # NumPy is slow at comparing with an enum
REORDERING = 16  # a packet counts as lost, not delayed, after answers to this number of later ones
PROBES = 4  # slots retransmitted when no answer comes
ROWS = 1024  # slots that are copied at a time
NOTHING = np.zeros((0, 0), np.int32)  # instead of a difference that is no longer needed
MOST_WORKERS = 256  # of a job over racks; in a byte it is 0


class PlaceTaken(SereneError):
    """Another process has been this worker meanwhile, and has used this one's next seqs."""


@dataclass(frozen=True)
class Membership:
    """A WELCOME's data about the job. session, epoch: in force. vector_length: values of a gradient, in ``slots`` slots
    of ``lanes`` values each. scale: fixed-point units in 1.0; limit: the largest value of one contribution, in those
    units. workers: of the whole job, also over racks."""

    session: int
    epoch: int
    vector_length: int
    slots: int
    lanes: int
    scale: int
    limit: int
    workers: int
    lost_sessions: int = 0  # the number of the job's sessions that the switch has lost before this one
    racks: int = 1  # over which the job's workers are divided
    members: int = 0  # the number of members, from the header's field
    first: int = 0  # the number of workers in the racks before this worker's


@dataclass(frozen=True)
class Read:
    """One iteration's read.

    difference: int32[slots, lanes], the sum of all contributions since the last read; empty if the protocol
    ``keeps_reads``. contributions: int64[slots], their number. epoch, round: of the PUSH. seen: highest seq that the
    switch has accepted from this worker. sync_mask, staleness, quorum, read_mode: fields of the policy in force, from
    the last answer. members: workers that take part under it. waited_s: seconds without packets because other workers
    had not contributed: silence at the beginning, less the round trip, and silences longer than the timeout. Time in
    which answers arrive is network time.
    """

    difference: np.ndarray
    contributions: np.ndarray
    epoch: int
    round: int
    seen: int
    sync_mask: int
    staleness: int
    quorum: int
    read_mode: ReadMode
    members: int
    waited_s: float


@dataclass
class Counts:
    """Packets since the worker joined the session."""

    sent: int = 0
    received: int = 0
    retransmissions: int = 0
    releases: int = 0
    nudges: int = 0
    ignored: int = 0  # of another session, or second answers


@dataclass
class Protocol:
    """One worker of one job, in one session. worker: its number in its rack. incarnation: the one that the switch
    admits, 1 to 2^32 - 1."""

    job: int
    worker: int
    membership: Membership
    incarnation: int = 1
    window: Window = field(default_factory=Window)
    round_trip: RoundTrip = field(default_factory=RoundTrip)
    counts: Counts = field(default_factory=Counts)
    keeps_reads: bool = False  # a held sum is never overwritten, so the caller can use its memory

    def __post_init__(self) -> None:
        slots, lanes = self.membership.slots, self.membership.lanes
        self.epoch = self.membership.epoch
        self.seq = 0  # the last contribution's
        self.held_values = np.zeros((slots, lanes), np.uint32)  # the last read: cumulative
        self.held_totals = np.zeros(slots, np.uint32)  # contributions that these hold
        self.last: Read | None = None  # the last iteration's read, without the difference
        self.held_by_mode = False  # the held sum is ``last``'s read, under the read mode of its epoch
        self.whole = 0  # contributions that a read has to hold: a pool's workers; 0: any number
        self.payloads = np.zeros((slots, HEADER.itemsize + 4 * lanes), np.uint8)  # what a slot sends
        self._headers = self.payloads[:, : HEADER.itemsize].view(HEADER)[:, 0]
        self._headers["version"], self._headers["slot"] = PROTOCOL_VERSION, np.arange(slots)
        self._headers["job"], self._headers["worker"] = self.job, self.worker
        self._headers["session"], self._headers["incarnation"] = self.membership.session, self.incarnation
        self.values = self.payloads[:, HEADER.itemsize :].view(">i4")  # contributions: write, then begin
        self.exchange = Exchange(slots, lanes)
        self._pulls = 0

    def go_on_from(self, before: Protocol) -> None:
        """Takes over the reads and seqs of an earlier incarnation of the same client in this session."""
        self.seq, self.last, self.held_by_mode = before.seq, before.last, before.held_by_mode
        for ours, theirs in ((self.held_values, before.held_values), (self.held_totals, before.held_totals)):
            ours[:] = theirs
        self.exchange.new_totals[:] = self.held_totals

    @property
    def number(self) -> int:
        """The worker's number in the job; over racks, that is not its number in its rack."""
        return self.membership.first + self.worker

    @property
    def round(self) -> int:
        """The round of the unfinished PUSH, or of the next one."""
        return int(self.exchange.rounds.max())

    @round.setter
    def round(self, number: int) -> None:
        self.exchange.rounds[:] = number

    # -- one iteration ---------------------------------------------------------------------------------------

    def push(self, values: np.ndarray, now: float) -> None:
        """Begins an iteration. values: int32[slots, lanes]. Raises RuntimeError if the last one is not finished."""
        self._expect_done()
        self.values[:] = values
        self.begin(now)

    def write(self, values: np.ndarray) -> None:
        """Writes a contribution to ``self.values``. values: int32[vector_length]; lanes beyond it get 0."""
        lanes = self.membership.lanes
        whole = len(values) // lanes
        self.values[:whole] = values[: whole * lanes].reshape(whole, lanes)
        if rest := len(values) - whole * lanes:
            self.values[whole, :rest] = values[whole * lanes :]
            self.values[whole, rest:] = 0

    def begin(self, now: float) -> None:
        """Begins an iteration with the contribution in ``self.values``. Raises as ``push``."""
        self._expect_done()
        self.seq += 1
        self.exchange.restart(now)
        self._begin(Op.PUSH, slice(None), self.seq)

    def begin_slots(self, slots: np.ndarray) -> None:
        """Begins a contribution to some slots, each in its own round and with the seq after its last one. slots: their
        numbers, int[n]. For pools: the exchange's state is reset when a collective begins, not here. Raises
        RuntimeError if one of them is unfinished."""
        if (self.exchange.state[slots] != ANSWERED).any():
            raise RuntimeError("the last contributions of these slots are not finished")
        self._begin(Op.PUSH, slots, self.exchange.awaited[slots] + np.uint32(1))

    def begin_epoch(self, epoch: int) -> None:
        """Adopts this epoch, when no slot is unfinished; for pools, whose workers agree on the time. Raises
        RuntimeError if a slot is unfinished."""
        self._expect_done()
        self.epoch = epoch
        self.exchange.rounds[:] = 0

    def pull(self, now: float) -> None:
        """Begins a read without a contribution. It replaces an unanswered earlier one. Raises as ``push``."""
        if not self.exchange.pulling:
            self._expect_done()
        self._pulls += 1
        # The seq contains the incarnation, so that late answers to an earlier one do not count as answers to this read.
        self.exchange.restart(now)
        self._begin(Op.PULL, slice(None), PULL_SEQ | (self.incarnation + self._pulls) % PULL_SEQ)

    def _expect_done(self) -> None:
        if not self.done:
            raise RuntimeError("the last iteration is not finished")

    def _begin(self, op: Op, slots: slice | np.ndarray, seq: int | np.ndarray) -> None:
        self.exchange.pulling = op is Op.PULL
        written = {"op": op, "epoch": self.epoch, "seq": seq, "round": self.exchange.rounds[slots],
                   "total": self.held_totals[slots]}  # fmt: skip
        for name, value in written.items():
            self._headers[name][slots] = value
        self.exchange.awaited[slots] = seq
        self.exchange.attempts[slots] = 0
        self.exchange.due[slots] = False
        self.exchange.state[slots] = UNSENT

    @property
    def done(self) -> bool:
        """No slot is unfinished."""
        return bool((self.exchange.state == ANSWERED).all())

    @property
    def iterating(self) -> bool:
        """An iteration has begun and is not over. A PULL is no iteration."""
        return not self.done and not self.exchange.pulling

    def packets(self, now: float) -> np.ndarray:
        """The packets to send now: uint8[n, payload bytes], UDP payloads; n may be 0."""
        again = self._again(now)
        fresh = self._fresh()
        self.exchange.in_network[fresh] = True
        if fresh.size and not self.exchange.stalled:
            self.exchange.busy_at = now
        return self._send(np.concatenate([again, fresh]), now)

    def retransmissions(self, now: float) -> np.ndarray:
        """The retransmissions among the results of ``packets``."""
        return self._send(self._again(now), now)

    def _send(self, rows: np.ndarray, now: float) -> np.ndarray:
        if rows.size:
            self.exchange.transmissions += rows.size
            self.exchange.order[rows] = np.arange(self.exchange.transmissions - rows.size, self.exchange.transmissions)
            self.exchange.attempts[rows] += 1
            self.exchange.sent_at[rows] = now
            self.exchange.state[rows] = IN_FLIGHT
            self.exchange.due[rows] = False
            self.counts.sent += rows.size
        sent: np.ndarray = self.payloads[rows]
        return sent

    def _again(self, now: float) -> np.ndarray:
        """In-flight slots to retransmit: those that are due, those that later ones overtook, or the oldest after a
        timeout."""
        flying = np.flatnonzero(self.exchange.state == IN_FLIGHT)
        if not flying.size:
            return flying
        overtaken = self.exchange.order[flying] + REORDERING < self.exchange.latest_answered
        if overtaken.any():
            self.window.lost(now, self.round_trip.timeout)
        rows = flying[self.exchange.due[flying] | overtaken]
        self.exchange.in_network[rows] = True
        if not rows.size and now >= self._deadline(flying):
            rows = flying[np.argsort(self.exchange.order[flying])[:PROBES]]
            self.round_trip.timed_out()
            self.exchange.in_network[flying] = False
            self.exchange.stalled, self.exchange.flowing = True, False
        self.counts.retransmissions += rows.size
        return rows

    def _fresh(self) -> np.ndarray:
        """Unsent slots for which the window has room. It counts only packets in the network. Otherwise contributions
        that wait in the switch for other workers' could fill it for ever, if those workers' windows were full of
        contributions that wait for ours."""
        room = int(self.window.size) - int(
            np.count_nonzero(self.exchange.in_network & (self.exchange.state == IN_FLIGHT))
        )
        unsent = np.flatnonzero(self.exchange.state == UNSENT)
        return unsent[np.argsort(self.exchange.awaited[unsent], kind="stable")][: max(room, 0)]

    def _deadline(self, flying: np.ndarray) -> float:
        return max(float(self.exchange.sent_at[flying].max()), self.exchange.heard_at) + self.round_trip.timeout

    def deadline(self) -> float | None:
        """The time of the next call of ``packets`` if nothing arrives, on the caller's clock; None if nothing is in
        flight."""
        flying = np.flatnonzero(self.exchange.state == IN_FLIGHT)
        return self._deadline(flying) if flying.size else None

    # -- what arrives ----------------------------------------------------------------------------------------

    def receive(self, payloads: np.ndarray, now: float) -> None:
        """Processes answers and nudges, in the order of arrival. payloads: uint8[n, >= 40], UDP payloads, the shorter
        ones padded. Raises PlaceTaken."""
        if not len(payloads):
            return
        headers = headers_of(payloads)
        self.counts.received += len(headers)
        ours = (
            (headers["session"] == self.membership.session)
            & (headers["job"] == self.job)
            & (headers["worker"] == self.worker)
            & (headers["slot"] < self.membership.slots)
        )
        nudge = ours & (headers["op"] == _NUDGE)
        self._notice_epoch(headers[ours], now)
        if nudge.any():
            self.counts.nudges += int(np.count_nonzero(nudge))
            self.exchange.due[headers["slot"][nudge]] = True
        width = HEADER.itemsize + 4 * self.membership.lanes
        if payloads.shape[1] < width:
            return
        slots = np.where(ours, headers["slot"], 0)
        echo = headers["seq"] == self.exchange.awaited[slots]
        staleness = headers["staleness"].astype(np.int64)
        within_bound = (staleness == UNBOUNDED) | (
            self.exchange.rounds[slots] < headers["round"].astype(np.int64) + staleness
        )
        release = (headers["seq"] == 0) & (headers["epoch"] == self.epoch) & within_bound & (not self.exchange.pulling)
        waited = (self.exchange.state[slots] == IN_FLIGHT) & READ_MODES[headers["read_mode"]]
        if self.whole:
            # If an epoch has begun since this contribution, the switch answers with its present sum, which may lack
            # other workers' contributions. The packet is retransmitted until the answer has all.
            held = (headers["total"].astype(np.uint32) - self.held_totals[slots]).astype(np.int32)
            waited &= (headers["epoch"] == self.epoch) | (held >= self.whole)
        answers = ours & (headers["op"] == _ANSWER) & waited
        if (answers & echo & (headers["seen"] > headers["seq"])).any():
            raise PlaceTaken(
                f"another process has contributed as worker {self.worker} of job {self.job}, so this process's "
                "contributions would count as repeats: restart it"
            )
        accepted = np.flatnonzero(answers & (echo | release))
        self.counts.ignored += len(headers) - accepted.size - int(np.count_nonzero(nudge))
        if accepted.size:
            self._accept(headers, payloads, accepted, echo, now)

    def _notice_epoch(self, headers: np.ndarray, now: float) -> None:
        """A newer epoch answers no slot, but slots in flight have to be retransmitted at once. The silence before it
        was a wait for others, except under ASP. Echoes will answer these slots, and echoes end no wait."""
        exchange = self.exchange
        newest = int(headers["epoch"].max(initial=0))
        if newest > max(self.epoch, exchange.announced):
            exchange.announced = newest
            exchange.announcement = headers[headers["epoch"] == newest][0].copy()
            in_flight = exchange.state == IN_FLIGHT
            exchange.due[in_flight] = True
            asp = self.last is not None and self.last.staleness == UNBOUNDED
            if in_flight.any() and not exchange.flowing and not asp:
                exchange.waited_s += max(now - exchange.busy_at - (self.round_trip.smoothed or 0.0), 0.0)
                exchange.busy_at = now

    def _accept(
        self, headers: np.ndarray, payloads: np.ndarray, accepted: np.ndarray, echo: np.ndarray, now: float
    ) -> None:
        # Of several answers to one slot the first counts.
        slots, first = np.unique(headers["slot"][accepted].astype(np.int64), return_index=True)
        accepted = accepted[first]
        once = echo[accepted] & (self.exchange.attempts[slots] == 1)
        if once.any():
            self.round_trip.measured(float(now - self.exchange.sent_at[slots[once]].max()))
        self.counts.releases += int(np.count_nonzero(~echo[accepted]))
        exchange = self.exchange
        if exchange.flowing:
            sample = (now - exchange.heard_at) / accepted.size
            exchange.pace_s += (sample - exchange.pace_s) / 8 if exchange.pace_s else sample
        elif not echo[accepted].any():
            # Releases only: the time since the last event was spent at the barrier, except for the round trip, in which
            # packets that arrive together may have followed one another. (A worker that gets an echo was the last to
            # contribute, also after a retransmission: then its own network took the time.)
            network = max(self.round_trip.smoothed or 0.0, 2 * accepted.size * exchange.pace_s)
            exchange.waited_s += max(now - exchange.busy_at - network, 0.0)
        exchange.busy_at = now

        # Reads only go forward: a release may be older than an earlier read.
        totals = headers["total"][accepted].astype(np.uint32)
        forward = (totals - self.exchange.new_totals[slots]).astype(np.int32) > 0
        newer = accepted[forward]
        self.exchange.new_totals[slots[forward]] = totals[forward]
        self.exchange.new_values[slots[forward]] = values_of(payloads[newer], self.membership.lanes).astype(np.uint32)

        self.exchange.state[slots] = ANSWERED
        exchange.flowing = not self.done
        self.exchange.latest_answered = max(self.exchange.latest_answered, int(self.exchange.order[slots].max()))
        self.exchange.policy = headers[accepted[-1]].copy()
        self.exchange.seen = max(self.exchange.seen, int(headers["seen"][accepted].max()))
        self.exchange.heard_at, self.exchange.stalled = now, False
        self.window.answered(accepted.size)
        self.round_trip.progressed()

    def finish(self) -> Read:
        """The iteration's result, when ``done``. Begins the next round, or adopts the announced epoch. Raises
        RuntimeError before ``done``."""
        self._complete(slice(None))
        difference = NOTHING
        if not self.keeps_reads:
            # The held sum becomes the difference, and the new sum is held: no third vector is needed.
            difference = np.subtract(self.exchange.new_values, self.held_values, out=self.held_values).view(np.int32)
        read = self._finish(slice(None), difference)
        self.held_values, self.exchange.new_values = (
            self.exchange.new_values,
            np.zeros(self.held_values.shape, np.uint32),
        )
        # A PULL reads the sum under any read mode; so does a PUSH of an old epoch.
        self.held_by_mode = not (self.exchange.pulling or self.exchange.announced)
        if self.exchange.pulling:
            self.seq = max(self.seq, self.exchange.seen)
        else:
            self.last = replace(read, difference=NOTHING)
        if self.exchange.announced:  # all slots of one iteration are sent in one epoch
            self.epoch = self.exchange.announced
            self.exchange.rounds[:] = 0
        return read

    def finish_slots(self, slots: np.ndarray) -> Read:
        """The result of some slots of a pool, when they are answered; their next round begins. Raises RuntimeError
        before that."""
        self._complete(slots)
        difference = (self.exchange.new_values[slots] - self.held_values[slots]).view(np.int32)
        self.held_values[slots] = self.exchange.new_values[slots]
        return self._finish(slots, difference)

    def _complete(self, slots: slice | np.ndarray) -> None:
        """Raises RuntimeError unless these slots are answered. A slot without a new read gets its held one."""
        if (self.exchange.state[slots] != ANSWERED).any() or self.exchange.policy is None:
            raise RuntimeError("the iteration is not finished")
        same = np.arange(len(self.held_totals))[slots]
        same = same[self.exchange.new_totals[same] == self.held_totals[same]]
        for rows in np.array_split(same, -(-len(same) // ROWS) or 1):
            self.exchange.new_values[rows] = self.held_values[rows]

    def _finish(self, slots: slice | np.ndarray, difference: np.ndarray) -> Read:
        policy = self.exchange.policy
        assert policy is not None
        read = Read(
            difference=difference,
            contributions=(self.exchange.new_totals[slots] - self.held_totals[slots]).astype(np.int64),
            epoch=self.epoch,
            round=int(self.exchange.rounds[slots].max()),
            seen=self.exchange.seen,
            sync_mask=int(policy["sync_mask"]),
            staleness=int(policy["staleness"]),
            quorum=int(policy["quorum"]),
            read_mode=ReadMode(int(policy["read_mode"])),
            members=self._members(int(policy["members"])),
            waited_s=self.exchange.waited_s,
        )
        self.held_totals[slots] = self.exchange.new_totals[slots]
        if not self.exchange.pulling:
            self.exchange.rounds[slots] += 1
        return read

    @property
    def members(self) -> int:
        """The number of members, by the last answer."""
        newest = self.exchange.announcement if self.exchange.announced else self.exchange.policy
        return self._members(self.membership.members if newest is None else int(newest["members"]))

    def _members(self, field: int) -> int:
        """The number of members, from an answer's field ``members``, which in a pool also has the precision."""
        if self.whole:
            return members_in(field)
        return field or (MOST_WORKERS if self.membership.workers == MOST_WORKERS else 0)
