"""A worker's side of the protocol, without sockets and without a clock.

The caller hands in packets and the time, and gets packets to send and the time to come back (docs/protocol.md, "What
a worker may believe"). So the same code runs over UDP, over the switch in process under invented loss, and in virtual
time.

    protocol.push(values, now)
    while not protocol.done:
        send(protocol.packets(now)); ...; protocol.receive(payloads, now)
    read = protocol.finish()

A vector may also go in parts, each a range of slots with rounds of its own: ``begin_part`` and ``finish_part``, as many
at a time as there are slots. The parts that are under way together go out under one epoch, in the order in which they
were begun.

``serene.client.fastpath`` does the same as ``packets`` and ``receive`` in C, on the arrays of this class, while nothing
unusual happens.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from serene.client.exchange import ANSWERED, IN_FLIGHT, UNSENT, Exchange
from serene.client.window import RoundTrip, Window
from serene.errors import SereneError
from serene.fixedpoint import LARGEST
from serene.wire import (
    HEADER,
    MEMBERSHIP,
    PROTOCOL_VERSION,
    UNBOUNDED,
    Op,
    ReadMode,
    headers_of,
    members_in,
    values_of,
)

PULL_SEQ = 1 << 31  # reads have seqs of their own, above those of contributions
READ_MODES = np.isin(np.arange(2**8), list(ReadMode))  # whether that byte is one
_ANSWER, _NUDGE = int(Op.ANSWER), int(Op.NUDGE)  # NumPy is slow at comparing with an enum
REORDERING = 16  # answers to this many later slots mean that a packet was lost, not delayed
PROBES = 4  # slots sent again when nothing is heard


@dataclass(frozen=True)
class Membership:
    """What WELCOME tells: where the job is, and how its numbers travel. scale: fixed-point units in 1.0; limit: the
    largest value of one contribution, in those units."""

    session: int
    epoch: int
    vector_length: int
    slots: int
    lanes: int
    scale: int
    limit: int
    workers: int
    lost_sessions: int = 0  # of the job: those that the switch lost before this one
    racks: int = 1  # over which the job's workers are divided
    first: int = 0  # workers in the racks before this one's


@dataclass(frozen=True)
class Read:
    """What one iteration read.

    difference: int32[slots, lanes], the sum of all contributions since the last read. contributions: int64[slots],
    how many it holds. epoch, round: of the push. seen: highest seq that the switch has accepted from this worker.
    members: workers that take part under the policy.
    waited_s: time in which nothing came because other workers had not contributed: silence at the beginning, less the
    round trip, and silences longer than the timeout. What answers take that follow one another is the network's.
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
    """Packets since the beginning."""

    sent: int = 0
    received: int = 0
    retransmissions: int = 0
    releases: int = 0
    nudges: int = 0
    ignored: int = 0  # of another session, or nothing that was waited for


