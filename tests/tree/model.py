"""The tree's rules in Python, packet by packet: docs/hierarchy.md as an oracle for the P4 programs.

The model has one job. A leaf and the root turn each packet into a list of packets, and have no timers. Values are whole
vectors of lanes, added modulo 2**32.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from serene.racks import LeafPolicy
from serene.strategy import PolicyFields
from serene.wire import UNBOUNDED, Op, ReadMode
from tests.model import RING, Answer

Echo = tuple[int, int]  # (worker, seq) of the request that is echoed


@dataclass(frozen=True)
class Up:
    """A leaf's packet to the root. values: the rack's sum, which replaces any sent before. arrivals: under k-of-n, how
    many contributions have arrived in the round that ``base`` names. ask: whether the leaf wants an answer."""

    session: int
    epoch: int
    base: int
    arrivals: int
    total: int
    values: np.ndarray
    ask: bool
    echo: Echo | None


@dataclass(frozen=True)
class Down:
    """The root's packet to a leaf with values: in an epoch of latest reads the other racks' sum; in an epoch of
    snapshot reads the snapshot, or the sum for an echo."""

    leaf: int
    session: int
    epoch: int
    base: int
    total: int
    values: np.ndarray
    echo: Echo | None


@dataclass(frozen=True)
class Grant:
    """The root's packet to a leaf without values. The leaf may not rely on it, and asks for the values."""

    leaf: int
    session: int
    epoch: int
    base: int


def _zero(lanes: int) -> np.ndarray:
    return np.zeros(lanes, np.uint32)


@dataclass
class LeafSlot:
    """A leaf's slot in one session."""

    lanes: int
    session: int = 0
    epoch: int = 0
    base: int = 0  # rounds that the rack has completed; under k-of-n the same as ``granted``
    granted: int = 0  # rounds that the job has, as heard from the root
    heard: bool = False  # ``down`` and ``granted`` are of this epoch
    arrived: int = 0  # counted contributions to round ``granted``
    waiting: set[int] = field(default_factory=set)
    seen: dict[int, int] = field(default_factory=dict)
    ring: dict[int, tuple[tuple[int, int], int]] = field(default_factory=dict)  # place -> ((epoch, round), arrivals)
    total: int = 0
    down_total: int = 0

    def __post_init__(self) -> None:
        self.sum, self.down = _zero(self.lanes), _zero(self.lanes)

    def adopt(self, epoch: int) -> set[int]:
        """Begins an epoch, and returns the workers to be nudged."""
        nudged, self.waiting = self.waiting, set()
        self.epoch, self.base, self.granted, self.arrived = epoch, 0, 0, 0
        self.heard = False
        return nudged


