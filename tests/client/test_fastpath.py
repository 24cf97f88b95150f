"""The fast path in C compared with the protocol in Python: the same packets, and the same state after each.

Two workers over two real sockets, one with the fast path and one without; the test is the switch at the other end, and
answers both alike: late, twice, not at all, in any order, with odd packets in between.
"""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from serene.client.compiled.fastpath import FastPath, Link, Outcome, dequantise, library, quantise
from serene.client.protocol.protocol import PROBES, Membership, PlaceTaken, Protocol
from serene.client.protocol.window import Window
from serene.fixedpoint import FixedPoint
from serene.wire import UNBOUNDED, Op, ReadMode, control_payload, push_payloads

LANES, SLOTS, SESSION = 16, 40, 7
NOTHING = np.zeros(0, np.uint8)

pytestmark = pytest.mark.skipif(library() is None, reason="the fast path needs a C compiler")


@dataclass
class Pair:
    """A worker's protocol in C and one in Python, and the switch's end of the first one's socket."""

    fast: Protocol
    slow: Protocol
    run: FastPath
    switch: socket.socket
    worker: socket.socket

    def begin(self, values: np.ndarray) -> None:
        for protocol in (self.fast, self.slow):
            protocol.push(values, 0.0)

    def step(self, answers: list[np.ndarray]) -> Outcome:
        """Passes the answers to both, and returns the fast path's outcome."""
        for protocol in (self.fast, self.slow):
            protocol.window.size = SLOTS  # losses would close them at different times: here the clocks differ
        for row in answers:
            self.switch.send(row.tobytes())
        outcome = self.run.run()
        if outcome is Outcome.ODD_PACKETS:
            rows, lengths = self.run.odd_packets()
            for row, length in zip(rows, lengths, strict=True):
                self.fast.receive(row[None, :length], 1.0)
        self.slow.packets(1.0)
        for row in answers:
            self.slow.receive(row[None, :], 1.0)
        return outcome

    def agree(self) -> None:
        for name in ("state", "in_network", "new_values", "new_totals", "awaited", "rounds"):
            assert np.array_equal(getattr(self.fast.exchange, name), getattr(self.slow.exchange, name)), name
        assert (self.fast.exchange.announced, self.fast.exchange.seen) == (
            self.slow.exchange.announced,
            self.slow.exchange.seen,
        )
        assert self.fast.done == self.slow.done
        assert self.fast.exchange.flowing == self.slow.exchange.flowing


@pytest.fixture
def pair() -> Iterator[Pair]:
    joined = Membership(SESSION, 1, SLOTS * LANES, SLOTS, LANES, 2**20, 2**23, 3)
    fast, slow = (Protocol(2, 1, joined, window=Window(SLOTS)) for _ in range(2))
    ours, switch = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    compiled = library()
    assert compiled is not None
    yield Pair(fast, slow, FastPath(compiled, fast, Link(ours.fileno(), NOTHING, NOTHING)), switch, ours)
    ours.close()
    switch.close()


def answer(slot: int, value: int, **header: int) -> np.ndarray:
    fields = {"job": 2, "worker": 1, "session": SESSION, "epoch": 1, "round": 1, "seq": 1, "total": 3, "seen": 1,
              "sync_mask": 7, "staleness": 0, "quorum": 3, "read_mode": int(ReadMode.SNAPSHOT), **header}  # fmt: skip
    payload: np.ndarray = push_payloads(np.full((slot + 1, LANES), value, np.int32), op=Op.ANSWER, **fields)[slot]
    return payload


def contributions(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-(2**31), 2**31, (SLOTS, LANES)).astype(np.int32)


def _received(end: socket.socket, count: int) -> list[bytes]:
    packets = [end.recv(4096, socket.MSG_DONTWAIT) for _ in range(count)]
    with pytest.raises(BlockingIOError):
        end.recv(4096, socket.MSG_DONTWAIT)
    return packets


def test_c_and_python_send_the_same_packets_and_extend_the_window_after_silence(pair: Pair) -> None:
    """A slot that has been silent for a timeout waits in the switch and does not fill the window."""
    pair.begin(contributions(5))
    for protocol in (pair.fast, pair.slow):
        protocol.window.size = 8
    assert pair.run.run() is Outcome.SILENCE
    assert _received(pair.switch, 8) == [row.tobytes() for row in pair.slow.packets(1.0)]
    deadline = pair.slow.deadline()
    assert deadline is not None
    assert len(pair.fast.retransmissions(time.monotonic())) == PROBES  # by the client, through its transport
    assert pair.run.run() is Outcome.SILENCE
    assert _received(pair.switch, 8) == [row.tobytes() for row in pair.slow.packets(deadline)[PROBES:]]
    pair.agree()


def test_answer_gap_is_not_waiting_while_packets_are_unsent(pair: Pair) -> None:
    """The window caused the pause then, and not the other workers."""
    pair.begin(contributions(6))
    for protocol in (pair.fast, pair.slow):
        protocol.window.size = 8
    pair.slow.packets(1.0)
    for slot in range(8):
        pair.switch.send(answer(slot, 1).tobytes())
        pair.slow.receive(answer(slot, 1)[None, :], 1.0)
    assert pair.run.run() is Outcome.SILENCE
    assert len(pair.slow.packets(1.0)) == 8
    assert pair.slow.exchange.flowing and pair.fast.exchange.flowing