@dataclass
class Protocol:
    """One worker of one job, in one session. incarnation: which of the processes that have been this worker, or which
    of their times; the switch admits one."""

    job: int
    worker: int
    membership: Membership
    incarnation: int = 1
    window: Window = field(default_factory=Window)
    round_trip: RoundTrip = field(default_factory=RoundTrip)
    counts: Counts = field(default_factory=Counts)

    def __post_init__(self) -> None:
        slots, lanes = self.membership.slots, self.membership.lanes
        self.epoch = self.membership.epoch
        self.seq = 0  # of the last contribution
        self.held_values = np.zeros((slots, lanes), np.uint32)  # as read last: cumulative
        self.held_totals = np.zeros(slots, np.uint32)
        self.iterations = 0  # contributed and read, of every slot
        self.last: Read | None = None  # of the last of them
        self.in_parts = False  # some of them
        self.overtaken = False  # a part was begun before all of the iteration before its own
        self.whole = 0  # contributions that a read has to hold: a pool's workers; 0 where it may hold any number
        self.payloads = np.zeros((slots, HEADER.itemsize + 4 * lanes), np.uint8)  # what a slot sends
        self._headers = self.payloads[:, : HEADER.itemsize].view(HEADER)[:, 0]
        self._headers["version"], self._headers["slot"] = PROTOCOL_VERSION, np.arange(slots)
        self._headers["job"], self._headers["worker"] = self.job, self.worker
        self._headers["session"], self._headers["incarnation"] = self.membership.session, self.incarnation
        self.values = self.payloads[:, HEADER.itemsize :].view(">i4")  # contributions: write, then begin
        self.exchange = Exchange(slots, lanes)
        self._begun_at: tuple[np.ndarray, np.ndarray] | None = None  # of parts: what was held when they began
        self._pulls = 0

    def go_on_from(self, before: Protocol) -> None:
        """Takes over what an earlier incarnation of the same client had read and sent in this session."""
        self.seq, self.last = before.seq, before.last
        self.iterations, self.in_parts = before.iterations, before.in_parts
        for ours, theirs in ((self.held_values, before.held_values), (self.held_totals, before.held_totals)):
            ours[:] = theirs
        self.exchange.new_values[:], self.exchange.new_totals[:] = self.held_values, self.held_totals

    @property
    def number(self) -> int:
        """The worker's number in the job, which over racks is another than that in its rack."""
        return self.membership.first + self.worker

    @property
    def round(self) -> int:
        """Of the next push, or of the one under way."""
        return int(self.exchange.rounds.max())

    @round.setter
    def round(self, number: int) -> None:
        self.exchange.rounds[:] = number

    # -- one iteration ---------------------------------------------------------------------------------------

    def push(self, values: np.ndarray, now: float) -> None:
        """Begins an iteration. values: int32[slots, lanes]."""
        self._expect_rest()
        self.values[:] = values
        self.begin(now)

    def begin(self, now: float) -> None:
        """Begins an iteration with what was written to ``self.values``."""
        self._expect_rest()
        self.begin_part(slice(None), now)

    def begin_part(self, slots: slice, now: float) -> None:
        """Begins a contribution of some slots, none of which is under way; their ``self.values`` are written."""
        if (self.exchange.state[slots] != ANSWERED).any():
            raise RuntimeError("the last iteration of these slots is not finished")
        if slots != slice(None):
            self._keep(slots)
        self.seq += 1
        if self.done:
            self.exchange.restart(now)
        self._begin(Op.PUSH, slots, self.seq)

    def begin_slots(self, slots: np.ndarray) -> None:
        """Begins a contribution of some slots, each in its own round and under the seq after its last one. slots: their
        numbers, int[n]; as `begin_part` otherwise. Not to be mixed with it: what is known of a pool's exchange begins
        anew with a collective, not wherever nothing is under way."""
        if (self.exchange.state[slots] != ANSWERED).any():
            raise RuntimeError("the last contributions of these slots are not finished")
        self._begin(Op.PUSH, slots, self.exchange.awaited[slots] + np.uint32(1))

    def begin_epoch(self, epoch: int) -> None:
        """What is sent from now on is of this epoch; nothing is under way. A pool's, whose workers agree on when."""
        self._expect_rest()
        self.epoch = epoch
        self.exchange.rounds[:] = 0

    def pull(self, now: float) -> None:
        """Begins a read that contributes nothing; also in the place of one that was not answered."""
        if not self.exchange.pulling:
            self._expect_rest()
        self._pulls += 1
        # Late answers to what an earlier incarnation asked are not taken for answers to this.
        self.exchange.restart(now)
        self._begin(Op.PULL, slice(None), PULL_SEQ | (self.incarnation + self._pulls) % PULL_SEQ)

    def _expect_rest(self) -> None:
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

    def _keep(self, slots: slice) -> None:
        """What these slots hold at the beginning of an iteration, for ``held_before``."""
        self.in_parts = True
        self.overtaken |= bool((self.exchange.rounds[slots] > self.exchange.rounds.min()).any())
        if self._begun_at is None:
            self._begun_at = (np.zeros_like(self.held_values), np.zeros_like(self.held_totals))
        self._begun_at[0][slots], self._begun_at[1][slots] = self.held_values[slots], self.held_totals[slots]

    def held_before(self) -> tuple[np.ndarray, np.ndarray]:
        """The sums and totals as they were read last before the iteration under way, or the next; to be read only."""
        if self._begun_at is None:
            return self.held_values, self.held_totals
        begun = self._contributing | (self.exchange.rounds > self.exchange.rounds.min())
        values = np.where(begun[:, None], self._begun_at[0], self.held_values)
        return values, np.where(begun, self._begun_at[1], self.held_totals)

    @property
    def done(self) -> bool:
        """Nothing is under way."""
        return bool((self.exchange.state == ANSWERED).all())

    @property
    def iterating(self) -> bool:
        """An iteration has begun, some part of it at least, and is not over. A read alone is none."""
        return bool(self._contributing.any() or (self.exchange.rounds != self.exchange.rounds[0]).any())

    @property
    def _contributing(self) -> np.ndarray:
        """Which slots' contributions are under way."""
        under_way: np.ndarray = self.exchange.state != ANSWERED
        return under_way & (not self.exchange.pulling)

    def packets(self, now: float) -> np.ndarray:
        """What to send now: uint8[n, payload bytes]; n may be 0."""
        again = self._again(now)
        fresh = self._fresh()
        self.exchange.in_network[fresh] = True
        if fresh.size and not self.exchange.stalled:
            self.exchange.busy_at = now
        return self._send(np.concatenate([again, fresh]), now)

    def retransmissions(self, now: float) -> np.ndarray:
        """The part of it that has been sent before."""
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
        """In-flight slots to be sent again: asked for, overtaken, or the oldest when nothing is heard."""
        flying = np.flatnonzero(self.exchange.state == IN_FLIGHT)
        if not flying.size:
            return flying
        rows = flying[self.exchange.due[flying]]
        overtaken = flying[self.exchange.order[flying] + REORDERING < self.exchange.latest_answered]
        if overtaken.size:
            self.window.lost(now, self.round_trip.timeout)
            rows = np.union1d(rows, overtaken)
        self.exchange.in_network[rows] = True
        if not rows.size and now >= self._deadline(flying):
            rows = flying[np.argsort(self.exchange.order[flying])[:PROBES]]
            self.round_trip.timed_out()
            self.exchange.in_network[flying] = False
            self.exchange.stalled, self.exchange.flowing = True, False
        self.counts.retransmissions += rows.size
        return rows

    def _fresh(self) -> np.ndarray:
        """The window is for what is in the network. Contributions that wait in the switch for other workers' would
        fill it for good, if those workers' windows were full of contributions that wait for ours."""
        room = int(self.window.size) - int(
            np.count_nonzero(self.exchange.in_network & (self.exchange.state == IN_FLIGHT))
        )
        unsent = np.flatnonzero(self.exchange.state == UNSENT)
        return unsent[np.argsort(self.exchange.awaited[unsent], kind="stable")][: max(room, 0)]

    def _deadline(self, flying: np.ndarray) -> float:
        return max(float(self.exchange.sent_at[flying].max()), self.exchange.heard_at) + self.round_trip.timeout

    def deadline(self) -> float | None:
        """When to call ``packets`` again if nothing arrives; None when nothing is in flight."""
        flying = np.flatnonzero(self.exchange.state == IN_FLIGHT)
        return self._deadline(flying) if flying.size else None

    # -- what arrives ----------------------------------------------------------------------------------------

    def receive(self, payloads: np.ndarray, now: float) -> None:
        """Answers and nudges, in the order they came. payloads: uint8[n, >= 40]; shorter packets padded."""
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
        self._notice_epoch(headers[ours])
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
            # Of a contribution that an epoch's beginning has overtaken the switch gives whatever it has by now: not yet
            # everybody's, it may be. The packet is sent again until it has.
            held = (headers["total"].astype(np.uint32) - self.held_totals[slots]).astype(np.int32)
            waited &= (headers["epoch"] == self.epoch) | (held >= self.whole)
        answers = ours & (headers["op"] == _ANSWER) & waited
        if (answers & echo & (headers["seen"] > headers["seq"])).any():
            raise PlaceTaken(
                f"worker {self.worker} of job {self.job}: another process has contributed in this one's place, and "
                "what this one contributes now is taken for repeats; start it anew"
            )
        accepted = np.flatnonzero(answers & (echo | release))
        self.counts.ignored += len(headers) - accepted.size - int(np.count_nonzero(nudge))
        if accepted.size:
            self._accept(headers, payloads, accepted, echo, now)

    def _notice_epoch(self, headers: np.ndarray) -> None:
        """A newer epoch says nothing about the slots in flight, but they have to be retransmitted at once."""
        newest = int(headers["epoch"].max(initial=0))
        if newest > max(self.epoch, self.exchange.announced):
            self.exchange.announced = newest
            self.exchange.announcement = headers[headers["epoch"] == newest][0].copy()
            self.exchange.due[self.exchange.state == IN_FLIGHT] = True

    def _accept(
        self, headers: np.ndarray, payloads: np.ndarray, accepted: np.ndarray, echo: np.ndarray, now: float
    ) -> None:
        # The first acceptable answer of a slot ends it.
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
        elif not once.any():
            # Releases, or answers to packets sent again: the barrier took the time, but for the packets' way there and
            # back, on which those that come together may have been together.
            network = max(self.round_trip.smoothed or 0.0, 2 * accepted.size * exchange.pace_s)
            exchange.waited_s += max(now - exchange.busy_at - network, 0.0)
        exchange.flowing = True
        exchange.busy_at = now

        # Reads go forward only: a release may be older than a value that was read before.
        totals = headers["total"][accepted].astype(np.uint32)
        forward = (totals - self.exchange.new_totals[slots]).astype(np.int32) > 0
        newer = accepted[forward]
        self.exchange.new_totals[slots[forward]] = totals[forward]
        self.exchange.new_values[slots[forward]] = values_of(payloads[newer], self.membership.lanes).astype(np.uint32)

        self.exchange.state[slots] = ANSWERED
        self.exchange.latest_answered = max(self.exchange.latest_answered, int(self.exchange.order[slots].max()))
        self.exchange.policy = headers[accepted[-1]].copy()
        self.exchange.seen = max(self.exchange.seen, int(headers["seen"][accepted].max()))
        self.exchange.heard_at, self.exchange.stalled = now, False
        self.window.through(accepted.size)
        self.round_trip.progressed()

    def part_done(self, slots: slice | np.ndarray) -> bool:
        return bool((self.exchange.state[slots] == ANSWERED).all())

    def finish(self) -> Read:
        """The iteration's result, once ``done``; moves on to the next round, or into the epoch that was announced."""
        return self._finish(slice(None), (self.exchange.new_values - self.held_values).view(np.int32))

    def finish_part(self, slots: slice | np.ndarray) -> Read:
        """The same of some slots, once ``part_done``. Rounds go on, and an announced epoch begins when no other part
        is under way; ``waited_s`` is of all that was under way together."""
        return self._finish(slots, (self.exchange.new_values[slots] - self.held_values[slots]).view(np.int32))

    def _finish(self, slots: slice | np.ndarray, difference: np.ndarray) -> Read:
        policy = self.exchange.policy
        if not self.part_done(slots) or policy is None:
            raise RuntimeError("the iteration is not finished")
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
        self.held_values[slots], self.held_totals[slots] = (
            self.exchange.new_values[slots],
            self.exchange.new_totals[slots],
        )
        if self.exchange.pulling:
            self.seq = max(self.seq, self.exchange.seen)
        else:
            self.exchange.rounds[slots] += 1
        if self.iterating:
            return read
        if not self.exchange.pulling:
            self.iterations, self.last = self.iterations + 1, read
        # All slots of an iteration go out under one epoch: not between its parts.
        if self.exchange.announced and not self.whole:
            self.epoch = self.exchange.announced
            self.exchange.rounds[:] = 0
        return read

    def _members(self, field: int) -> int:
        """How many workers an answer says take part: besides that, a pool's says how many bits its values have."""
        if self.whole:
            return members_in(field)
        return field or (MOST_WORKERS if self.membership.workers == MOST_WORKERS else 0)


