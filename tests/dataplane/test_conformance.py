"""The rules (tests/model.py) and the P4 program play the same packets: every answer and all observable state agree.

A state machine of hypothesis chooses the packets, two jobs of them on one switch, and shrinks what disagrees to the
few packets that show it. On the embedded switch registers can be read, and are compared after every packet; on BMv2 it
is the answers and the counters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from serene.sim.hosts import Host
from serene.strategy import ASP, BSP, SSP, Mixed, Quorum, Strategy
from serene.wire import Op
from tests.dataplane.conftest import WORKERS, DataPlane, EmbeddedDataPlane
from tests.frames import frame, mac, request
from tests.model import RING, Answer, Model, Policy, Slot

LANES, SLOTS, JOBS = 320, 2, 2

jobs = st.integers(0, JOBS - 1)
workers = st.integers(0, WORKERS - 1)
slots = st.integers(0, SLOTS - 1)
vectors = st.integers(0, 2**32 - 1)  # seeds of them
some_strategy: st.SearchStrategy[Strategy] = st.one_of(
    st.just(BSP()),
    st.builds(SSP, st.integers(0, 15)),
    st.just(ASP()),
    st.builds(Quorum, st.integers(1, WORKERS)),
    st.builds(Mixed, st.sampled_from([(0,), (1,), (0, 2)]), st.integers(0, 3)),
)


@dataclass
class Job:
    model: Model
    session: int = 1
    epoch: int = 1

    @property
    def dropped(self) -> int:
        model = self.model
        return (
            model.dropped_stranger + model.dropped_wrong_session + model.dropped_wrong_round + model.dropped_old_session
        )


def vector(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-(2**31), 2**31, LANES).astype(np.int32)


class Conformance(RuleBasedStateMachine):
    """Packets are drawn near what well-behaved workers send, so that rules meet each other: rounds around the base,
    repeated and outdated seqs, the present and the last epochs and sessions."""

    def __init__(self, plane: DataPlane) -> None:
        super().__init__()
        self.plane = plane
        plane.clear()
        self.jobs = [Job(Model(SLOTS, LANES, WORKERS)) for _ in range(JOBS)]
        for number, job in enumerate(self.jobs):
            plane.start_job(BSP(), job=number, slots=SLOTS, first_slot=SLOTS * number, session=1)
            job.model.policy = Policy(1, 1, BSP().compile(range(WORKERS)))
        self.counted: Counter[tuple[str, int]] = Counter()
        self.spoofed = 0
        self.sent: list[tuple[int, dict[str, Any]]] = []

    # -- rules -----------------------------------------------------------------------------------------------

    @rule(job=jobs, strategy=some_strategy)
    def swap(self, job: int, strategy: Strategy) -> None:
        self.jobs[job].epoch += 1
        self._policy(job, strategy)

    @rule(job=jobs, strategy=some_strategy, sessions=st.sampled_from([1, 1, 2, -1]))
    def start_again(self, job: int, strategy: Strategy, sessions: int) -> None:
        """A new session, from zero; or one older than the slots have seen, given out by a forgetful controller."""
        self.jobs[job].session = max(self.jobs[job].session + sessions, 1)
        self.jobs[job].epoch += 1 if sessions < 0 else -self.jobs[job].epoch + 1
        self._policy(job, strategy)

    @rule(job=jobs, worker=workers)
    def restart(self, job: int, worker: int) -> None:
        """Restarts a worker's process at the same addresses; packets of the old one may still come."""
        mine = self.jobs[job]
        host = replace(Host.of(worker), incarnation=mine.model.admitted[worker])
        self.plane.readmit(worker, host, job)
        mine.model.admitted[worker] += 1

    @rule(job=jobs, worker=workers, slot=slots, values=vectors)
    def push_of_the_last_incarnation(self, job: int, worker: int, slot: int, values: int) -> None:
        seen, base = self._place(job, worker, slot)
        incarnation = self.jobs[job].model.admitted[worker] - 1
        self._send(job, worker=worker, slot=slot, seq=seen + 1, round_=base, values=values, incarnation=incarnation)

    def _policy(self, number: int, strategy: Strategy) -> None:
        job = self.jobs[number]
        self.plane.swap(strategy, job.epoch, job=number, session=job.session)
        job.model.policy = Policy(job.session, job.epoch, strategy.compile(range(WORKERS)))

    @rule(job=jobs, worker=workers, slot=slots, values=vectors)
    def push(self, job: int, worker: int, slot: int, values: int) -> None:
        """What a well-behaved worker sends next, if it is in the present epoch."""
        seen, base = self._place(job, worker, slot)
        self._send(job, worker=worker, slot=slot, seq=seen + 1, round_=base, values=values)

    @rule(job=jobs, slot=slots, values=vectors, ahead=st.integers(0, 3))
    def push_together(self, job: int, slot: int, values: int, ahead: int) -> None:
        """All workers contribute to the open round, or to one soon after it."""
        _, base = self._place(job, 0, slot)
        for worker in range(WORKERS):
            seen, _ = self._place(job, worker, slot)
            self._send(job, worker=worker, slot=slot, seq=seen + 1, round_=base + ahead, values=values + worker)

    @rule(
        job=jobs,
        worker=workers,
        slot=slots,
        values=vectors,
        round_=st.sampled_from([-2, -1, 0, 1, 2, 15, 16]),
        seq=st.sampled_from([-1, 0, 1, 2]),
        epoch=st.sampled_from([0, 0, -1, -2, 1]),
        session=st.sampled_from([0, 0, 0, -1, 1]),
        read=st.sampled_from([0, 1, 2, 3, 7, 50, 2000]),
    )
    def push_wrong_round(
        self, job: int, worker: int, slot: int, values: int, round_: int, seq: int, epoch: int, session: int, read: int
    ) -> None:
        """Ahead, behind, repeated, of an older epoch or another session; offsets from what is due."""
        seen, base = self._place(job, worker, slot)
        mine = self.jobs[job]
        self._send(
            job, worker=worker, slot=slot, values=values, round_=max(base + round_, 0), seq=max(seen + seq, 0),
            epoch=max(mine.epoch + epoch, 0), session=max(mine.session + session, 0), read=read,
        )  # fmt: skip

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def replay(self, data: st.DataObject) -> None:
        """A packet of before, byte for byte."""
        job, packet = data.draw(st.sampled_from(self.sent[-20:]))
        self._send(job, **packet)

    @rule(job=jobs, worker=workers, slot=slots)
    def pull(self, job: int, worker: int, slot: int) -> None:
        session, model = self.jobs[job].session, self.jobs[job].model
        incarnation = model.admitted[worker]
        payload = request(
            Op.PULL, worker, values=vector(1), job=job, session=session, seq=1000, slot=slot, incarnation=incarnation
        )
        self._compare(job, worker, slot, payload, model.pull(worker, slot, 1000, session, incarnation))

    @rule(job=jobs, worker=workers, slot=slots, cut=st.integers(0, 1319))
    def truncate(self, job: int, worker: int, slot: int, cut: int) -> None:
        """The next packet of a well-behaved worker, cut off after the first 42 bytes: less than its headers say."""
        self._nothing_happens(worker + 1, self._next_packet(job, worker, slot)[: 42 + cut], job, slot)

    @rule(job=jobs, worker=workers, slot=slots, liar=workers, how=st.sampled_from(["port", "mac", "worker", "job"]))
    def spoof(self, job: int, worker: int, slot: int, liar: int, how: str) -> None:
        """Sends a packet with another worker's id."""
        packet, port = self._next_packet(job, worker, slot), worker + 1
        if how == "port":
            port = liar + 1
        elif how == "mac":
            packet = packet[:6] + bytes.fromhex(mac(liar).replace(":", "")) + packet[12:]
        elif how == "worker":
            packet = packet[:45] + bytes([liar]) + packet[46:]
        else:
            packet = packet[:44] + bytes([JOBS + liar]) + packet[45:]
        if how == "job" or liar != worker:
            self._nothing_happens(port, packet, job, slot)
            self.spoofed += 1

    def _next_packet(self, job: int, worker: int, slot: int) -> bytes:
        seen, base = self._place(job, worker, slot)
        mine = self.jobs[job]
        return frame(
            request(
                Op.PUSH, worker, values=vector(7), job=job, session=mine.session, epoch=mine.epoch, round=base,
                seq=seen + 1, slot=slot, incarnation=mine.model.admitted[worker],
            ),
            worker,
        )  # fmt: skip

    # -- both of them ----------------------------------------------------------------------------------------

    def _place(self, job: int, worker: int, slot: int) -> tuple[int, int]:
        """The highest seq accepted, and the rounds complete in the present epoch."""
        mine = self.jobs[job]
        state = mine.model.slots[slot]
        seen = state.seen.get(worker, 0) if state.session == mine.session else 0
        return seen, state.base if (state.session, state.epoch) == (mine.session, mine.epoch) else 0

    def _send(
        self, job: int, *, worker: int, slot: int, seq: int, round_: int, values: int, epoch: int | None = None,
        session: int | None = None, read: int = 0, incarnation: int | None = None,
    ) -> None:  # fmt: skip
        mine = self.jobs[job]
        epoch, session = (mine.epoch if epoch is None else epoch), (mine.session if session is None else session)
        incarnation = mine.model.admitted[worker] if incarnation is None else incarnation
        packet = dict(
            worker=worker, slot=slot, seq=seq, round_=round_, values=values, epoch=epoch, session=session, read=read,
            incarnation=incarnation,
        )  # fmt: skip
        self.sent.append((job, packet))
        lanes = vector(values)
        before, dropped = sum(mine.model.contributions.values()), mine.dropped
        expected = mine.model.push(worker, slot, seq, session, epoch, round_, lanes, read, incarnation)
        payload = request(
            Op.PUSH, worker, values=lanes, job=job, session=session, epoch=epoch, round=round_, seq=seq, slot=slot,
            total=read, incarnation=incarnation,
        )  # fmt: skip
        fresh = sum(mine.model.contributions.values()) > before
        if mine.dropped == dropped:
            self.counted["repeats", 32 * job + worker] += not fresh
            self.counted["blocked", 32 * job + worker] += not any(answer.worker == worker for answer in expected)
        self._compare(job, worker, slot, payload, expected)

    def _compare(self, job: int, worker: int, slot: int, payload: bytes, expected: list[Answer]) -> None:
        packets = self.plane.ask(worker + 1, frame(payload, worker))
        got = [
            Answer(item.worker, item.op, item.epoch, item.base, item.seq, item.total, item.values) for item in packets
        ]
        order: Callable[[Answer], tuple[int, int]] = lambda answer: (answer.worker, answer.op)  # noqa: E731
        assert sorted(got, key=order) == sorted(expected, key=order)
        assert [item.port for item in packets] == sorted(item.worker + 1 for item in packets)
        assert {item.session for item in packets} <= {self.jobs[job].session}
        for answer in expected:
            released = "releases" if answer.op is Op.ANSWER else "nudges"
            self.counted["answers" if answer.worker == worker else released, 32 * job + answer.worker] += 1
        self._compare_state(job, slot)

    def _nothing_happens(self, port: int, packet: bytes, job: int, slot: int) -> None:
        """It is dropped, counted for some reason, and no value changes."""
        before = sum(self.plane.drops().values())
        assert self.plane.send(port, packet) == []
        assert sum(self.plane.drops().values()) == before + 1
        self._compare_state(job, slot)

    # -- state -----------------------------------------------------------------------------------------------

    def _compare_state(self, job: int, place: int) -> None:
        if isinstance(self.plane, EmbeddedDataPlane):
            compare_slot(self.plane, SLOTS * job + place, self.jobs[job].model.slots[place])

    def teardown(self) -> None:
        for number, job in enumerate(self.jobs):
            for place in range(SLOTS):
                self._compare_state(number, place)
            for worker in range(WORKERS):
                index = 32 * number + worker
                assert self.plane.counter("contributions", index) == job.model.contributions.get(worker, 0)
                for name in ("repeats", "blocked", "answers", "releases", "nudges"):
                    assert self.plane.counter(name, index) == self.counted[name, index], (name, index)
                for rounds in range(RING):
                    stale = self.plane.counter("staleness", RING * index + rounds)
                    assert stale == job.model.staleness.get((worker, rounds), 0), (index, rounds)
        drops = self.plane.drops()
        for reason in ("wrong_session", "wrong_round", "old_session"):
            expected = sum(getattr(job.model, f"dropped_{reason}") for job in self.jobs)
            assert drops.get(reason, 0) == expected, reason
        assert drops.get("stranger", 0) == self.spoofed + sum(job.model.dropped_stranger for job in self.jobs)


