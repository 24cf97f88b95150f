"""Random runs of the tree's rules (tests/tree/model.py) in virtual time.

All links lose, repeat, reorder and delay packets, some across two swaps; policies are swapped, swaps are given up
half-way, workers leave, one worker forges an epoch, and a leaf or the root loses its state, which begins a new session.
In a vector of values lane w counts worker w's contributions, so a read shows which contributions it contains.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from serene.experiments.correctness.virtual.clock import Clock
from serene.racks import LeafPolicy, compile_for_racks
from serene.strategy import ASP, BSP, SSP, Mixed, PolicyFields, Quorum, Strategy
from serene.wire import UNBOUNDED, Op, ReadMode
from tests.model import Answer
from tests.tree.model import Down, Grant, Leaf, Root, Up

TIMEOUT, TRANSIT = 3.0, 0.5
NO_PROGRESS = 1500.0  # seconds without progress after which a worker counts as stuck
FINAL_PULLS = 2  # the first flushes every rack's sum to the root, the second reads

Era = tuple[int, int]  # session, epoch


class Broken(AssertionError):
    """A rule that must always hold was broken."""

    def __init__(self, broken: str, *what: object) -> None:
        super().__init__(f"{broken}: {what}")
        self.broken = broken


class SnapshotSSP(SSP):
    """Stale reads of complete rounds, which the policy's fields can express but no strategy compiles to."""

    def compile(self, members: Sequence[int]) -> PolicyFields:
        fields = super().compile(members)
        return PolicyFields(fields.member_mask, fields.sync_mask, fields.staleness, fields.quorum, ReadMode.SNAPSHOT)


def some_strategy(rng: random.Random, members: Sequence[int]) -> Strategy:
    """A random strategy that fits these workers."""
    kind = rng.choice(["bsp", "ssp", "snapshot ssp", "asp", "mixed", "mixed ssp", "quorum"])
    free = tuple(worker for worker in members if rng.random() < 0.5)
    if kind == "asp" or not members or (kind.startswith("mixed") and not 0 < len(free) < len(members)):
        return ASP()
    if kind == "ssp":
        return SSP(rng.choice([1, 3]))
    if kind == "snapshot ssp":
        return SnapshotSSP(rng.choice([1, 3]))
    if kind == "quorum":
        return Quorum(rng.randint(1, len(members)))
    return BSP() if kind == "bsp" else Mixed(free, rng.choice([1, 3]) if kind == "mixed ssp" else 0)