@pytest.mark.parametrize("seed", range(12))
def test_c_and_python_reach_the_same_state_from_any_answers(pair: Pair, seed: int) -> None:
    """Tries answers, echoes, releases, repeats, old and foreign packets, and compares every slot."""
    rng = random.Random(seed)
    for iteration in range(1, 4):
        _answer_all(pair, rng, iteration, seed)
        fast, slow = pair.fast.finish(), pair.slow.finish()
        assert np.array_equal(fast.difference, slow.difference)
        assert (fast.epoch, fast.round, fast.quorum) == (slow.epoch, slow.round, slow.quorum)


def test_reads_that_are_kept_stay_as_they_were_in_c_and_python(pair: Pair) -> None:
    """Also when late and repeated answers come."""
    rng, reads = random.Random(0), list[tuple[np.ndarray, np.ndarray]]()
    pair.fast.keeps_reads = pair.slow.keeps_reads = True
    for iteration in range(1, 7):
        _answer_all(pair, rng, iteration, 0)
        for protocol in (pair.fast, pair.slow):
            assert not protocol.finish().difference.size
            reads.append((protocol.held_values, protocol.held_values.copy()))
        assert np.array_equal(pair.fast.held_values, pair.slow.held_values)
    assert all(np.array_equal(*read) for read in reads)


def _answer_all(pair: Pair, rng: random.Random, iteration: int, seed: int) -> None:
    """Contributes, and passes answers until each slot has one."""
    pair.begin(contributions(seed * 10 + iteration))
    for _ in range(20):
        rows = [_some_answer(rng, iteration) for _ in range(rng.randint(1, 20))]
        pair.step(rows)
        pair.agree()
        if pair.fast.done:
            break
    while not pair.fast.done:
        waiting = np.flatnonzero(pair.fast.exchange.state != 2)
        pair.step([answer(int(slot), 9, seq=iteration, round=iteration, total=3 * iteration) for slot in waiting])
        pair.agree()


def _some_answer(rng: random.Random, iteration: int) -> np.ndarray:
    """Returns mostly the answer that the switch would send now, often another one."""
    header = {
        "seq": rng.choice([iteration, iteration, iteration, 0, iteration - 1]),
        "round": rng.choice([iteration, iteration, iteration - 1]),
        "total": rng.randint(3 * (iteration - 1), 3 * iteration),
        "seen": iteration,
        "staleness": rng.choice([0, 0, 2, UNBOUNDED]),
        "session": rng.choice([SESSION] * 9 + [SESSION + 1]),
        "worker": rng.choice([1] * 9 + [0]),
        "job": rng.choice([2] * 9 + [3]),
    }
    return answer(rng.randrange(SLOTS), rng.randint(-(2**31), 2**31 - 1), **header)


def test_fast_path_leaves_nudges_and_new_epochs_to_python(pair: Pair) -> None:
    pair.begin(contributions(2))
    nudge = np.frombuffer(control_payload(Op.NUDGE, job=2, worker=1, session=SESSION, epoch=2, slot=3), np.uint8)
    assert pair.step([nudge]) is Outcome.ODD_PACKETS
    pair.agree()
    assert pair.step([answer(4, 5, epoch=2)]) in (Outcome.ODD_PACKETS, Outcome.SILENCE)
    pair.agree()
    assert pair.fast.exchange.announced == 2


def test_fast_path_leaves_a_taken_place_to_python(pair: Pair) -> None:
    pair.begin(contributions(5))
    with pytest.raises(PlaceTaken):
        pair.step([answer(2, 5, seen=9)])


def test_fast_path_raises_on_a_closed_socket(pair: Pair) -> None:
    pair.begin(contributions(4))
    pair.worker.close()
    with pytest.raises(OSError, match="socket failed"):
        for _ in range(5):
            pair.run.run()


@pytest.mark.parametrize("more", [0, LANES - 1, LANES * 3 + 5])
def test_c_quantisation_equals_numpy_for_any_length(more: int) -> None:
    """Both directions, vector to packets and back, to the bit."""
    fixed = FixedPoint(2**20, 8.0)
    bounds = [8.0, -8.0, 8.5, 1e30, 0.5 / 2**20, 1.5 / 2**20]
    gradient = np.concatenate([np.random.default_rng(more).normal(0, 4, more), bounds]).astype(np.float32)
    protocol = Protocol(2, 1, Membership(SESSION, 1, SLOTS * LANES, SLOTS, LANES, 2**20, 2**23, 3), window=Window(4))
    clipped = quantise(gradient, fixed, protocol)
    values, theirs = fixed.quantise(gradient)
    assert clipped == theirs
    assert protocol.values.reshape(-1)[: len(gradient)].tolist() == values.tolist()
    expected = fixed.dequantise(values)
    assert np.array_equal(dequantise(values, fixed), expected)
