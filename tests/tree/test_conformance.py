"""The tree's rules (tests/tree/model.py) and its P4 programs play the same packets: every packet that comes out and
every register agree, step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from serene import entries
from serene.program import Program
from serene.racks import LeafPolicy, compile_for_racks
from serene.sim.hosts import Host
from serene.sim.switch import ProgramSwitch
from serene.strategy import ASP, BSP, SSP, Mixed, PolicyFields, Quorum, Strategy
from serene.wire import ROOT as ROOT_WORKER
from serene.wire import Op, ReadMode
from tests.dataplane.conftest import Bmv2DataPlane, DataPlane, EmbeddedDataPlane
from tests.embedded.bmv2 import running_bmv2, why_not
from tests.frames import request
from tests.model import RING, Answer
from tests.programs import LEAF, ROOT
from tests.tree.model import Down, Grant, Leaf, LeafSlot, Root, RootSlot, Up
from tests.tree.simulation import SnapshotSSP
from tests.tree.switches import FIRST_SLOT, JOB, LeafSwitch, RootSwitch

LANES, SLOTS = LEAF.lanes, 2
RACKS = ([0, 1], [2, 3, 4], [5])
HERE, WORKERS, LEAVES = RACKS[0], 6, len(RACKS)

Load = Callable[[Program], DataPlane]

slots = st.integers(0, SLOTS - 1)
workers = st.sampled_from(HERE)
vectors = st.integers(0, 2**32 - 1)  # seeds of them
some_strategy: st.SearchStrategy[Strategy] = st.one_of(
    st.just(BSP()),
    st.builds(SSP, st.integers(0, 15)),
    st.builds(SnapshotSSP, st.integers(1, 3)),
    st.just(ASP()),
    st.builds(Quorum, st.integers(1, WORKERS)),
    st.builds(Mixed, st.sampled_from([(0,), (1, 4), (0, 2), (0, 1)]), st.integers(0, 3)),
)
flushes = st.sampled_from([1, 1, 2, 4])


def vector(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**32, LANES, np.uint32)


def comparable(packets: list[Any]) -> list[tuple[Any, ...]]:
    """In an order that does not depend on that of copies."""
    as_tuples = [
        (type(packet).__name__, *(v.tobytes() if isinstance(v, np.ndarray) else v for v in vars(packet).values()))
        for packet in packets
    ]
    return sorted(as_tuples, key=repr)


class LeafConformance(RuleBasedStateMachine):
    """Packets are drawn near what well-behaved workers and a root send, so that rules meet each other."""

    def __init__(self, load: Load) -> None:
        super().__init__()
        self.switch = LeafSwitch(load(LEAF), 0, HERE, SLOTS, WORKERS)
        self.model = Leaf(SLOTS, LANES, HERE, WORKERS)
        self._begin(1, BSP(), 1)

    def teardown(self) -> None:
        self.switch.plane.close()

    def _begin(self, session: int, strategy: Strategy, flush_every: int) -> None:
        policy = compile_for_racks(strategy, RACKS, flush_every)[0][0]
        self.last = 1
        self._prepare(session, 1, policy)
        self._tell(session, 1, policy)

    def _prepare(self, session: int, epoch: int, policy: LeafPolicy) -> None:
        self.model.prepared[session, epoch] = policy
        self.switch.prepare(session, epoch, policy)

    def _tell(self, session: int, epoch: int, policy: LeafPolicy) -> None:
        self.model.session, self.model.epoch = session, epoch
        self.switch.tell(session, epoch, policy)

    # -- the controller --------------------------------------------------------------------------------------

    @rule(strategy=some_strategy, flush_every=flushes, again=st.booleans())
    def prepare(self, strategy: Strategy, flush_every: int, again: bool) -> None:
        """The next epoch; or the one prepared last, once more, as a controller does that comes after one that died."""
        in_force = self.model._newest()
        self.last = self.last if again and self.last > in_force else self.last + 1
        self._prepare(self.model.session, self.last, compile_for_racks(strategy, RACKS, flush_every)[0][0])
        for session, epoch in [era for era in self.model.prepared if era < (self.model.session - 2, in_force - 2)]:
            del self.model.prepared[session, epoch]
            self.switch.forget(session, epoch)

    @rule()
    def tell(self) -> None:
        epoch = self.model._newest()
        self._tell(self.model.session, epoch, self.model.prepared[self.model.session, epoch])

    @rule(strategy=some_strategy, flush_every=flushes)
    def start_again(self, strategy: Strategy, flush_every: int) -> None:
        newest = max(session for session, _ in self.model.prepared)
        self._begin(newest + 1, strategy, flush_every)

    @precondition(lambda self: (self.model.session - 1, 1) in self.model.prepared)
    @rule()
    def go_back(self) -> None:
        """A controller that does not know of the newest session. Slots that do drop its packets."""
        session = self.model.session - 1
        self.last = max(epoch for of, epoch in self.model.prepared if of == session)
        self._tell(session, 1, self.model.prepared[session, 1])

    @rule(worker=workers)
    def restart(self, worker: int) -> None:
        self.model.admitted[worker] += 1
        self.switch.readmit(worker)

    # -- workers ---------------------------------------------------------------------------------------------

    @rule(place=slots, values=vectors, ahead=st.sampled_from([0, 0, 0, 1]))
    def push_together(self, place: int, values: int, ahead: int) -> None:
        slot = self._slot(place)
        for worker in HERE:
            self._push(
                worker, place, slot.seen.get(worker, 0) + 1, self._newest(), slot.granted + ahead, values + worker
            )

    @rule(worker=workers, place=slots, values=vectors, ahead=st.integers(0, 3))
    def push(self, worker: int, place: int, values: int, ahead: int) -> None:
        slot = self._slot(place)
        self._push(worker, place, slot.seen.get(worker, 0) + 1, self._newest(), slot.granted + ahead, values)

    @rule(
        worker=workers, place=slots, values=vectors,
        round_=st.sampled_from([-2, -1, 0, 1, 2, 15, 16]),
        seq=st.sampled_from([-1, 0, 0, 1, 2]),
        epoch=st.sampled_from([0, 0, -1, -2, 1]),
        session=st.sampled_from([0, 0, 0, 0, -1, 1]),
        read=st.sampled_from([0, 1, 2, 3, 7, 50, 2000]),
        incarnation=st.sampled_from([0, 0, 0, -1]),
    )  # fmt: skip
    def push_oddly(
        self, worker: int, place: int, values: int, round_: int, seq: int, epoch: int, session: int, read: int,
        incarnation: int,
    ) -> None:  # fmt: skip
        slot = self._slot(place)
        self._push(
            worker, place, max(slot.seen.get(worker, 0) + seq, 1), max(self._newest() + epoch, 0),
            max(slot.granted + round_, 0), values, max(self.model.session + session, 0), read,
            max(self.model.admitted[worker] + incarnation, 1),
        )  # fmt: skip

    @rule(worker=workers, place=slots, seq=st.integers(2**31, 2**31 + 2))
    def pull(self, worker: int, place: int, seq: int) -> None:
        session, incarnation = self.model.session, self.model.admitted[worker]
        expected = self.model.request(worker, place, seq, session, 0, 0, None, 0, incarnation)
        self._send(worker, place, Op.PULL, seq, 0, 0, np.zeros(LANES, np.uint32), session, 0, incarnation, expected)

    def _push(
        self, worker: int, place: int, seq: int, epoch: int, round_: int, values: int, session: int | None = None,
        read: int = 0, incarnation: int | None = None,
    ) -> None:  # fmt: skip
        session = self.model.session if session is None else session
        incarnation = incarnation or self.model.admitted[worker]
        lanes = vector(values)
        expected = self.model.request(worker, place, seq, session, epoch, round_, lanes, read, incarnation)
        self._send(worker, place, Op.PUSH, seq, epoch, round_, lanes, session, read, incarnation, expected)

    def _send(
        self, worker: int, place: int, op: Op, seq: int, epoch: int, round_: int, lanes: np.ndarray, session: int,
        read: int, incarnation: int, expected: list[Answer | Up],
    ) -> None:  # fmt: skip
        payload = request(
            op, worker, values=lanes.view(np.int32), job=JOB, session=session, epoch=epoch, round=round_, seq=seq,
            slot=place, total=read, incarnation=incarnation,
        )  # fmt: skip
        assert comparable(self.switch.send(worker, payload)) == comparable(expected)
        self._compare(place)

    def _newest(self) -> int:
        return self.model._newest()

    def _slot(self, place: int) -> LeafSlot:
        slot = self.model.slots[place]
        return slot if slot.session == self.model.session else LeafSlot(LANES)

    # -- the root --------------------------------------------------------------------------------------------

    @rule(
        place=slots, values=vectors, epoch=st.sampled_from([0, 0, 0, 1, 1, -1]), base=st.sampled_from([0, 1, 1, 2, -1]),
        total=st.integers(-2, 4), echo=st.one_of(st.none(), st.tuples(workers, st.integers(1, 4))),
        session=st.sampled_from([0, 0, 0, 0, -1, 1]),
    )  # fmt: skip
    def down(
        self, place: int, values: int, epoch: int, base: int, total: int, echo: tuple[int, int] | None, session: int
    ) -> None:
        slot = self._slot(place)
        session = max(self.model.session + session, 1)
        packet = Down(
            0, session, max(self._newest() + epoch, 1), max(slot.granted + base, 0), max(slot.down_total + total, 0),
            vector(values), echo,
        )  # fmt: skip
        port = self.switch.hosts[echo[0]].port if echo else 0
        expected = self._stranger() if session != self.model.session else self.model.down(place, packet)
        assert comparable(self.switch.hear(place, packet, port)) == comparable(expected)
        self._compare(place)

    @rule(place=slots, epoch=st.sampled_from([0, 0, 1, -1]), base=st.integers(-1, 2))
    def grant(self, place: int, epoch: int, base: int) -> None:
        granted = max(self._slot(place).granted + base, 0)
        packet = Grant(0, self.model.session, max(self._newest() + epoch, 1), granted)
        assert comparable(self.switch.hear(place, packet)) == comparable(self.model.grant(place, packet))
        self._compare(place)

    def _stranger(self) -> list[Answer | Up]:
        """Its incarnation is the session: another session's root is not admitted."""
        self.model.dropped["stranger"] = self.model.dropped.get("stranger", 0) + 1
        return []

    @rule(worker=workers, place=slots, op=st.sampled_from([Op.DOWN, Op.GRANT, Op.UP]))
    def speak_as_a_switch(self, worker: int, place: int, op: Op) -> None:
        """A worker that claims to be the root, or a leaf."""
        payload = request(
            op, worker, values=np.zeros(LANES), job=JOB, session=self.model.session, epoch=self._newest(), slot=place,
            incarnation=self.model.admitted[worker],
        )  # fmt: skip
        payload += bytes(4 * LANES)
        before = self.switch.plane.drops()
        assert self.switch.send(worker, payload) == []
        after = self.switch.plane.drops()
        reason = "malformed" if op is Op.UP else "not_root"
        assert after == {**before, reason: before.get(reason, 0) + 1}
        self._compare(place)

    # -- state -----------------------------------------------------------------------------------------------

    def _compare(self, place: int) -> None:
        drops = self.switch.plane.drops()
        for reason in ("stranger", "wrong_session", "wrong_epoch", "old_session", "wrong_round", "unprepared"):
            assert drops.get(reason, 0) == self.model.dropped.get(reason, 0), reason
        if isinstance(self.switch.plane, EmbeddedDataPlane):
            compare_leaf_slot(self.switch.plane, place, self.model)