class Worker:
    """A worker by the rules in docs/protocol.md, "What a worker may believe"."""

    def __init__(self, run: Simulation, number: int, rack: int, iterations: int, pace: float) -> None:
        self.run, self.number, self.rack, self.iterations, self.pace = run, number, rack, iterations, pace
        self.finished = 0
        self.begin_session(1)

    def begin_session(self, session: int) -> None:
        """Begins a new session; requests under way are void."""
        self.session, self.epoch, self.round, self.seq, self.announced = session, 1, 0, 0, 0
        self.first: dict[int, int] = {}  # epoch -> seq of its round 0
        self.held = [self.run.zero for _ in range(self.run.places)]
        self.totals = [0] * self.run.places
        self.pending: dict[int, np.ndarray | None] = {}
        self.awaited = self.pulls = 0
        self.done = self.finished >= self.iterations
        if not self.done:
            self.compute()

    def compute(self) -> None:
        session = self.session
        delay = self.pace * self.run.rng.expovariate(1.0) + 0.01
        self.run.at(delay, lambda: self.push() if session == self.session else None)

    def push(self) -> None:
        self.seq += 1
        self.awaited = self.seq
        self.first.setdefault(self.epoch, self.seq)
        for place in range(self.run.places):
            values = self.run.zero.copy()
            values[self.number], values[-1] = 1, self.run.rng.getrandbits(32)
            self.pending[place] = values
            self.run.contributed[place] = self.run.contributed[place] + values
            self.repeat(place, self.awaited)

    def pull(self) -> None:
        self.pulls, self.done = self.pulls + 1, False
        self.awaited = (1 << 31) + self.pulls
        self.pending = dict.fromkeys(range(self.run.places))
        for place in self.pending:
            self.repeat(place, self.awaited)

    def repeat(self, place: int, awaited: int) -> None:
        if self.awaited == awaited and place in self.pending:
            self.send(place)
            self.run.at(TIMEOUT, lambda: self.repeat(place, awaited))

    def send(self, place: int) -> None:
        self.run.request(self, place, self.awaited, self.epoch, self.round, self.pending[place])

    def receive(self, place: int, session: int, answer: Answer) -> None:
        if session != self.session:
            return
        if answer.epoch > max(self.epoch, self.announced):
            self.announced = answer.epoch
            for each in self.pending:
                self.send(each)
        if place not in self.pending:
            return
        if answer.op is Op.NUDGE:
            self.send(place)
            return
        pulling = self.pending[place] is None
        fields = self.run.fields[session, answer.epoch]
        allowed = fields.staleness == UNBOUNDED or self.round < answer.base + fields.staleness
        release = answer.seq == 0 and answer.epoch == self.epoch and allowed and not pulling
        if answer.seq != self.awaited and not release:
            return
        if answer.total > self.totals[place]:
            values = np.array(answer.values, np.int32).view(np.uint32)
            if (values[:-1] < self.held[place][:-1]).any():
                raise Broken("reads go forward", self.number, self.held[place], answer)
            self.held[place], self.totals[place] = values, answer.total
        del self.pending[place]
        if not pulling:
            self.run.check(self, place, answer)
        if not self.pending:
            self.finish(pulling)

    def finish(self, pulling: bool) -> None:
        self.run.progress_at = self.run.now
        self.finished += not pulling
        self.done = pulling or self.finished >= self.iterations
        newer = self.announced > self.epoch
        self.epoch, self.round = (self.announced, 0) if newer else (self.epoch, self.round + (not pulling))
        if not self.done:
            self.compute()
        elif not pulling:
            self.run.leave(self)


