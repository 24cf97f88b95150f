"""The same runs on a tree of switches: a leaf for each rack, a root, and links between them as bad as the workers'.

The controller commands the tree as if it were one switch: each entry is written to the switches that need it, a policy
by preparing every leaf and then writing the root's entry. Some leaves may hold a policy for the next epoch that is
never put in force, as a controller that dies in the middle of a swap leaves it behind.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from serene import entries
from serene.entries import CPU_PORT, FLOOD_GROUP, JOB_GROUPS, Cell, Entry, Group
from serene.experiments.correctness.virtual.checks import Violation
from serene.experiments.correctness.virtual.ledger import Contribution
from serene.experiments.correctness.virtual.plan import Plan
from serene.experiments.correctness.virtual.schedule import WIRE_S, Schedule
from serene.experiments.correctness.virtual.switch import P4Switch, Packets
from serene.experiments.correctness.virtual.timeline import Due
from serene.experiments.correctness.virtual.watch import OP, Watch
from serene.experiments.correctness.virtual.worker import Incarnation, Place
from serene.faults import Direction
from serene.program import Program
from serene.racks import policies
from serene.strategy import ASP, BSP, PolicyFields, Strategy
from serene.wire import ENCAPSULATION_BYTES, HEADER, ROOT, Op, ReadMode

UPLINK = 200  # a leaf's port to the root; workers' ports are numbered through the whole tree
TO_LEAF, TO_ROOT = 1000, 2000  # plus a rack: ports that stand for the rack's link between root and leaf, by direction
RACKS = 3
FLUSH_EVERY = (1, 1, 2, 4)


@dataclass(frozen=True)
class Accepted:
    """A contribution that a leaf has added to its rack's sum."""

    session: int
    worker: int
    slot: int
    epoch: int
    round: int


