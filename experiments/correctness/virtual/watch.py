"""Checks during a run: the policies that the controller writes, what the switch sends, and what workers read."""

from __future__ import annotations

import struct
from collections import defaultdict

import numpy as np

from serene.experiments.correctness.virtual.arrivals import Arrivals
from serene.experiments.correctness.virtual.checks import Violation
from serene.strategy import PolicyFields
from serene.wire import ENCAPSULATION_BYTES, HEADER, SWITCH_MAC, Op, ReadMode, mac_bytes


def field(name: str) -> slice:
    """Where a field of the header is in a frame."""
    assert HEADER.fields is not None
    kind, offset = HEADER.fields[name][:2]
    return slice(ENCAPSULATION_BYTES + offset, ENCAPSULATION_BYTES + offset + kind.itemsize)


OP = field("op").start
INCARNATION = field("incarnation")
_ERA = slice(field("session").start, field("epoch").stop)  # session, epoch
_SESSION = field("session")
_PLACE = slice(field("slot").start, field("total").stop)  # slot, total
_POLICY = slice(field("sync_mask").start, field("members").stop)
_VALUES = slice(ENCAPSULATION_BYTES + HEADER.itemsize, None)
_PROGRAM_SENDS = frozenset((Op.ANSWER, Op.NUDGE, Op.WELCOME))
_SWITCH = mac_bytes(SWITCH_MAC)


class Watch:
    """Its methods observe what happens in a run, and raise Violation for what must not happen. fields: the policies
    that were written. bsp_reads: sums under BSP that were compared."""

    def __init__(self) -> None:
        self.fields: dict[tuple[int, int], PolicyFields] = {}  # by (session, epoch)
        self.arrivals = Arrivals()
        self.bsp_reads = 0
        self._policies: dict[bytes, bytes] = {}
        self._session = 0
        self._has_place: dict[tuple[int, int, int], int] = {}  # incarnations by session, job and worker
        self._replaced: dict[tuple[int, int, int], set[int]] = defaultdict(set)  # and those that had the place
        self._sums: dict[bytes, int] = {}  # (session, slot, contributions in it) -> hash of the values
        self._reads: dict[tuple[int, int, int], bytes] = {}  # BSP reads by (session, epoch, round)

    # -- what the controller and the switch send -------------------------------------------------------------

    def successor(self) -> None:
        """Another controller has taken over, which does not know who had whose place."""
        self._replaced.clear()

    def admitted(self, job: int, worker: int, incarnation: int) -> None:
        """A worker's place goes to a process."""
        place = (self._session, job, worker)
        last = self._has_place.get(place)
        if incarnation != last:
            if incarnation in self._replaced[place]:
                raise Violation("nobody is stopped", f"two processes take worker {worker}'s place from each other")
            if last is not None:
                self._replaced[place].add(last)
            self._has_place[place] = incarnation

    def decided(self, session: int, epoch: int, fields: PolicyFields) -> None:
        """The controller puts a policy in force."""
        self._session = max(self._session, session)
        if self.fields.setdefault((session, epoch), fields) != fields:
            raise Violation("one policy per decision", f"epoch {epoch} of session {session} has a second policy")
        policy = fields.sync_mask, fields.staleness, fields.quorum, int(fields.read_mode), fields.members
        self._policies[struct.pack(">II", session, epoch)] = struct.pack(">IBBBB", *policy)

    def frames_sent(self, frames: list[bytes]) -> None:
        """The switch sends frames."""
        ours = [frame for frame in frames if frame[6:12] == _SWITCH and frame[OP] in _PROGRAM_SENDS]
        for frame in ours:
            if self._policies.get(frame[_ERA]) != frame[_POLICY]:
                raise Violation("one policy per decision", f"{Op(frame[OP]).name} has a policy that nobody wrote")
            if frame[OP] == Op.ANSWER:
                self._record_sum(frame[_SESSION] + frame[_PLACE], hash(frame[_VALUES]))
        self.arrivals.answered(ours)

    def _record_sum(self, place: bytes, values: int) -> None:
        """place: session, slot and contributions in the sum; values: their hash."""
        if self._sums.setdefault(place, values) != values:
            raise Violation("no wrong read", "two sums of the same contributions differ")

    def _was_sent(self, place: bytes, values: int) -> bool:
        return self._sums.get(place) == values

    def restored(self, session: int, held: np.ndarray) -> None:
        """A session begins with this sum of a lost one, int64[slots, lanes], as its donor has read it."""

    # -- what workers do -------------------------------------------------------------------------------------

    def ends(self, worker: int, session: int, epoch: int, round_: int, held: np.ndarray) -> None:
        """A worker finishes a round, holding this sum, uint32[slots, lanes], and has heard of no newer epoch."""
        fields = self.fields[session, epoch]
        if not fields.sync_mask >> worker & 1:
            return
        self.arrivals.went_on(worker, session, epoch, round_, fields, len(held))
        if fields.read_mode is ReadMode.SNAPSHOT and fields.quorum == fields.sync_mask.bit_count():
            values = held.tobytes()
            if self._reads.setdefault((session, epoch, round_), values) != values:
                raise Violation("isolated BSP", f"worker {worker} read another sum in round {round_} of epoch {epoch}")
            self.bsp_reads += 1

    def reads(self, worker: int, session: int, held: np.ndarray, totals: np.ndarray, replica: np.ndarray) -> None:
        """A worker has read. held: the sum that it holds, uint32[slots, lanes]. totals: how many contributions that is,
        uint32[slots]. replica: the sum of all differences that the client has returned, int64[slots, lanes]."""
        if not np.array_equal(replica.astype(np.uint32), held):
            raise Violation("no wrong read", f"worker {worker}'s replica is not what it has read")
        for slot, (total, values) in enumerate(zip(totals.tolist(), held, strict=True)):
            was_sent = self._was_sent(struct.pack(">III", session, slot, total), hash(values.astype(">u4").tobytes()))
            if not was_sent and (total or values.any()):
                raise Violation("no wrong read", f"worker {worker} read in slot {slot} what the switch never sent")