def stored(plane: EmbeddedDataPlane, kind: str, index: int) -> np.ndarray:
    """A vector of the registers `aggregation`."""
    fields = [plane.registers(f"aggregation.{kind}_{field}", index, 1)[0] for field in range(5)]
    return np.frombuffer(b"".join(field.to_bytes(256, "big") for field in fields), ">u4")


def compare_leaf_slot(plane: EmbeddedDataPlane, place: int, model: Leaf) -> None:
    """Every register of a slot; what is left of older sessions means nothing."""
    slot = model.slots[place]

    def read(name: str, first: int = FIRST_SLOT + place, count: int = 1) -> list[int]:
        return plane.registers(name, first, count)

    assert read("barrier.era_of") == [slot.session << 32 | slot.epoch]
    assert read("barrier.base_of") == [slot.base]
    assert read("barrier.granted_of") == [slot.granted + 1 if slot.heard else 0]
    assert read("barrier.arrived_of") == [slot.arrived]
    assert read("barrier.waiting_of") == [sum(1 << worker for worker in slot.waiting)]
    assert read("barrier.totals_of") == [slot.total << 32 | slot.down_total]
    seen = read("barrier.seen_of", 32 * (FIRST_SLOT + place), len(HERE))
    assert [entry & 0xFFFFFFFF if entry >> 32 == slot.session else 0 for entry in seen] == [
        slot.seen.get(worker, 0) for worker in HERE
    ]
    for number, entry in enumerate(read("barrier.arrivals_of", RING * (FIRST_SLOT + place), RING)):
        session, epoch, round_, arrivals = (entry >> shift & 0xFFFFFFFF for shift in (96, 64, 32, 0))
        found = ((epoch, round_), arrivals) if session == slot.session and entry else None
        assert found == slot.ring.get(number), number
    if model.known[0]:
        assert read("barrier.known_of", JOB) == [model.known[0] << 32 | model.known[1]]
    for kind, lanes in (("sum", slot.sum), ("down", slot.down)):
        if kind == "sum" or slot.heard:
            assert np.array_equal(stored(plane, kind, FIRST_SLOT + place), lanes), kind