class TreeSwitch:
    """A tree of leaves and a root, with the interface of one switch. Worker w is in rack w mod ``racks``.

    accepted: contributions that leaves have accepted; the reader empties it. never_in_force: how many policies some
    leaf was prepared for that were not put in force.
    """

    def __init__(self, leaf: Program, root: Program, racks: int = RACKS) -> None:
        self.leaves = [P4Switch(leaf) for _ in range(racks)]
        self.root = P4Switch(root)
        self.program, self.lanes, self.slots = leaf, leaf.lanes, leaf.slots
        self.counters = self.root.counters
        self._table: dict[tuple[str, tuple[int, ...]], Entry] = {}
        self.accepted: list[Accepted] = []
        self.never_in_force = 0
        self._rng = random.Random(0)
        self._prepared: dict[int, list[tuple[int, int]]] = defaultdict(list)  # by job: (session, epoch)
        self._untold: dict[int, Entry] = {}  # by job: the policy in force, if the leaves have not been told of it
        self._session: dict[int, int] = {}

    def close(self) -> None:
        for switch in (*self.leaves, self.root):
            switch.close()

    def seed(self, seed: int) -> None:
        """Seeds the tree's own random choices."""
        self._rng = random.Random(f"tree/{seed}")

    def _rack(self, worker: int) -> int:
        return worker % len(self.leaves)

    def _masks(self) -> list[int]:
        return [sum(1 << worker for worker in range(rack, 32, len(self.leaves))) for rack in range(len(self.leaves))]

    # -- entries ---------------------------------------------------------------------------------------------

    def put(self, entry: Entry) -> None:
        self._table[entry.key] = entry
        if entry.table == "member":
            self._tell(entry.match["job"])  # or the leaf's WELCOME to this worker would name an old epoch
            self.leaves[self._rack(entry.match["worker"])].put(entry)
        elif entry.table == "address":
            self.leaves[self._rack(entry.match["worker"])].put(entry)
        elif entry.table == "policy":
            self._set_policy(entry)
        else:
            for switch in (*self.leaves, self.root):
                switch.put(entry)

    def delete(self, entry: Entry) -> None:
        del self._table[entry.key]
        if entry.table in ("member", "address"):
            self.leaves[self._rack(entry.match["worker"])].delete(entry)
        else:
            for switch in (*self.leaves, self.root):
                switch.delete(entry)

    def has(self, entry: Entry) -> bool:
        return entry.key in self._table

    def entries(self) -> list[Entry]:
        return list(self._table.values())

    def packets(self, cell: Cell) -> int:
        return sum(leaf.packets(cell) for leaf in self.leaves)

    def zero(self, cell: Cell) -> None:
        for leaf in self.leaves:
            leaf.zero(cell)

    def learned(self) -> list[tuple[str, int]]:
        return []

    def set_group(self, group: Group) -> None:
        up = (UPLINK, 0 if group.number == FLOOD_GROUP else ROOT + 1)
        for rack, leaf in enumerate(self.leaves):
            here = [(port, replica) for port, replica in group.replicas if self._rack_of_port(port) == rack]
            leaf.set_group(Group(group.number, (*here, up)))
        ports = [rack + 1 for rack in range(len(self.leaves))]
        if group.number == FLOOD_GROUP:
            self.root.set_group(entries.flood_group(ports))
        else:
            self.root.set_group(entries.root_group(group.number - JOB_GROUPS, enumerate(ports)))

    def _rack_of_port(self, port: int) -> int:
        return (port - 1) % len(self.leaves)

    def _set_policy(self, entry: Entry) -> None:
        job, (session, epoch, *rest) = entry.match["job"], entry.params.values()
        member_mask, sync_mask, staleness, quorum, read_mode, _ = rest
        fields = PolicyFields(member_mask, sync_mask, staleness, quorum, ReadMode(read_mode))
        leaves, root = policies(fields, self._masks(), self._rng.choice(FLUSH_EVERY))
        if session != self._session.get(job):
            self._begin_session(job, session, entry)
        for leaf, policy in zip(self.leaves, leaves, strict=True):
            leaf.put(entries.prepared(job, session, epoch, policy))
        self._note(job, session, epoch)
        self.root.put(entries.policy(job, session, epoch, root))
        self._untold[job] = entry
        if self._rng.random() < 0.5:
            self._tell(job)
        if self._rng.random() < 0.5:
            self._prepare_half(job, session, epoch + 1, member_mask)

    def _begin_session(self, job: int, session: int, entry: Entry) -> None:
        """Begins a session of a job: leaves and root admit one another, the leaves' entries first."""
        last = self._session.get(job)
        for rack, leaf in enumerate(self.leaves):
            leaf.put(entries.uplink(job, rack, 0, UPLINK))
            if last is not None:
                leaf.delete(entries.member(job, ROOT, entries.root_at(UPLINK, last)))
                self.root.delete(entries.member(job, rack, entries.leaf_at(rack, 0, last)))
            leaf.put(entries.member(job, ROOT, entries.root_at(UPLINK, session)))
            leaf.put(entry)
            self.root.admit(rack, entries.leaf_at(rack, 0, session), job)
        self._session[job] = session

    def _tell(self, job: int) -> None:
        entry = self._untold.pop(job, None)
        for leaf in self.leaves if entry is not None else ():
            leaf.put(entry)  # type: ignore[arg-type]

    def _note(self, job: int, session: int, epoch: int) -> None:
        """Notes that an epoch was prepared, and deletes the entries of epochs before the last two."""
        known = self._prepared[job]
        if (session, epoch) not in known:
            known.append((session, epoch))
        for era in [era for era in known if era < (session, epoch - 2)]:
            known.remove(era)
            for leaf in self.leaves:
                gone = entries.not_prepared(job, *era)
                if leaf.has(gone):
                    leaf.delete(gone)

    def _prepare_half(self, job: int, session: int, epoch: int, member_mask: int) -> None:
        members = [worker for worker in range(32) if member_mask >> worker & 1]
        strategy: Strategy = self._rng.choice([ASP(), BSP()])
        for leaf, policy in zip(self.leaves, policies(strategy.compile(members), self._masks())[0], strict=True):
            if members and self._rng.random() < 0.5:
                self.never_in_force += 1
                leaf.put(entries.prepared(job, session, epoch, policy))
                self._note(job, session, epoch - 1)
                if (session, epoch) not in self._prepared[job]:
                    self._prepared[job].append((session, epoch))

    # -- packets ---------------------------------------------------------------------------------------------

    def process(self, packets: Sequence[tuple[int, bytes]]) -> Packets:
        return [caused for port, frame in packets for caused in self._one(port, frame)]

    def _one(self, port: int, frame: bytes) -> Packets:
        if port >= TO_ROOT:
            came_out = self.root.process([(port - TO_ROOT + 1, frame)])
            return [(TO_LEAF + out - 1, data) for out, data in came_out if out != CPU_PORT]
        if port == CPU_PORT:  # the controller sends it
            return self.leaves[self._rack_of_port(int.from_bytes(frame[:2], "big") >> 7)].process([(port, frame)])
        rack = port - TO_LEAF if port >= TO_LEAF else self._rack_of_port(port)
        leaf = self.leaves[rack]
        push = port < TO_LEAF and len(frame) > OP and frame[OP] == Op.PUSH
        before = self._seen(leaf, frame) if push else None
        came_out = leaf.process([(UPLINK if port >= TO_LEAF else port, frame)])
        if push and before != self._seen(leaf, frame):
            self._note_accepted(frame)
        return [(TO_ROOT + rack if out == UPLINK else out, data) for out, data in came_out]

    def _seen(self, leaf: P4Switch, frame: bytes) -> int | None:
        """The register that tells repeats, session and highest seq accepted, of a frame's worker at its slot: it
        changes when the frame is accepted. None if there is no such slot."""
        if len(frame) < ENCAPSULATION_BYTES + HEADER.itemsize:
            return None
        fields = np.frombuffer(frame, HEADER, 1, ENCAPSULATION_BYTES)[0]
        place = self._table.get(("job", (int(fields["job"]),)))
        slot = int(fields["slot"])
        if place is None or slot >= place.params["slots"] or fields["worker"] >= 32:
            return None
        index = 32 * (place.params["first_slot"] + slot) + int(fields["worker"])
        return leaf.switch.register_read_all(leaf.names["seen_of"], index, 1)[0]

    def _note_accepted(self, frame: bytes) -> None:
        fields = np.frombuffer(frame, HEADER, 1, ENCAPSULATION_BYTES)[0]
        self.accepted.append(Accepted(*(int(fields[name]) for name in ("session", "worker", "slot", "epoch", "round"))))