class Leaf:
    """One rack's switch, for one job."""

    def __init__(self, slots: int, lanes: int, workers: Iterable[int], of_job: int = 1) -> None:
        self.lanes = lanes
        self.of_job = of_job  # workers, in all racks
        self.slots = [LeafSlot(lanes) for _ in range(slots)]
        self.session = self.epoch = 0  # as the controller wrote last; the epoch may be an older one
        self.prepared: dict[tuple[int, int], LeafPolicy] = {}
        self.known = (0, 0)  # session, and the newest epoch of it that the root has announced
        self.admitted = dict.fromkeys(workers, 1)  # worker -> the incarnation that may speak for it
        self.contributions: dict[int, int] = {}
        self.staleness: dict[tuple[int, int], int] = {}
        self.dropped: dict[str, int] = {}

    def _drop(self, reason: str) -> list[Answer | Up]:
        self.dropped[reason] = self.dropped.get(reason, 0) + 1
        return []

    def _newest(self) -> int:
        """The newest epoch that is in force for certain."""
        return max(self.epoch, self.known[1] if self.known[0] == self.session else 0)

    def _slot(self, place: int) -> LeafSlot | None:
        """The slot at a place, begun anew if its session is an older one; None if it has seen a newer session."""
        if self.slots[place].session > self.session:
            return None
        if self.slots[place].session < self.session:
            self.slots[place] = LeafSlot(self.lanes, self.session)
        return self.slots[place]

    # -- from workers ----------------------------------------------------------------------------------------

    def request(
        self,
        worker: int,
        place: int,
        seq: int,
        session: int,
        epoch: int,
        round_: int,
        values: np.ndarray | None,
        read: int = 0,
        incarnation: int = 1,
    ) -> list[Answer | Up]:
        """Handles a worker's PUSH, or without values its PULL. read: the total that the sender read last."""
        if self.admitted.get(worker) != incarnation:
            return self._drop("stranger")
        if session != self.session:
            return self._drop("wrong_session")
        if values is not None and epoch > self._newest():
            return self._drop("wrong_epoch")
        slot = self._slot(place)
        if slot is None:
            return self._drop("old_session")
        if values is None:
            return [self._up(slot, True, (worker, seq))]
        policy = self.prepared.get((session, epoch))
        nudged: set[int] = set()
        if policy is not None and epoch > slot.epoch:
            nudged = slot.adopt(epoch)
        current = policy is not None and epoch == slot.epoch
        fields = policy.fields if policy is not None else None
        latest = fields is not None and fields.read_mode is ReadMode.LATEST
        bound = fields.staleness if fields is not None else 0
        counted = fields is not None and current and bool(fields.sync_mask >> worker & 1) and bound != UNBOUNDED
        if counted and round_ > slot.granted + bound:
            self._drop("wrong_round")
            return self._nudges(slot, nudged - {worker})
        fresh = seq > slot.seen.get(worker, 0)
        if fresh:
            self._note_staleness(slot, worker, latest, read)
            slot.seen[worker] = seq
            slot.sum, slot.total = slot.sum + values.astype(np.uint32), slot.total + 1
            self.contributions[worker] = self.contributions.get(worker, 0) + 1
        tell = policy is not None and counted and fresh and self._arrive(slot, policy, epoch, round_)
        if counted:
            go = slot.heard and round_ < slot.granted + bound
            slot.waiting = slot.waiting - {worker} if go else slot.waiting | {worker}
        else:
            go = slot.heard and current and latest
        packets: list[Answer | Up] = list(self._nudges(slot, nudged - {worker}))
        if go:
            packets.append(self._answer(slot, worker, Op.ANSWER, seq, slot.granted, *self._held(slot, latest)))
        elif not counted:
            return [*packets, self._up(slot, True, (worker, seq))]
        repeat = not go and not fresh
        unheard = not slot.heard and bound > 0
        flush = policy is not None and latest and fresh and not slot.total & policy.flush_mask
        if tell or repeat or unheard or flush:
            packets.append(self._up(slot, repeat or unheard or latest, None))
        return packets

    def _note_staleness(self, slot: LeafSlot, worker: int, latest: bool, read: int) -> None:
        """Notes the staleness of a contribution in rounds: how much the job's sum has grown since the sender read it,
        as far as the leaf knows."""
        unread = max(slot.down_total + (slot.total if latest else 0) - read, 0)
        stale = worker, min(unread // self.of_job, RING - 1)
        self.staleness[stale] = self.staleness.get(stale, 0) + 1

    @staticmethod
    def _arrive(slot: LeafSlot, policy: LeafPolicy, epoch: int, round_: int) -> bool:
        """Counts an arrival, and returns whether to notify the root."""
        if policy.by_arrivals:
            slot.arrived += round_ == slot.granted
            return round_ == slot.granted and slot.arrived >= policy.enough
        here = (epoch, round_)
        tag, arrivals = slot.ring.get(round_ % RING, ((0, 0), 0))
        arrivals = arrivals + 1 if here == tag else 1
        if here < tag:
            return False
        slot.ring[round_ % RING] = (here, arrivals)
        complete = arrivals == policy.enough
        if complete:
            slot.base = round_ + 1
        return complete

    # -- from the root ---------------------------------------------------------------------------------------

    def _hear(self, session: int, epoch: int) -> None:
        self.known = max(self.known, (session, epoch))

    def down(self, place: int, packet: Down) -> list[Answer | Up]:
        if packet.session != self.session:
            return self._drop("wrong_session")
        policy = self.prepared.get((packet.session, packet.epoch))
        if policy is None:
            return self._drop("unprepared")
        slot = self._slot(place)
        if slot is None:
            return self._drop("old_session")
        self._hear(packet.session, packet.epoch)
        latest, bound = policy.fields.read_mode is ReadMode.LATEST, policy.fields.staleness
        nudged: set[int] = set()
        released: set[int] = set()
        if packet.epoch > slot.epoch:
            nudged = slot.adopt(packet.epoch)
        current = packet.epoch == slot.epoch
        keep = latest or not packet.echo
        forward = (packet.base, packet.total) >= (slot.granted, slot.down_total)
        before = slot.granted
        if current and keep and (forward or not slot.heard):
            first = not slot.heard and bound > 0
            slot.down, slot.down_total, slot.granted = packet.values, packet.total, packet.base
            slot.heard = True
            if packet.base > before:
                slot.arrived = 0
                slot.base = packet.base if policy.by_arrivals else slot.base
            if first:
                nudged |= slot.waiting
                slot.waiting = set()
            elif packet.base > before:
                released, slot.waiting = slot.waiting, set()
        packets: list[Answer | Up] = []
        if packet.echo:
            worker, seq = packet.echo
            nudged, released = nudged - {worker}, released - {worker}
            if current:
                values, total = packet.values, packet.total
                if latest:
                    values, total = values + slot.sum, total + slot.total
                packets.append(self._answer(slot, worker, Op.ANSWER, seq, packet.base, values, total))
            else:
                nudged |= {worker}
        held = self._held(slot, latest)
        packets += [self._answer(slot, worker, Op.ANSWER, 0, before + 1, *held) for worker in sorted(released)]
        return [*packets, *self._nudges(slot, nudged, packet.epoch)]

    def grant(self, place: int, packet: Grant) -> list[Answer | Up]:
        if packet.session != self.session:
            return self._drop("wrong_session")
        if (packet.session, packet.epoch) not in self.prepared:
            return self._drop("unprepared")
        slot = self._slot(place)
        if slot is None:
            return self._drop("old_session")
        self._hear(packet.session, packet.epoch)
        nudged: set[int] = set()
        if packet.epoch > slot.epoch:
            nudged = slot.adopt(packet.epoch)
        elif packet.epoch < slot.epoch or (slot.heard and packet.base <= slot.granted):
            return []
        return [*self._nudges(slot, nudged), self._up(slot, True, None)]

    # -- packets ---------------------------------------------------------------------------------------------

    @staticmethod
    def _held(slot: LeafSlot, latest: bool) -> tuple[np.ndarray, int]:
        return (slot.down + slot.sum, slot.down_total + slot.total) if latest else (slot.down, slot.down_total)

    def _nudges(self, slot: LeafSlot, workers: set[int], epoch: int | None = None) -> list[Answer | Up]:
        """Nudges for these workers. epoch: the one that the packet names; the slot's if None."""
        epoch = slot.epoch if epoch is None else epoch
        return [Answer(worker, Op.NUDGE, epoch, 0, 0, 0, ()) for worker in sorted(workers)]

    @staticmethod
    def _answer(
        slot: LeafSlot, worker: int, op: Op, seq: int, base: int, values: np.ndarray, total: int
    ) -> Answer | Up:
        return Answer(worker, op, slot.epoch, base, seq, total, tuple(values.view(np.int32).tolist()))

    @staticmethod
    def _up(slot: LeafSlot, ask: bool, echo: Echo | None) -> Up:
        return Up(slot.session, slot.epoch, slot.base, slot.arrived, slot.total, slot.sum, ask, echo)


@dataclass
class Rack:
    """What the root's slot keeps of one rack. epoch: the one that ``base`` and ``arrivals`` belong to; 0 if the root
    has not heard from the rack."""

    values: np.ndarray
    total: int = 0
    epoch: int = 0
    base: int = 0
    arrivals: int = 0


@dataclass
class RootSlot:
    """The root's slot in one session."""

    lanes: int
    racks: int
    session: int = 0
    epoch: int = 0
    base: int = 0
    total: int = 0
    snapshot_total: int = 0

    def __post_init__(self) -> None:
        self.sum, self.snapshot = _zero(self.lanes), _zero(self.lanes)
        self.rack = [Rack(_zero(self.lanes)) for _ in range(self.racks)]


class Root:
    """The root's switch, for one job. leaves: the number of racks."""

    def __init__(self, slots: int, lanes: int, leaves: int) -> None:
        self.lanes, self.leaves = lanes, leaves
        self.session = self.epoch = 0
        self.policy: PolicyFields  # with session and epoch, one table entry
        self.slots = [RootSlot(lanes, leaves) for _ in range(slots)]
        self.dropped: dict[str, int] = {}

    def _drop(self, reason: str) -> list[Down | Grant]:
        self.dropped[reason] = self.dropped.get(reason, 0) + 1
        return []

    def up(self, leaf: int, place: int, packet: Up) -> list[Down | Grant]:
        policy = self.policy
        if packet.session != self.session:
            return self._drop("wrong_session")
        if packet.epoch > self.epoch:
            return self._drop("wrong_epoch")
        if self.slots[place].session > self.session:
            return self._drop("old_session")
        clear = self.slots[place].session < self.session
        if clear:
            self.slots[place] = RootSlot(self.lanes, self.leaves, self.session)
        slot = self.slots[place]
        rack = slot.rack[leaf]
        rebased = slot.epoch != self.epoch
        if rebased:
            slot.epoch, slot.base = self.epoch, 0
        if packet.total > rack.total:
            slot.sum = slot.sum + (packet.values - rack.values)
            slot.total += packet.total - rack.total
            rack.values, rack.total = packet.values, packet.total
        current = packet.epoch == self.epoch
        first = current and rack.epoch != self.epoch and bool(policy.sync_mask >> leaf & 1)
        if current:
            known = (rack.base, rack.arrivals) if rack.epoch == self.epoch else (0, 0)
            rack.base, rack.arrivals = max(known, (packet.base, packet.arrivals))
            rack.epoch = self.epoch
        base = self._base(slot)
        moved, slot.base = base > slot.base, base
        # A rack of which nothing was known in this epoch may have handed out reads that the snapshot lacks (k-of-n).
        if clear or moved or base == 0 or first:
            slot.snapshot, slot.snapshot_total = slot.sum, slot.total

        snapshot = policy.read_mode is ReadMode.SNAPSHOT
        packets: list[Down | Grant] = []
        if packet.echo:
            packets.append(self._down(slot, leaf, packet.echo))
        for child in range(self.leaves):
            if moved and policy.sync_mask >> child & 1:
                heard = slot.rack[child].epoch == self.epoch
                loaded = heard if snapshot else child == leaf
            elif child == leaf and not packet.echo and (packet.ask or not current):
                loaded = current
            elif rebased and child != leaf:
                loaded = False
            else:
                continue
            grant = Grant(child, self.session, self.epoch, slot.base)
            packets.append(self._down(slot, child, None) if loaded else grant)
        return packets

    def _base(self, slot: RootSlot) -> int:
        """The number of rounds that are complete."""
        counted = [rack for child, rack in enumerate(slot.rack) if self.policy.sync_mask >> child & 1]
        if not self.policy.quorum:
            return min((rack.base if rack.epoch == self.epoch else 0 for rack in counted), default=0)
        there = [rack for rack in counted if rack.epoch == self.epoch and rack.base == slot.base]
        return slot.base + (sum(rack.arrivals for rack in there) >= self.policy.quorum)

    def _down(self, slot: RootSlot, leaf: int, echo: Echo | None) -> Down:
        if self.policy.read_mode is ReadMode.LATEST:
            values, total = slot.sum - slot.rack[leaf].values, slot.total - slot.rack[leaf].total
        else:
            values, total = (slot.sum, slot.total) if echo else (slot.snapshot, slot.snapshot_total)
        return Down(leaf, self.session, self.epoch, slot.base, total, values, echo)
