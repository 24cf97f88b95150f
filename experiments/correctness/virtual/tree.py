"""The same runs on a tree of switches: a leaf for each rack, a root, and links between them as bad as the workers'.

The controller is the real one here, too, with `serene.controller.switch.tree.Tree` for its switches. Packets go through
all of them between two writes to any of them, and the controller can die there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from serene.client.session.restoration import rounds
from serene.controller.switch.fabric import Fabric, OnConnected, OnPacket
from serene.controller.switch.plan_entries import InstalledJob, installed
from serene.controller.switch.switch import SwitchOptions
from serene.controller.switch.tree import Tree
from serene.entries import CPU_PORT, OWN, Entry
from serene.experiments.correctness.virtual.checks import Violation
from serene.experiments.correctness.virtual.clock import Due
from serene.experiments.correctness.virtual.hostile import PORT as HOSTILE_PORT
from serene.experiments.correctness.virtual.ledger import Contribution
from serene.experiments.correctness.virtual.plan import Plan
from serene.experiments.correctness.virtual.schedule import WIRE_S, Schedule
from serene.experiments.correctness.virtual.switch import CommandedSwitch, P4Switch, Packets
from serene.experiments.correctness.virtual.watch import OP, Watch, field
from serene.experiments.correctness.virtual.worker import Incarnation, Place
from serene.faults import Direction
from serene.program import Program
from serene.racks import Racks
from serene.strategy import PolicyFields, Strategy
from serene.wire import ENCAPSULATION_BYTES, HEADER, ROOT, Op, ReadMode

UPLINK = 200  # a leaf's port to the root; workers' ports are numbered through the whole tree
TO_LEAF, TO_ROOT = 1000, 2000  # plus a rack: ports that stand for the rack's link between root and leaf, by direction
CPU_PORTS = 3000  # plus a switch's number: its port to the controller
ROOT_NUMBER = 0  # the root's among the switches; that of rack r's leaf is r + 1
RACKS = 3
WHOLE = ENCAPSULATION_BYTES + HEADER.itemsize
WORKER = field("worker").start
SESSION, EPOCH = field("session"), field("epoch")
SYNC_MASK = field("sync_mask")


@dataclass(frozen=True)
class Accepted:
    """A contribution that a leaf has added to its rack's sum. worker: its number in the job."""

    session: int
    worker: int
    slot: int
    epoch: int
    round: int


class TreeSwitch:
    """Leaves and a root, and where packets go from one to the other. ``racks``: where the workers are, whose ports
    follow one another through the whole tree. accepted: contributions that leaves have accepted; the reader empties it.
    """

    def __init__(self, leaf: Program, root: Program, racks: int = RACKS) -> None:
        self.leaves = [P4Switch(leaf) for _ in range(racks)]
        self.root = P4Switch(root)
        self.lanes, self.slots = leaf.lanes, leaf.slots
        self.racks = Racks.of([1] * racks)
        self.accepted: list[Accepted] = []

    @property
    def switches(self) -> Sequence[P4Switch]:
        """By their numbers."""
        return [self.root, *self.leaves]

    def close(self) -> None:
        for switch in self.switches:
            switch.close()

    def rack_of(self, port: int) -> int:
        """The rack of a worker's port. Other hosts are in the first one."""
        return self.racks.place(port - 1)[0] if port <= sum(self.racks.sizes) else 0

    def process(self, packets: Sequence[tuple[int, bytes]]) -> Packets:
        """As of `P4Switch`, with the ports above."""
        return [caused for port, frame in packets for caused in self._one(port, frame)]

    def _one(self, port: int, frame: bytes) -> Packets:
        if port >= CPU_PORTS:  # the controller sends it
            return self._out(port - CPU_PORTS, CPU_PORT, frame)
        if port >= TO_ROOT:
            return self._out(ROOT_NUMBER, port - TO_ROOT + 1, frame)
        if port >= TO_LEAF:
            return self._out(port - TO_LEAF + 1, UPLINK, frame)
        rack = self.rack_of(port)
        push = len(frame) >= WHOLE and frame[OP] == Op.PUSH
        before = self._seen(rack, frame) if push else None
        came_out = self._out(rack + 1, port, frame)
        if push and before != self._seen(rack, frame):
            self._note_accepted(rack, frame)
        return came_out

    def _out(self, number: int, port: int, frame: bytes) -> Packets:
        """What a switch sends when a frame comes in at one of its own ports."""
        came_out = self.switches[number].process([(port, frame)])
        if number == ROOT_NUMBER:
            return [(TO_LEAF + out - 1, data) for out, data in came_out if out != CPU_PORT]  # nobody joins there
        own = {UPLINK: TO_ROOT + number - 1, CPU_PORT: CPU_PORTS + number}
        return [(own.get(out, out), data) for out, data in came_out]

    def _seen(self, rack: int, frame: bytes) -> int | None:
        """The register that identifies repeats, session and highest seq accepted, of a frame's worker at its slot: it
        changes when the frame is accepted. None if there is no such slot."""
        fields, leaf = np.frombuffer(frame, HEADER, 1, ENCAPSULATION_BYTES)[0], self.leaves[rack]
        job = leaf.held("job", int(fields["job"]))
        slot = int(fields["slot"])
        if job is None or slot >= job.params["slots"] or fields["worker"] >= 32:
            return None
        index = 32 * (job.params["first_slot"] + slot) + int(fields["worker"])
        return leaf.switch.register_read_all(leaf.names["seen_of"], index, 1)[0]

    def _note_accepted(self, rack: int, frame: bytes) -> None:
        fields = np.frombuffer(frame, HEADER, 1, ENCAPSULATION_BYTES)[0]
        session, slot, epoch, round_ = (int(fields[name]) for name in ("session", "slot", "epoch", "round"))
        worker = self.racks.first(rack) + int(fields["worker"])
        self.accepted.append(Accepted(session, worker, slot, epoch, round_))


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
    """A worker of a tree reads twice at the end: its first PULL has its leaf send the root the rack's sum, and the
    second one, when all workers have left, reads the sum of all racks."""

    contribution_type = Counted

    def _leave(self) -> None:
        self._read(self.client.pull().delta)
        super()._leave()