class Counted(Contribution):
    """A contribution that counts itself in the lane of its worker, so that a read shows how many it holds of each."""

    def values(self, seed: int, slots: int, lanes: int) -> np.ndarray:
        values = super().values(seed, slots, lanes)
        values[:, : self.worker] = 0
        values[:, self.worker] = 1
        values[:, self.worker + 1 : LARGEST_JOB] = 0
        return values


LARGEST_JOB = 16


class TreeIncarnation(Incarnation):
    """A worker of a tree reads twice at the end: its first PULL has its leaf tell the root the rack's sum, and the
    second one, when all workers have left, reads the sum of all racks."""

    contribution_type = Counted

    def _leave(self) -> None:
        self._read(self.client.pull().delta)
        super()._leave()


class TreePlace(Place):
    incarnation_type = TreeIncarnation


class TreeWatch(Watch):
    """With the read mode "latest", two racks' sums may hold as many contributions, but different ones; so each sum may
    be any that was said. Instead, each read is searched for the contributions that it has to contain."""

    def __init__(self) -> None:
        super().__init__()
        self._said: set[tuple[bytes, int]] = set()
        self._accepted: dict[tuple[int, int, int], list[tuple[int, int]]] = defaultdict(list)  # session, worker, slot
        self.contained = 0  # how many contributions were found that a read had to contain

    def accepted(self, contributions: list[Accepted]) -> None:
        for each in contributions:
            self._accepted[each.session, each.worker, each.slot].append((each.epoch, each.round))

    def _sum_said(self, place: bytes, values: int) -> None:
        self._said.add((place, values))

    def _was_said(self, place: bytes, values: int) -> bool:
        return (place, values) in self._said

    def ends(self, worker: int, session: int, epoch: int, round_: int, held: np.ndarray) -> None:
        super().ends(worker, session, epoch, round_, held)
        fields = self.fields[session, epoch]
        if not fields.sync_mask >> worker & 1:
            return
        counted = [other for other in range(LARGEST_JOB) if fields.sync_mask >> other & 1]
        needed = round_ - fields.staleness
        for slot, values in enumerate(held):
            there = [other for other in counted if self._holds(values, session, other, slot, epoch, needed)]
            if needed >= 0 and len(there) < fields.quorum:
                raise Violation(
                    "bounded staleness",
                    f"worker {worker} finished round {round_} of epoch {epoch} in slot {slot} with a read that holds "
                    f"round {needed} of workers {there}, not of {fields.quorum}: {values[:LARGEST_JOB]}",
                )
            late = fields.read_mode is ReadMode.SNAPSHOT and (fields.staleness or fields.quorum < len(counted))
            if not late and not self._holds(values, session, worker, slot, epoch, round_):
                raise Violation("exactly once", f"worker {worker}'s read lacks its own round {round_} of epoch {epoch}")
            self.contained += len(there)

    def _holds(self, values: np.ndarray, session: int, worker: int, slot: int, epoch: int, round_: int) -> bool:
        """Whether a sum holds a worker's contribution of a round: it holds the first so many, in the order they
        came."""
        came = self._accepted[session, worker, slot]
        return (epoch, round_) in came and int(values[worker]) > came.index((epoch, round_))


class TreeSchedule(Schedule):
    """One run on a tree of switches, which may have had other runs before."""

    def __init__(self, switch: TreeSwitch, plan: Plan, strategies: Iterator[Strategy]) -> None:
        self._tree, self.reads = switch, TreeWatch()
        switch.seed(plan.seed)
        super().__init__(switch, plan, strategies)

    def new_watch(self) -> Watch:
        return self.reads

    def place(self, worker: int) -> Place:
        return TreePlace(self, worker)

    def _through_the_switch(self, packets: Packets) -> None:
        # One by one, so that it is known what a leaf has accepted before a worker gets the sum that holds it.
        for packet in packets:
            super()._through_the_switch([packet])
            self.reads.accepted(self._tree.accepted)
            self._tree.accepted.clear()

    def to_port(self, port: int, frame: bytes) -> None:
        if port < TO_LEAF:
            super().to_port(port, frame)
            return
        direction = Direction.TO_SWITCH if port >= TO_ROOT else Direction.TO_WORKER
        for delay, packet in self.links.fate(frame, port, direction, self.time.now):
            due: Due = self.time.after(WIRE_S + delay)
            due.to_switch.append((port, packet))
