"""A model of the switch in Python, packet by packet, by the rules of docs/protocol.md: the oracle for the P4 program.

It has one job. Values are vectors of lanes, added modulo 2**32. Methods return the packets that the switch would send;
the state is in public attributes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from serene.strategy import PolicyFields
from serene.wire import UNBOUNDED, Op, ReadMode

RING = 16


@dataclass(frozen=True)
class Policy:
    session: int
    epoch: int
    fields: PolicyFields


@dataclass(frozen=True)
class Answer:
    worker: int
    op: Op
    epoch: int
    base: int
    seq: int
    total: int
    values: tuple[int, ...]


@dataclass
class Slot:
    """A slot's state in one session."""

    lanes: int
    session: int = 0
    epoch: int = 0
    base: int = 0
    waiting: set[int] = field(default_factory=set)
    seen: dict[int, int] = field(default_factory=dict)
    spoke: dict[int, int] = field(default_factory=dict)  # worker -> the incarnation that read or contributed last
    ring: dict[int, tuple[tuple[int, int], int]] = field(default_factory=dict)  # place -> ((epoch, round), arrivals)
    total: int = 0
    snapshot_total: int = 0

    def __post_init__(self) -> None:
        self.sum = np.zeros(self.lanes, np.uint32)
        self.snapshot = np.zeros(self.lanes, np.uint32)


class Model:
    """The switch, for one job."""

    def __init__(self, slots: int, lanes: int, workers: int) -> None:
        self.workers = workers
        self.lanes = lanes
        self.slots = [Slot(lanes) for _ in range(slots)]
        self.policy: Policy | None = None
        self.admitted = dict.fromkeys(range(workers), 1)  # worker -> the incarnation that may speak for it
        self.contributions: dict[int, int] = {}
        self.staleness: dict[tuple[int, int], int] = {}  # (worker, rounds) -> contributions that stale
        self.dropped_stranger = 0
        self.dropped_wrong_session = 0
        self.dropped_old_session = 0
        self.dropped_wrong_round = 0
        # Contributions that break rule 8: of an incarnation that has not read, where another one has contributed.
        self.unread = 0

    def hello(self, worker: int, incarnation: int) -> bool:
        """Returns whether the switch answers with a WELCOME; otherwise the HELLO is punted."""
        return self.policy is not None and self.admitted.get(worker) == incarnation

    def leave(self, worker: int, incarnation: int) -> bool:
        """Whether a LEAVE, or a REPORT, goes to the controller."""
        return self.admitted.get(worker) == incarnation

    def pull(self, worker: int, slot: int, seq: int, session: int, incarnation: int = 1) -> list[Answer]:
        return self._request(worker, slot, seq, session, 0, 0, None, 0, incarnation)

    def push(
        self,
        worker: int,
        slot: int,
        seq: int,
        session: int,
        epoch: int,
        round_: int,
        values: np.ndarray,
        read: int,
        incarnation: int = 1,
    ) -> list[Answer]:
        """``read``: the total that the sender read last."""
        return self._request(worker, slot, seq, session, epoch, round_, values, read, incarnation)

    def _request(
        self,
        worker: int,
        place: int,
        seq: int,
        session: int,
        epoch: int,
        round_: int,
        values: np.ndarray | None,
        read: int,
        incarnation: int,
    ) -> list[Answer]:
        if self.admitted.get(worker) != incarnation:
            self.dropped_stranger += 1
            return []
        policy = self.policy
        assert policy is not None
        fields = policy.fields
        if session != policy.session:
            self.dropped_wrong_session += 1
            return []
        if self.slots[place].session > session:
            self.dropped_old_session += 1
            return []
        clear = self.slots[place].session != policy.session
        if clear:
            self.slots[place] = Slot(self.lanes, policy.session)
        slot = self.slots[place]
        push = values is not None
        current = push and epoch == policy.epoch
        counted = bool(fields.sync_mask >> worker & 1)

        nudge: set[int] = set()
        rebase = current and slot.epoch != policy.epoch
        if rebase:
            nudge, slot.waiting = slot.waiting - {worker}, set()
            slot.epoch, slot.base = policy.epoch, 0

        bound = None if fields.staleness == UNBOUNDED else slot.base + fields.staleness
        wrong_round = current and counted and bound is not None and round_ > bound
        fresh = push and not wrong_round and seq > slot.seen.get(worker, 0)
        self.unread += push and slot.seen.get(worker, 0) > 0 and slot.spoke[worker] != incarnation
        slot.spoke[worker] = incarnation
        if fresh:
            unread = (slot.total - read) % 2**32
            stale = worker, min(unread // self.workers, RING - 1)
            self.staleness[stale] = self.staleness.get(stale, 0) + 1
            slot.seen[worker] = seq
            slot.sum = slot.sum + values.astype(np.uint32)  # type: ignore[union-attr]
            slot.total += 1
            self.contributions[worker] = self.contributions.get(worker, 0) + 1

        release: set[int] = set()
        complete = False
        if current and fresh and counted:
            tag, arrivals = slot.ring.get(round_ % RING, ((0, 0), 0))
            here = (policy.epoch, round_)
            if here > tag or round_ % RING not in slot.ring:
                arrivals = 1
            elif here == tag:
                arrivals += 1
            else:
                arrivals, here = 0, tag
            if arrivals:
                slot.ring[round_ % RING] = (here, arrivals)
                complete = arrivals == fields.quorum
        if complete:
            slot.base = round_ + 1
            release, slot.waiting = slot.waiting - {worker}, set()
        if clear or rebase or complete:
            slot.snapshot, slot.snapshot_total = slot.sum.copy(), slot.total

        go = not current or not counted or fields.staleness == UNBOUNDED or round_ < slot.base + fields.staleness
        if wrong_round:
            self.dropped_wrong_round += 1
        elif not go:
            slot.waiting.add(worker)
        elif push:
            slot.waiting.discard(worker)

        from_snapshot = current and counted and fields.read_mode is ReadMode.SNAPSHOT
        vector = slot.snapshot if from_snapshot else slot.sum
        total = slot.snapshot_total if from_snapshot else slot.total
        lanes = tuple(int(value) for value in vector.view(np.int32))
        answers = [Answer(other, Op.ANSWER, policy.epoch, slot.base, 0, total, lanes) for other in sorted(release)]
        answers += [Answer(other, Op.NUDGE, policy.epoch, slot.base, 0, 0, ()) for other in sorted(nudge)]
        if go:
            answers.append(Answer(worker, Op.ANSWER, policy.epoch, slot.base, seq, total, lanes))
        return answers