class RootConformance(RuleBasedStateMachine):
    """UPs near what leaves send."""

    def __init__(self, load: Load) -> None:
        super().__init__()
        self.switch = RootSwitch(load(ROOT), LEAVES, SLOTS)
        self.model = Root(SLOTS, LANES, LEAVES)
        self._set(1, 1, BSP())

    def teardown(self) -> None:
        self.switch.plane.close()

    def _set(self, session: int, epoch: int, strategy: Strategy) -> None:
        self.model.session, self.model.epoch = session, epoch
        self.model.policy = compile_for_racks(strategy, RACKS)[1]
        self.switch.set_policy(session, epoch, self.model.policy)

    @rule(strategy=some_strategy)
    def swap(self, strategy: Strategy) -> None:
        self._set(self.model.session, self.model.epoch + 1, strategy)

    @rule(strategy=some_strategy, sessions=st.sampled_from([1, 1, -1]))
    def start_again(self, strategy: Strategy, sessions: int) -> None:
        session = max(self.model.session + sessions, 1)
        self._set(session, 1 if sessions > 0 else self.model.epoch + 1, strategy)

    @rule(place=slots, values=vectors, arrivals=st.integers(1, 3))
    def round(self, place: int, values: int, arrivals: int) -> None:
        """Every rack reports the round that is open."""
        for leaf in range(LEAVES):
            slot = self._slot(place)
            ahead = 0 if self.model.policy.quorum else 1
            total = slot.rack[leaf].total + 1
            lanes, base = vector(values + leaf), slot.base + ahead
            up = Up(self.model.session, self.model.epoch, base, arrivals, total, lanes, False, None)
            self._up(leaf, place, up)

    @rule(
        leaf=st.integers(0, LEAVES - 1), place=slots, values=vectors, epoch=st.sampled_from([0, 0, 0, -1, 1]),
        base=st.sampled_from([0, 0, 1, 1, 2, -1]), arrivals=st.integers(0, 3), total=st.integers(-1, 3),
        ask=st.booleans(), echo=st.one_of(st.none(), st.tuples(st.integers(0, 31), st.integers(1, 2**32 - 1))),
        session=st.sampled_from([0, 0, 0, 0, -1]),
    )  # fmt: skip
    def up(
        self, leaf: int, place: int, values: int, epoch: int, base: int, arrivals: int, total: int, ask: bool,
        echo: tuple[int, int] | None, session: int,
    ) -> None:  # fmt: skip
        slot = self._slot(place)
        total = max(slot.rack[leaf].total + total, 0)
        # A leaf's sum is one for one total.
        lanes = slot.rack[leaf].values if total == slot.rack[leaf].total else vector(values)
        self._up(leaf, place, Up(
            max(self.model.session + session, 0), max(self.model.epoch + epoch, 0), max(slot.base + base, 0), arrivals,
            total, lanes, ask, echo,
        ))  # fmt: skip

    def _slot(self, place: int) -> RootSlot:
        slot = self.model.slots[place]
        return slot if slot.session == self.model.session else RootSlot(LANES, LEAVES)

    def _up(self, leaf: int, place: int, packet: Up) -> None:
        if packet.session != self.model.session:
            self.model.dropped["stranger"] = self.model.dropped.get("stranger", 0) + 1
            expected: list[Down | Grant] = []
        else:
            expected = self.model.up(leaf, place, packet)
        assert comparable(self.switch.send(leaf, place, packet, 7 if packet.echo else 0)) == comparable(expected)
        drops = self.switch.plane.drops()
        for reason in ("stranger", "wrong_epoch", "old_session"):
            assert drops.get(reason, 0) == self.model.dropped.get(reason, 0), reason
        self._compare(place)

    def _compare(self, place: int) -> None:
        slot, here, plane = self.model.slots[place], FIRST_SLOT + place, self.switch.plane
        if not isinstance(plane, EmbeddedDataPlane):
            return

        def read(name: str, first: int = here, count: int = 1) -> list[int]:
            return plane.registers(name, first, count)

        assert read("barrier.era_of") == [slot.session << 32 | slot.epoch]
        assert read("barrier.base_of") == [slot.base]
        assert read("barrier.totals_of") == [slot.total << 32 | slot.snapshot_total]
        vectors = [("sum", here, slot.sum), ("snapshot", here, slot.snapshot)]
        for number, (rack, entry) in enumerate(zip(slot.rack, read("barrier.rack_of", 8 * here, LEAVES), strict=True)):
            session, epoch, base, arrivals, total = (entry >> shift & 0xFFFFFFFF for shift in (128, 96, 64, 32, 0))
            if session == slot.session:
                assert (epoch, base, arrivals, total) == (rack.epoch, rack.base, rack.arrivals, rack.total)
                vectors.append(("rack", 8 * here + number, rack.values))
            else:
                assert (rack.epoch, rack.total) == (0, 0)
        for kind, index, lanes in vectors:
            assert np.array_equal(stored(plane, kind, index), lanes), kind


