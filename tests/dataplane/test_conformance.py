"""The same random packets to the rules (tests/model.py) and to the P4 program: every answer, and all state, agree."""

from __future__ import annotations

import random

import numpy as np
import pytest

from serene.strategy import ASP, BSP, SSP, Mixed, Quorum, Strategy
from serene.wire import Op
from tests.dataplane.conftest import WORKERS, DataPlane, EmbeddedDataPlane
from tests.frames import frame, request
from tests.model import Answer, Model, Policy

LANES, SLOTS = 320, 2


def some_strategy(rng: random.Random) -> Strategy:
    return rng.choice(
        [BSP(), SSP(rng.randint(0, 15)), ASP(), Quorum(rng.randint(1, WORKERS)), Mixed((rng.randrange(WORKERS),)),
         Mixed((0,), rng.randint(0, 3))]
    )  # fmt: skip


class Player:
    """Plays one schedule to both. Packets are drawn near what honest workers send, so that rules meet each other:
    rounds around the base, repeated and outdated seqs, the present and the last epochs and sessions."""

    def __init__(self, plane: DataPlane, seed: int) -> None:
        self.rng = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.plane = plane
        self.model = Model(SLOTS, LANES, WORKERS)
        self.session, self.epoch = 1, 1
        strategy = some_strategy(self.rng)
        plane.start_job(strategy, slots=SLOTS, session=self.session)
        self.model.policy = Policy(self.session, self.epoch, strategy.compile(range(WORKERS)))

    def swap(self) -> None:
        strategy = some_strategy(self.rng)
        if self.rng.random() < 0.2:
            self.session, self.epoch = self.session + 1, 1
        else:
            self.epoch += 1
        self.plane.swap(strategy, self.epoch, session=self.session)
        self.model.policy = Policy(self.session, self.epoch, strategy.compile(range(WORKERS)))

    def packet(self) -> None:
        rng = self.rng
        worker, slot = rng.randrange(WORKERS), rng.randrange(SLOTS)
        state = self.model.slots[slot]
        seen = state.seen.get(worker, 0) if state.session == self.session else 0
        base = state.base if (state.session, state.epoch) == (self.session, self.epoch) else 0
        session = self.session if rng.random() < 0.97 else self.session - 1
        epoch = self.epoch if rng.random() < 0.85 else rng.randint(0, self.epoch)
        round_ = max(base + rng.choice([-2, -1, 0, 0, 0, 0, 1, 2, 15, 16]), 0)
        seq = max(seen + rng.choice([-1, 0, 1, 1, 1, 1, 2]), 0)
        if rng.random() < 0.1:
            seq += 1000  # a PULL's seq means nothing to the slot
            expected = self.model.pull(worker, slot, seq, session)
            payload = request(Op.PULL, worker, session=session, epoch=epoch, round=round_, seq=seq, slot=slot)
        else:
            values = self.numbers.integers(-(2**31), 2**31, LANES).astype(np.int32)
            read = (state.total - rng.choice([0, 1, 2, 3, 7, 50, 2000])) % 2**32 if rng.random() < 0.9 else 0
            expected = self.model.push(worker, slot, seq, session, epoch, round_, values, read)
            payload = request(
                Op.PUSH,
                worker,
                values=values,
                session=session,
                epoch=epoch,
                round=round_,
                seq=seq,
                slot=slot,
                total=read,
            )
        said = self.plane.ask(worker + 1, frame(payload, worker))
        got = [Answer(item.worker, item.op, item.epoch, item.base, item.seq, item.total, item.values) for item in said]
        order = lambda answer: (answer.worker, answer.op)  # noqa: E731
        assert sorted(got, key=order) == sorted(expected, key=order)
        assert [item.port for item in said] == sorted(item.worker + 1 for item in said)

    def check_counters(self) -> None:
        for worker in range(WORKERS):
            assert self.plane.counter("contributions", worker) == self.model.contributions.get(worker, 0)
            for rounds in range(16):
                stale = self.plane.counter("staleness", worker * 16 + rounds)
                assert stale == self.model.staleness.get((worker, rounds), 0), (worker, rounds)
        wanted = {"wrong_session": self.model.dropped_wrong_session, "wrong_round": self.model.dropped_wrong_round}
        assert self.plane.drops() == {reason: count for reason, count in wanted.items() if count}

    def play(self, packets: int) -> None:
        for _ in range(packets):
            if self.rng.random() < 0.04:
                self.swap()
            self.packet()
        self.check_counters()


@pytest.mark.parametrize("seed", range(10))
def test_every_answer_agrees_with_the_rules(plane: DataPlane, seed: int) -> None:
    Player(plane, seed).play(80)


def test_state_agrees_with_the_rules() -> None:
    """On the embedded switch, whose registers can be read: thousands of packets."""
    plane = EmbeddedDataPlane()
    for seed in range(100, 130):
        plane.clear()
        player = Player(plane, seed)
        for _ in range(10):
            player.play(20)
            _compare_state(plane, player)


def _compare_state(plane: EmbeddedDataPlane, player: Player) -> None:
    read = plane.switch.register_read_all
    barrier, sums = "SereneIngress.barrier.", "SereneIngress.aggregation."
    for place, slot in enumerate(player.model.slots):
        (era,), (base,) = read(barrier + "era_of", place, 1), read(barrier + "base_of", place, 1)
        (waiting,), (totals,) = read(barrier + "waiting_of", place, 1), read(barrier + "totals_of", place, 1)
        assert era == slot.session << 32 | slot.epoch
        assert base == slot.base
        assert waiting == sum(1 << worker for worker in slot.waiting)
        assert totals == slot.total << 32 | slot.snapshot_total
        for kind, vector in (("sum", slot.sum), ("snapshot", slot.snapshot)):
            fields = [read(f"{sums}{kind}_{field}", place, 1)[0].to_bytes(256, "big") for field in range(5)]
            assert np.array_equal(np.frombuffer(b"".join(fields), ">u4"), vector)