MOST_WORKERS = 256  # of a job over racks; more than a byte holds, in which they are 0


class PlaceTaken(SereneError):
    """Another process has been this worker meanwhile, and has used the seqs that this one goes on with."""


class BadWelcome(SereneError):
    """A WELCOME whose sizes do not fit together."""


def parse_welcome(payload: bytes) -> Membership:
    """The membership in a WELCOME's UDP payload. Raises BadWelcome."""
    header = np.frombuffer(payload, HEADER, 1)[0]
    body = np.frombuffer(payload, MEMBERSHIP, 1, HEADER.itemsize)[0]
    for name in ("vector_length", "scale", "limit", "lanes"):
        if not body[name]:
            raise BadWelcome(f"the switch's WELCOME says {name} 0: expected at least 1")
    if body["limit"] > LARGEST:
        raise BadWelcome(f"the switch's WELCOME says limit {body['limit']}, which exceeds 32 bits: at most {LARGEST}")
    slots = -(-int(body["vector_length"]) // int(body["lanes"]))
    if body["slots"] != slots:
        raise BadWelcome(
            f"the switch's WELCOME gives {body['vector_length']} values {body['slots']} slots of {body['lanes']}: "
            f"expected {slots} slots"
        )
    if not (header["session"] and header["epoch"]):
        raise BadWelcome(f"the switch's WELCOME is of session {header['session']}, epoch {header['epoch']}: both count "
                         "from 1")  # fmt: skip
    return Membership(
        session=int(header["session"]),
        epoch=int(header["epoch"]),
        vector_length=int(body["vector_length"]),
        slots=int(body["slots"]),
        lanes=int(body["lanes"]),
        scale=int(body["scale"]),
        limit=int(body["limit"]),
        workers=int(body["workers"]) or MOST_WORKERS,
        lost_sessions=int(body["lost_sessions"]),
    )
