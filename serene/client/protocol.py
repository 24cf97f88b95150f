"""A worker's side of the protocol, without sockets and without a clock.

The caller hands in packets and the time, and gets packets to send and the time to come back (docs/protocol.md, "What
a worker may believe"). So the same code runs over UDP, over the switch in process under invented loss, and in virtual
time.

    protocol.push(values, now)
    while not protocol.done:
        send(protocol.packets(now)); ...; protocol.receive(payloads, now)
    read = protocol.finish()
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from serene.client.window import RoundTrip, Window
from serene.wire import HEADER, MEMBERSHIP, UNBOUNDED, Op, ReadMode, headers_of, push_payloads, values_of

PULL_SEQ = 1 << 31  # reads have seqs of their own, above those of contributions
REORDERING = 16  # answers to this many later slots mean that a packet is lost, not late
PROBES = 4  # slots sent again when nothing is heard

UNSENT, IN_FLIGHT, ANSWERED = 0, 1, 2


@dataclass(frozen=True)
class Membership:
    """What WELCOME tells: where the job is, and how its numbers travel."""

    session: int
    epoch: int
    vector_length: int
    slots: int
    lanes: int
    scale: int
    workers: int
    incarnation: int = 0  # sessions of the job that the switch has lost


@dataclass(frozen=True)
class Read:
    """What one iteration read.

    difference: int32[slots, lanes], the sum of all contributions since the last read. contributions: int64[slots],
    how many it holds. epoch, round: of the push. seen: highest seq that the switch has accepted from this worker.
    waited_s: time in which there was nothing to do but to wait for the other workers.
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
    """One worker of one job, in one session."""

    job: int
    worker: int
    membership: Membership
    window: Window = field(default_factory=Window)
    round_trip: RoundTrip = field(default_factory=RoundTrip)
    counts: Counts = field(default_factory=Counts)

    def __post_init__(self) -> None:
        slots, lanes = self.membership.slots, self.membership.lanes
        self.epoch = self.membership.epoch
        self.round = 0
        self.seq = 0  # of the last contribution
        self.held_values = np.zeros((slots, lanes), np.uint32)  # as read last: cumulative
        self.held_totals = np.zeros(slots, np.uint32)
        self.last: Read | None = None  # of a push
        self._pulls = 0
        self._state = np.full(slots, ANSWERED, np.uint8)
        self._pulling = False

    # -- one iteration ---------------------------------------------------------------------------------------

    def push(self, values: np.ndarray, now: float) -> None:
        """Begins an iteration. values: int32[slots, lanes]."""
        self.seq += 1
        self._begin(Op.PUSH, values, self.seq, now)

    def pull(self, now: float) -> None:
        """Begins a read that contributes nothing."""
        self._pulls += 1
        self._begin(Op.PULL, np.zeros(self.held_values.shape, np.int32), PULL_SEQ + self._pulls, now)

    def _begin(self, op: Op, values: np.ndarray, seq: int, now: float) -> None:
        if not self.done:
            raise RuntimeError("the last iteration is not finished")
        slots = self.membership.slots
        self._pulling = op is Op.PULL
        self._awaited = seq
        self._payloads = push_payloads(
            values, op=op, job=self.job, worker=self.worker, session=self.membership.session, epoch=self.epoch,
            round=self.round, seq=seq, total=self.held_totals,
        )  # fmt: skip
        self._state = np.zeros(slots, np.uint8)
        self._sent_at = np.zeros(slots)
        self._order = np.zeros(slots, np.int64)  # of the last transmission, to notice gaps
        self._attempts = np.zeros(slots, np.int32)
        self._due = np.zeros(slots, bool)  # to be sent again at once
        self._transmissions = 0
        self._latest_answered = 0
        self._new_values = self.held_values.copy()
        self._new_totals = self.held_totals.copy()
        self._announced = 0  # newest epoch seen beyond our own
        self._policy: np.void | None = None
        self._seen = 0
        self._heard_at = now
        self._busy_at = now  # when something last went out for the first time, or was answered
        self._waited_s = 0.0

    @property
    def done(self) -> bool:
        return bool((self._state == ANSWERED).all())

    def packets(self, now: float) -> np.ndarray:
        """What to send now: uint8[n, payload bytes]; n may be 0."""
        fresh = self._fresh()
        rows = np.concatenate([self._again(now), fresh])
        if fresh.size:
            self._busy_at = now
        if rows.size:
            self._transmissions += rows.size
            self._order[rows] = np.arange(self._transmissions - rows.size, self._transmissions)
            self._attempts[rows] += 1
            self._sent_at[rows] = now
            self._state[rows] = IN_FLIGHT
            self._due[rows] = False
            self.counts.sent += rows.size
        return self._payloads[rows]

    def _again(self, now: float) -> np.ndarray:
        """In-flight slots to be sent again: asked for, overtaken, or the oldest when nothing is heard."""
        flying = np.flatnonzero(self._state == IN_FLIGHT)
        if not flying.size:
            return flying
        rows = flying[self._due[flying]]
        overtaken = flying[self._order[flying] + REORDERING < self._latest_answered]
        if overtaken.size:
            self.window.lost(now, self.round_trip.timeout)
            rows = np.union1d(rows, overtaken)
        if not rows.size and now >= self._deadline(flying):
            rows = flying[np.argsort(self._order[flying])[:PROBES]]
            self.round_trip.timed_out()
        self.counts.retransmissions += rows.size
        return rows

    def _fresh(self) -> np.ndarray:
        room = int(self.window.size) - int(np.count_nonzero(self._state == IN_FLIGHT))
        return np.flatnonzero(self._state == UNSENT)[: max(room, 0)]

    def _deadline(self, flying: np.ndarray) -> float:
        return max(float(self._sent_at[flying].max()), self._heard_at) + self.round_trip.timeout

    def deadline(self) -> float | None:
        """When to call ``packets`` again if nothing arrives; None when nothing is in flight."""
        flying = np.flatnonzero(self._state == IN_FLIGHT)
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
        nudge = ours & (headers["op"] == Op.NUDGE)
        self._notice_epoch(headers[ours])
        if nudge.any():
            self.counts.nudges += int(np.count_nonzero(nudge))
            self._due[headers["slot"][nudge]] = True
        width = HEADER.itemsize + 4 * self.membership.lanes
        if payloads.shape[1] < width:
            return
        echo = headers["seq"] == self._awaited
        staleness = headers["staleness"].astype(np.int64)
        allowed = (staleness == UNBOUNDED) | (self.round < headers["round"].astype(np.int64) + staleness)
        release = (headers["seq"] == 0) & (headers["epoch"] == self.epoch) & allowed & (not self._pulling)
        waited = np.zeros(len(headers), bool)
        waited[ours] = self._state[headers["slot"][ours]] == IN_FLIGHT
        accepted = np.flatnonzero(ours & (headers["op"] == Op.ANSWER) & (echo | release) & waited)
        self.counts.ignored += len(headers) - accepted.size - int(np.count_nonzero(nudge))
        if accepted.size:
            self._accept(headers, payloads, accepted, echo, now)

    def _notice_epoch(self, headers: np.ndarray) -> None:
        """A newer epoch proves nothing about what is in flight, but it may not be waited for any longer."""
        newest = int(headers["epoch"].max(initial=0))
        if newest > max(self.epoch, self._announced):
            self._announced = newest
            self._due[self._state == IN_FLIGHT] = True

    def _accept(
        self, headers: np.ndarray, payloads: np.ndarray, accepted: np.ndarray, echo: np.ndarray, now: float
    ) -> None:
        # The first acceptable answer of a slot ends it.
        slots, first = np.unique(headers["slot"][accepted].astype(np.int64), return_index=True)
        accepted = accepted[first]
        once = echo[accepted] & (self._attempts[slots] == 1)
        if once.any():
            self.round_trip.measured(float(now - self._sent_at[slots[once]].max()))
        self.counts.releases += int(np.count_nonzero(~echo[accepted]))
        if not once.any():
            # Nothing but releases, or answers to packets sent again: the barrier, not the network, took the time.
            self._waited_s += max(now - self._busy_at - (self.round_trip.smoothed or 0.0), 0.0)
        self._busy_at = now

        # Reads go forward only: a permission may be older than a value read before.
        totals = headers["total"][accepted].astype(np.uint32)
        forward = (totals - self._new_totals[slots]).astype(np.int32) > 0
        newer = accepted[forward]
        self._new_totals[slots[forward]] = totals[forward]
        self._new_values[slots[forward]] = values_of(payloads[newer], self.membership.lanes).astype(np.uint32)

        self._state[slots] = ANSWERED
        self._latest_answered = max(self._latest_answered, int(self._order[slots].max()))
        self._policy = headers[accepted[-1]].copy()
        self._seen = max(self._seen, int(headers["seen"][accepted].max()))
        self._heard_at = now
        self.window.through(accepted.size)
        self.round_trip.progressed()

    def finish(self) -> Read:
        """The iteration's result, once ``done``; moves on to the next round, or into the epoch that was announced."""
        if not self.done or self._policy is None:
            raise RuntimeError("the iteration is not finished")
        policy = self._policy
        read = Read(
            difference=(self._new_values - self.held_values).view(np.int32),
            contributions=(self._new_totals - self.held_totals).astype(np.int64),
            epoch=self.epoch,
            round=self.round,
            seen=self._seen,
            sync_mask=int(policy["sync_mask"]),
            staleness=int(policy["staleness"]),
            quorum=int(policy["quorum"]),
            read_mode=ReadMode(int(policy["read_mode"])),
            waited_s=self._waited_s,
        )
        self.held_values, self.held_totals = self._new_values, self._new_totals
        if self._pulling:
            self.seq = max(self.seq, self._seen)
            return read
        self.last = read
        if self._announced:
            self.epoch, self.round = self._announced, 0
        else:
            self.round += 1
        return read


def parse_welcome(payload: bytes) -> Membership:
    """The membership in a WELCOME's UDP payload."""
    header = np.frombuffer(payload, HEADER, 1)[0]
    body = np.frombuffer(payload, MEMBERSHIP, 1, HEADER.itemsize)[0]
    return Membership(
        session=int(header["session"]),
        epoch=int(header["epoch"]),
        vector_length=int(body["vector_length"]),
        slots=int(body["slots"]),
        lanes=int(body["lanes"]),
        scale=int(body["scale"]),
        workers=int(body["workers"]),
        incarnation=int(body["incarnation"]),
    )