class TreePlace(Place):
    incarnation_type = TreeIncarnation


class TreeWatch(Watch):
    """With the read mode "latest", two racks' sums may hold as many contributions, but different ones; so each sum may
    be any that was sent. Instead, each read is searched for the contributions that it has to contain."""

    def __init__(self) -> None:
        super().__init__()
        self._sent_sums: set[tuple[bytes, int]] = set()
        self._accepted: dict[tuple[int, int, int], list[tuple[int, int]]] = defaultdict(list)  # session, worker, slot
        self._restored: dict[int, np.ndarray | None] = {}  # by session that follows a lost one; None: not known yet
        self.contained = 0  # how many contributions were found that a read had to contain

    def accepted(self, contributions: list[Accepted]) -> None:
        for each in contributions:
            restores = each.session in self._restored and each.epoch == 1 and each.round < rounds(RACKS)
            if not restores:
                self._accepted[each.session, each.worker, each.slot].append((each.epoch, each.round))

    def follows_a_lost_one(self, session: int) -> None:
        self._restored.setdefault(session, None)

    def restored(self, session: int, held: np.ndarray) -> None:
        self._restored[session] = held.copy()

    def _record_sum(self, place: bytes, values: int) -> None:
        self._sent_sums.add((place, values))

    def _was_sent(self, place: bytes, values: int) -> bool:
        return (place, values) in self._sent_sums

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
        held = int(values[worker])
        if session in self._restored:
            restored = self._restored[session]
            if restored is None:
                return True  # its donor has not been notified yet that the sum is there
            held -= int(restored[slot, worker])
        return (epoch, round_) in came and held > came.index((epoch, round_))