@pytest.fixture(scope="module", params=["embedded", pytest.param("bmv2", marks=pytest.mark.bmv2)])
def load(request: pytest.FixtureRequest) -> Iterator[Load]:
    """Loads a program on the target."""
    if request.param == "embedded":
        yield EmbeddedDataPlane
        return
    if lacking := why_not():
        pytest.skip(lacking)
    with ExitStack() as stack:
        running = {
            program: stack.enter_context(running_bmv2(program.config_path, program.p4info_path))
            for program in (LEAF, ROOT)
        }
        yield lambda program: Bmv2DataPlane(running[program], program)


@pytest.mark.parametrize("machine", [LeafConformance, RootConformance])
def test_tree_programs_agree_with_the_model(load: Load, machine: type[LeafConformance | RootConformance]) -> None:
    """BMv2 plays fewer steps, and compares packets and counters only, because its registers cannot be read."""
    embedded = load is EmbeddedDataPlane
    run_state_machine_as_test(
        cast(Any, partial(machine, load)),  # called, not subclassed
        settings=settings(
            max_examples=100 if embedded else 6,
            stateful_step_count=50 if embedded else 30,
            deadline=None,
            database=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_leaf_tables_have_room_for_eight_full_jobs() -> None:
    leaf, workers, uplink = ProgramSwitch(LEAF), 32, 200
    policy = PolicyFields(2**workers - 1, 2**workers - 1, 0, workers, ReadMode.SNAPSHOT)
    for job in range(8):
        for worker in range(workers):
            leaf.admit(worker, Host.of(worker), job)
        leaf.put(entries.member(job, ROOT_WORKER, entries.root_at(uplink, 1)))
        leaf.put(entries.uplink(job, 0, 0, uplink))
        for epoch in range(1, 9):
            leaf.put(entries.prepared(job, 1, epoch, LeafPolicy(policy, workers, by_arrivals=False)))
    leaf.delete(entries.not_prepared(7, 1, 8))
    leaf.close()