class Simulation(Clock):
    """One random run; everything in it follows from the seed. happened: counts the events by kind."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.rng = rng = random.Random(seed)
        sizes = [rng.randint(1, 3) for _ in range(rng.randint(2, 4))]
        self.places, count = rng.randint(1, 3), sum(sizes)
        self.zero = np.zeros(count + 1, np.uint32)
        self.racks = [list(range(sum(sizes[:i]), sum(sizes[: i + 1]))) for i in range(len(sizes))]
        self.loss, self.twice, self.late = rng.choice([0, 0.01, 0.2]), rng.choice([0, 0.1]), rng.choice([0, 0.02])
        self.flush_every = rng.choice([1, 1, 2, 4])
        self.swaps, self.restarts = rng.randint(2, 9), int(rng.random() < 0.3)
        self.progress_at = 0.0
        self.happened: Counter[str] = Counter()
        self.active = set(range(count))
        self._reads: dict[tuple[int, int, int, int], np.ndarray] = {}  # BSP: (place, session, epoch, round)
        self.committed: dict[Era, tuple[Sequence[LeafPolicy], PolicyFields]] = {}
        self.fields: dict[Era, PolicyFields] = {}
        self._swapping = self._wanted = False
        self.session = 1
        self.begin(lambda number, rack: Worker(self, number, rack, rng.randint(8, 25), rng.choice([0.1, 1, 5])))

    def begin(self, worker: Callable[[int, int], Worker]) -> None:
        """Begins the first session. worker: makes a worker, given its number and rack."""
        count = len(self.zero) - 1
        self.contributed = [self.zero] * self.places
        self.leaves = [Leaf(self.places, count + 1, rack, count) for rack in self.racks]
        self.root = Root(self.places, count + 1, len(self.racks))
        policies = self._pick()
        for number in range(len(self.racks)):
            self._set_up_leaf(number, 1, policies[0][number])
        self._set_up_root(1, *policies)
        self.workers = [worker(number, rack) for rack, numbers in enumerate(self.racks) for number in numbers]

    # -- the controller: prepares every leaf, then one write at the root; it may die in between ----------------

    def _pick(self) -> tuple[list[LeafPolicy], PolicyFields]:
        strategy = some_strategy(self.rng, sorted(self.active))
        members = [[worker for worker in rack if worker in self.active] for rack in self.racks]
        return compile_for_racks(strategy, members, self.flush_every)

    def _set_up_leaf(self, number: int, session: int, policy: LeafPolicy) -> None:
        leaf = self.leaves[number]
        leaf.session, leaf.epoch = session, 1
        leaf.prepared[session, 1] = policy
        leaf.admitted = dict.fromkeys(self.racks[number], 1)

    def _set_up_root(self, session: int, leaves: Sequence[LeafPolicy], root: PolicyFields) -> None:
        self._commit_at(session, 1, leaves, root)

    def _commit_at(self, session: int, epoch: int, leaves: Sequence[LeafPolicy], root: PolicyFields) -> None:
        self.committed[session, epoch] = leaves, root
        self.fields[session, epoch] = leaves[0].fields
        self.root.session, self.root.epoch, self.root.policy = session, epoch, root

    def swap(self) -> None:
        self._wanted = self._swapping
        if self._swapping:
            return
        self._swapping, last, dies = True, 0.0, self.rng.random() < 0.2
        session, epoch, policies = self.session, self.root.epoch + 1, self._pick()
        for number in range(len(self.leaves)):
            if not dies or self.rng.random() < 0.5:
                delay = self.rng.expovariate(2.0)
                last = max(last, delay)
                self.at(delay, partial(self._prepare, number, session, epoch, policies[0][number]))
        self.at(last + 0.01, lambda: self._commit(session, epoch, *policies, dies))

    def _prepare(self, number: int, session: int, epoch: int, policy: LeafPolicy) -> None:
        """Writes a leaf's policy for an epoch that is not in force yet, and deletes those older than the one in
        force."""
        leaf = self.leaves[number]
        leaf.prepared = {era: old for era, old in leaf.prepared.items() if era >= (session, epoch - 1)}
        leaf.prepared[session, epoch] = policy
        if self.rng.random() < 0.3:
            self._forge(number, session, epoch)

    def _commit(self, session: int, epoch: int, leaves: list[LeafPolicy], root: PolicyFields, dies: bool) -> None:
        if session != self.session:
            return
        self._swapping = False
        self.happened["aborted swap" if dies else "swap"] += 1
        if not dies:
            self._commit_at(session, epoch, leaves, root)
            for leaf in self.leaves:  # what it names to a HELLO; the write may come late or never
                self.at(self.rng.expovariate(0.2), partial(self._tell, leaf, session, epoch))
        if self._wanted or dies or self._waits_for_the_gone(leaves):
            self._wanted = False
            self.at(self.rng.choice([0.0, 1.0]), self.swap)

    def _waits_for_the_gone(self, leaves: Sequence[LeafPolicy]) -> bool:
        return bool(leaves[0].fields.sync_mask & ~sum(1 << worker for worker in self.active))

    def _tell(self, leaf: Leaf, session: int, epoch: int) -> None:
        if leaf.session == session:
            leaf.epoch = max(leaf.epoch, epoch)

    def _swap_at_random(self) -> None:
        if self.swaps and self.active:
            self.swaps -= 1
            self.swap()
            self.at(self.rng.expovariate(1 / self.rng.choice([0.3, 3.0, 30.0])), self._swap_at_random)

    def leave(self, worker: Worker) -> None:
        self.active.discard(worker.number)
        fields = self.fields.get((self.root.session, self.root.epoch))
        if fields is None or fields.sync_mask >> worker.number & 1:
            self.swap()

    def _restart(self) -> None:
        """Restarts a leaf or the root, which loses its state, and has the whole job continue in a new session."""
        self.restarts = 0
        which = self.rng.randrange(len(self.leaves) + 1)
        lanes = len(self.zero)
        if which == len(self.leaves):
            self.happened["root restarted"] += 1
            self.root = Root(self.places, lanes, len(self.racks))
            self.root.policy = PolicyFields(0, 0, 0, 0, ReadMode.LATEST)  # of no session: every packet is dropped
        else:
            self.happened["leaf restarted"] += 1
            self.leaves[which] = Leaf(self.places, lanes, (), len(self.zero) - 1)
        self.session, self._swapping, session = self.session + 1, True, self.session + 1  # no swap may begin meanwhile
        policies, last = self._pick(), 0.0
        for number in range(len(self.leaves)):
            delay = self.rng.expovariate(0.5)
            last = max(last, delay)
            self.at(delay, partial(self._set_up_leaf, number, session, policies[0][number]))
        self.at(last + 0.01, lambda: self._begin_session(session, policies))

    def _begin_session(self, session: int, policies: tuple[list[LeafPolicy], PolicyFields]) -> None:
        """Begins a session at the root, and only then notifies the workers, one after the other."""
        self._swapping = False
        self._set_up_root(session, *policies)
        if self._wanted or self._waits_for_the_gone(policies[0]):
            self.at(0.0, self.swap)
        self.contributed = [self.zero] * self.places
        for worker in self.workers:
            worker.session = 0  # its requests under way are void
            worker.pending = {}
            self.at(self.rng.expovariate(1.0), partial(worker.begin_session, session))

    # -- the network -----------------------------------------------------------------------------------------

    def _link(self, deliver: Callable[[], object]) -> None:
        if self.rng.random() >= self.loss:
            mean = 40.0 if self.rng.random() < self.late else TRANSIT
            self.at(self.rng.expovariate(1 / mean), deliver)
            if self.rng.random() < self.twice:
                self.at(self.rng.expovariate(0.2), deliver)

    def request(self, worker: Worker, place: int, seq: int, epoch: int, round_: int, values: np.ndarray | None) -> None:
        session, read = worker.session, worker.totals[place]

        def deliver() -> None:
            leaf = self.leaves[worker.rack]
            slot = leaf.slots[place]
            if values is not None and slot.session == session:
                self.happened["packet two epochs late"] += epoch + 2 <= slot.epoch
                self.happened["epoch heard from a worker"] += slot.epoch < epoch <= leaf._newest()
            self._say(worker.rack, place, leaf.request(worker.number, place, seq, session, epoch, round_, values, read))
            if "wrong_round" in leaf.dropped:
                raise Broken("no wrong round", worker.number, epoch, round_, slot)

        self._link(deliver)

    def _forge(self, number: int, session: int, epoch: int) -> None:
        """Has a member claim an epoch that may never be in force, in a packet that adds nothing (seq 0)."""
        self.happened["forged epoch"] += 1
        leaf = self.leaves[number]
        for place in range(self.places):
            self._say(number, place, leaf.request(self.racks[number][0], place, 0, session, epoch, 0, self.zero))

    def _say(self, rack: int, place: int, packets: Sequence[Answer | Up]) -> None:
        leaf = self.leaves[rack]
        slot = leaf.slots[place]
        session, era = leaf.session, (slot.session, slot.epoch)
        if slot.epoch and slot.session == self.root.session:
            committed = self.committed.get(era)
            if committed is None or leaf.prepared.get(era, committed[0][rack]) != committed[0][rack]:
                raise Broken("one policy per decision", rack, era)
        for packet in packets:
            if isinstance(packet, Up):
                self.happened["UP"] += 1
                self._link(partial(self._answer_up, rack, place, packet))
            else:
                kind = "NUDGE" if packet.op is Op.NUDGE else "answer" if packet.seq else "release"
                self.happened[kind] += 1
                self._link(partial(self.workers[packet.worker].receive, place, session, packet))

    def _answer_up(self, rack: int, place: int, packet: Up) -> None:
        for reply in self.root.up(rack, place, packet):
            self.happened[type(reply).__name__.upper()] += 1
            self._link(partial(self._hear, place, reply))
        if "wrong_epoch" in self.root.dropped:
            raise Broken("one policy per decision", "the root is ahead of its leaves", packet)

    def _hear(self, place: int, packet: Down | Grant) -> None:
        leaf = self.leaves[packet.leaf]
        before, slot = leaf.slots[place].granted, leaf.slots[place]
        packets = leaf.down(place, packet) if isinstance(packet, Down) else leaf.grant(place, packet)
        self.happened["granted jumped"] += slot.granted > before + 1
        self._say(packet.leaf, place, packets)

    # -- what must hold --------------------------------------------------------------------------------------

    def check(self, worker: Worker, place: int, answer: Answer) -> None:
        """Checks what a worker has read from a slot in its iteration. Raises Broken."""
        held, (_, root) = worker.held[place], self.committed[worker.session, worker.epoch]
        fields = self.fields[worker.session, worker.epoch]
        synchronous = answer.epoch == worker.epoch and bool(fields.sync_mask >> worker.number & 1)
        snapshot = fields.read_mode is ReadMode.SNAPSHOT
        # A snapshot may be from before the own contribution where one may be ahead of it, or late.
        if not (synchronous and snapshot and (fields.staleness or root.quorum)) and held[worker.number] != worker.seq:
            raise Broken("exactly once", "the own contribution is missing", worker.number, held, answer)
        if not synchronous:
            return
        if snapshot and not fields.staleness and not root.quorum:
            key = place, worker.session, worker.epoch, worker.round
            if not np.array_equal(self._reads.setdefault(key, held), held):
                raise Broken("isolated BSP", key, held, self._reads[key])
        complete = worker.round - fields.staleness
        counted = [other for other in self.workers if fields.sync_mask >> other.number & 1]
        there = [other for other in counted if self._has(other, worker, held, complete)]
        if complete >= 0 and len(there) < (root.quorum or len(counted)):
            raise Broken("bounded staleness", worker.number, worker.round, held, fields)

    @staticmethod
    def _has(other: Worker, reader: Worker, held: np.ndarray, round_: int) -> bool:
        """Whether the values that ``reader`` holds contain the other worker's contribution to a round."""
        first = other.first.get(reader.epoch) if other.session == reader.session else None
        return first is not None and held[other.number] >= first + round_

    # -- a run -----------------------------------------------------------------------------------------------

    def _until_done(self) -> None:
        self.progress_at = self.now
        while not all(worker.done and worker.session == self.session for worker in self.workers):
            if not self.step() or self.now > self.progress_at + NO_PROGRESS:
                stuck = [(w.number, w.seq, w.epoch, w.round, list(w.pending)) for w in self.workers if not w.done]
                raise Broken("no stuck worker", stuck, self.root.policy)

    def run(self) -> Counter[str]:
        """Plays the run to its end, and returns the counts of its events. Raises Broken."""
        self.at(self.rng.expovariate(0.2), self._swap_at_random)
        if self.restarts:
            self.at(self.rng.expovariate(0.05), self._restart)
        self._until_done()
        for _ in range(FINAL_PULLS):
            for worker in self.workers:
                worker.pull()
            self._until_done()
        for worker in self.workers:
            for held, contributed in zip(worker.held, self.contributed, strict=True):
                if not np.array_equal(held, contributed):
                    raise Broken("exactly once", worker.number, held, contributed)
        return self.happened


def play(seed: int) -> Counter[str]:
    """Plays one run, and returns the counts of its events. Raises Broken."""
    return Simulation(seed).run()
