"""Checks bounded staleness: compares how far the switch lets workers continue with the contributions that it received.

A counted worker may finish round r of its epoch when round r - s is complete, that is, when as many counted workers as
the quorum says have contributed to it. This is checked slot by slot, when the switch answers, and again when a worker
continues.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator

from serene.experiments.correctness.virtual.checks import Violation
from serene.strategy import PolicyFields
from serene.wire import ENCAPSULATION_BYTES, HEADER, SERENE_FIELDS, UNBOUNDED, Op

WHOLE = ENCAPSULATION_BYTES + HEADER.itemsize
_FIELDS = ("op", "worker", "session", "epoch", "round", "seq", "slot", "sync_mask", "staleness", "quorum")
_HEADER = struct.Struct(">" + "".join({1: "B", 4: "I"}[n] if name in _FIELDS else f"{n}x" for name, n in SERENE_FIELDS))
FORGOTTEN = 64  # rounds after which a round's arrivals are not needed any more


class Arrivals:
    """The contributions that have come to the switch, and the check of the answers that leave it.

    at_bound: how often a worker went on although one round more would have been beyond its bound. It shows that runs
    come to the bound at all.
    """

    def __init__(self) -> None:
        # (session, epoch, round, slot) -> mask of the workers that have contributed
        self._came: dict[tuple[int, int, int, int], int] = defaultdict(int)
        # (session, worker, slot) -> (seq, epoch, round) of the newest PUSH
        self._pushed: dict[tuple[int, int, int], tuple[int, int, int]] = {}
        self.at_bound = 0

    def come(self, frames: Iterable[bytes]) -> None:
        """Notes frames of workers that reach the switch."""
        for op, worker, session, epoch, round_, seq, slot, *_ in _headers(frames):
            if op == Op.PUSH:
                self._came[session, epoch, round_, slot] |= 1 << worker
                self._came.pop((session, epoch, round_ - FORGOTTEN, slot), None)
                place = session, worker, slot
                self._pushed[place] = max(self._pushed.get(place, (0, 0, 0)), (seq, epoch, round_))

    def answered(self, frames: Iterable[bytes]) -> None:
        """Checks frames that the switch sends, after ``come`` with the frames that they answer. Raises Violation."""
        for op, worker, session, epoch, base, seq, slot, mask, staleness, quorum in _headers(frames):
            if op != Op.ANSWER or staleness == UNBOUNDED or not mask >> worker & 1:
                continue
            if seq == 0:  # a release: it claims that rounds are complete
                self._check(worker, session, epoch, base - 1, slot, mask, quorum, f"receives base {base}")
            else:
                *pushed, round_ = self._pushed.get((session, worker, slot), (0, 0, 0))
                if pushed == [seq, epoch]:
                    done = f"may finish round {round_}, the bound is {staleness}"
                    self._check(worker, session, epoch, round_ - staleness, slot, mask, quorum, done)

    def went_on(self, worker: int, session: int, epoch: int, round_: int, fields: PolicyFields, slots: int) -> None:
        """Checks a counted worker that has read all slots and finishes a round, under the policy of its epoch. Raises
        Violation."""
        if fields.staleness == UNBOUNDED:
            return
        needed, done = round_ - fields.staleness, f"finished round {round_}, the bound is {fields.staleness}"
        for slot in range(slots):
            self._check(worker, session, epoch, needed, slot, fields.sync_mask, fields.quorum, done)
        beyond = [self._came[session, epoch, needed + 1, slot] & fields.sync_mask for slot in range(slots)]
        self.at_bound += any(came.bit_count() < fields.quorum for came in beyond)

    def _check(
        self, worker: int, session: int, epoch: int, round_: int, slot: int, mask: int, quorum: int, what: str
    ) -> None:
        """Raises Violation unless a round is complete, as all rounds below 0 are. what: the message's verb."""
        came = self._came.get((session, epoch, round_, slot), 0) & mask
        if round_ >= 0 and came.bit_count() < quorum:
            raise Violation(
                "bounded staleness",
                f"worker {worker} {what}, but round {round_} of epoch {epoch} in slot {slot} has contributions of "
                f"workers {[number for number in range(32) if came >> number & 1]} only, not of {quorum}",
            )


def _headers(frames: Iterable[bytes]) -> Iterator[tuple[int, ...]]:
    """The _FIELDS of each frame that is long enough to have them."""
    return (_HEADER.unpack_from(frame, ENCAPSULATION_BYTES) for frame in frames if len(frame) >= WHOLE)