class TreeSchedule(Schedule):
    """One run on a tree of switches, which may have had other runs before."""

    place_type = TreePlace

    def __init__(self, tree: TreeSwitch, plan: Plan, strategies: Iterator[Strategy]) -> None:
        self._tree, self.reads = tree, TreeWatch()
        self._lost: dict[tuple[int, int], InstalledJob] = {}  # what leaves held when they restarted, by rack and job
        count = len(tree.leaves)
        even = Racks.even(plan.workers, min(count, plan.workers)).sizes  # as the controller divides them
        tree.racks = Racks.of([*even, *(0,) * (count - len(even))])
        super().__init__(tree, plan, strategies)

    def new_watch(self) -> Watch:
        return self.reads

    def place(self, worker: int) -> Place:
        rack, number = self._tree.racks.place(worker)
        return self.place_type(self, worker, number, rack)

    def fabric(self, reach: Callable[..., Any], on_packet: OnPacket, on_connected: OnConnected) -> Fabric:
        ports: list[list[int]] = [[] for _ in self._tree.leaves]
        for port in (*range(1, self.plan.workers + 1), HOSTILE_PORT):
            ports[self._tree.rack_of(port)].append(port)
        root = SwitchOptions(str(ROOT_NUMBER), 0, 1, (), OWN, name="root")
        leaves = [SwitchOptions(str(rack + 1), 0, 1, here, OWN, name=f"leaf{rack}") for rack, here in enumerate(ports)]
        return Tree(root, leaves, UPLINK, on_packet=on_packet, on_connected=on_connected, reach=reach)

    # -- what the controller writes --------------------------------------------------------------------------

    def wrote(self, switch: CommandedSwitch, entry: Entry) -> None:
        number = self._tree.switches.index(switch)
        if number == ROOT_NUMBER:
            if entry.table == "policy":
                super().wrote(switch, entry)
        elif entry.table == "member" and entry.match["worker"] != ROOT:
            self._admitted(number - 1, entry)

    def _admitted(self, rack: int, entry: Entry) -> None:
        worker = self._tree.racks.first(rack) + entry.match["worker"]
        try:
            self.watch.admitted(entry.match["job"], worker, entry.match["incarnation"])
        except Violation as violation:
            self.failed(violation)

    def decided(self, job: int, session: int, epoch: int, fields: PolicyFields) -> None:
        """The root's entry puts in force what the leaves were prepared for. Raises Violation if one was not."""
        racks, member_mask, sync_mask = self._tree.racks, 0, 0
        for rack, size in enumerate(racks.sizes):
            held = installed(self._tree.leaves[rack].entries()).jobs.get(job)
            parts = [each.prepared.get((session, epoch)) for each in (held, self._lost.get((rack, job))) if each]
            part = next(filter(None, parts), None)
            if part is not None:
                member_mask |= part.member_mask << racks.first(rack)
                sync_mask |= part.sync_mask << racks.first(rack)
            elif size:
                raise Violation("one policy per decision", f"epoch {epoch} is in force, leaf {rack} is not prepared")
        quorum = fields.quorum or sync_mask.bit_count()
        known = self.controller.known(job)
        if epoch == 1 and known is not None and known.lost_sessions:
            self.reads.follows_a_lost_one(session)
        of_job = PolicyFields(member_mask, sync_mask, fields.staleness, quorum, fields.read_mode)
        super().decided(job, session, epoch, of_job)

    def lose_switch(self, number: int, away_s: float) -> None:
        if number != ROOT_NUMBER:
            for job, held in installed(self._tree.switches[number].entries()).jobs.items():
                self._lost[number - 1, job] = held
        super().lose_switch(number, away_s)

    # -- packets ---------------------------------------------------------------------------------------------

    def enters(self, port: int) -> int:
        if port < TO_LEAF:
            return self._tree.rack_of(port) + 1
        return port - CPU_PORTS if port >= CPU_PORTS else ROOT_NUMBER if port >= TO_ROOT else port - TO_LEAF + 1

    def in_job(self, port: int, frame: bytes) -> bytes:
        if len(frame) < WHOLE:
            return frame
        racks, rack = self._tree.racks, self._tree.rack_of(port)
        translated = bytearray(frame)
        translated[WORKER] = (frame[WORKER] + racks.first(rack)) % 256
        fields = self.watch.fields.get((int.from_bytes(frame[SESSION], "big"), int.from_bytes(frame[EPOCH], "big")))
        if fields is not None and int.from_bytes(frame[SYNC_MASK], "big") == racks.part(fields, rack).sync_mask:
            translated[SYNC_MASK] = fields.sync_mask.to_bytes(4, "big")
        return bytes(translated)

    def _through_the_switch(self, packets: Packets) -> None:
        # One by one, so that it is known what a leaf has accepted before a worker gets the sum that holds it.
        for packet in packets:
            super()._through_the_switch([packet])
            self.reads.accepted(self._tree.accepted)
            self._tree.accepted.clear()

    def to_port(self, port: int, frame: bytes) -> None:
        if port >= CPU_PORTS:
            self.packet_in(port - CPU_PORTS, frame)
        elif port < TO_LEAF:
            super().to_port(port, frame)
        else:
            direction = Direction.TO_SWITCH if port >= TO_ROOT else Direction.TO_WORKER
            for delay, packet in self.links.fate(frame, port, direction, self.time.now):
                due: Due = self.time.after(WIRE_S + delay)
                due.to_switch.append((port, packet))

    def cpu_port(self, number: int) -> int:
        return CPU_PORTS + number