def compare_slot(plane: EmbeddedDataPlane, place: int, slot: Slot) -> None:
    """Compares every register of a slot, except state of older sessions, which has no meaning."""

    def read(name: str, first: int = place, count: int = 1) -> list[int]:
        return plane.registers(name, first, count)

    assert read("barrier.era_of") == [slot.session << 32 | slot.epoch]
    assert read("barrier.base_of") == [slot.base]
    assert read("barrier.waiting_of") == [sum(1 << worker for worker in slot.waiting)]
    assert read("barrier.totals_of") == [slot.total << 32 | slot.snapshot_total]
    seen = read("barrier.seen_of", 32 * place, WORKERS)
    assert [entry & 0xFFFFFFFF if entry >> 32 == slot.session else 0 for entry in seen] == [
        slot.seen.get(worker, 0) for worker in range(WORKERS)
    ]
    for number, entry in enumerate(read("barrier.arrivals_of", RING * place, RING)):
        session, epoch, round_, arrivals = (entry >> shift & 0xFFFFFFFF for shift in (96, 64, 32, 0))
        found = ((epoch, round_), arrivals) if session == slot.session and entry else None
        assert found == slot.ring.get(number), number
    for kind, lanes in (("sum", slot.sum), ("snapshot", slot.snapshot)):
        fields = [read(f"aggregation.{kind}_{field}")[0].to_bytes(256, "big") for field in range(5)]
        assert np.array_equal(np.frombuffer(b"".join(fields), ">u4"), lanes), kind


def test_p4_program_agrees_with_the_model(target: DataPlane) -> None:
    """BMv2 plays fewer steps, because there every packet passes through the kernel."""
    embedded = isinstance(target, EmbeddedDataPlane)

    class OnTarget(Conformance):
        def __init__(self) -> None:
            super().__init__(target)

    run_state_machine_as_test(
        OnTarget,
        settings=settings(
            max_examples=100 if embedded else 8,
            stateful_step_count=50 if embedded else 30,
            deadline=None,
            database=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
