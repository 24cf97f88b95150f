"""Fuzzes a worker's client with mutated answers: it must continue or raise a SereneError. The client's own fast path
reads the packets from a socket, so that a library built with sanitizers sees all of them.
"""

from __future__ import annotations

import itertools
import random
import socket
from collections import Counter
from contextlib import suppress

import numpy as np

from serene.client import Client
from serene.client.compiled import fastpath
from serene.client.compiled.fastpath import Link
from serene.client.transport.transport import BATCH, LARGEST_PAYLOAD
from serene.errors import SereneError
from serene.wire import Op, control_payload, membership, push_payloads
from tests.embedded.packets import mutated
from tests.support.transports import Untroubled, received

SLOTS, LANES, SESSION = 6, 8, 7
VALUES = SLOTS * LANES - 3
NOTHING = np.zeros(0, np.uint8)
MOST_BYTES = 4096


class SocketPair(Untroubled):
    """A transport over a pair of sockets, whose other end, ``switch``, is the test's."""

    def __init__(self) -> None:
        self._here, self.switch = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._here.setblocking(False)
        self.switch.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        self.switch.setblocking(False)

    def send(self, payloads: np.ndarray) -> None:
        for row in payloads:
            try:
                self._here.send(row.tobytes())
            except BlockingIOError:
                return

    def receive(self, timeout_s: float) -> tuple[np.ndarray, np.ndarray]:
        mail: list[bytes] = []
        with suppress(BlockingIOError):
            while len(mail) < BATCH:
                mail.append(self._here.recv(LARGEST_PAYLOAD))
        return received(mail)

    def link(self, payload_bytes: int) -> Link:
        return Link(self._here.fileno(), NOTHING, NOTHING)

    def close(self) -> None:
        self._here.close()
        self.switch.close()


def genuine(rng: random.Random) -> bytes:
    """A packet that the switch or the controller could send to worker 0, incarnation 1."""
    header = {
        "job": 0,
        "worker": 0,
        "session": rng.choice([SESSION] * 6 + [0, SESSION - 1, SESSION + 1, 2**32 - 1]),
        "epoch": rng.choice([1, 1, 1, 2, 2**32 - 1]),
        "round": rng.choice([0, 1, 2, 2**32 - 1]),
        "seq": rng.choice([0, 1, 2, 2**31 + 2]),
        "total": rng.choice([0, 1, 3, 2**31, 2**32 - 1]),
        "staleness": rng.choice([0, 1, 255]),
        "read_mode": rng.choice([0, 1, 1, 7]),
        "members": rng.choice([0, 1, 3]),
        "incarnation": rng.choice([1, 1, 1, 2]),
    }
    op = rng.choice([Op.ANSWER] * 6 + [Op.NUDGE, Op.WELCOME, Op.REFUSED, Op.BYE, Op.WAIT])
    if op is Op.ANSWER:
        values = np.full((SLOTS, rng.choice([LANES] * 5 + [1, 4 * LANES])), rng.randint(-(2**31), 2**31 - 1), np.int32)
        return bytes(push_payloads(values, op=op, **header)[rng.randrange(SLOTS)].tobytes())
    if op is Op.WELCOME:
        sizes = {"vector_length": VALUES, "slots": SLOTS, "scale": 2**20, "limit": 2**23, "lanes": LANES, "workers": 1}
        if rng.random() < 0.3:
            sizes[rng.choice(list(sizes))] = rng.choice([0, 1, 2**8 - 1])
        return control_payload(op, membership(**sizes), **header)
    return control_payload(op, rng.choice([b"", b"{}", b"[]", b"\xff\xfe", b'{"job_over": 1}']), **header)


def hostile(rng: random.Random) -> bytes:
    """Such a packet, most of the time mutated."""
    packet = genuine(rng)
    return packet if rng.random() < 0.3 else mutated(rng, packet, MOST_BYTES)


def _join(wire: SocketPair) -> Client:
    client = Client(wire, 0, 0, VALUES, incarnation=1, silence_s=1e9)
    sizes = {"vector_length": VALUES, "slots": SLOTS, "scale": 2**20, "limit": 2**23, "lanes": LANES, "workers": 1}
    wire.switch.send(control_payload(Op.WELCOME, membership(**sizes), session=SESSION, epoch=1, incarnation=1))
    client.join(timeout_s=60)
    return client


def fuzz(packets: int, seed: int, flags: tuple[str, ...] = ()) -> Counter[str]:
    """Sends about so many packets to clients, most of them in the middle of an exchange, some in the middle of a join.
    Returns how often each outcome came: "exchanged", or the name of an error. flags: of the fast path's compiler."""
    fastpath.COMPILER_FLAGS = flags
    fastpath.library.cache_clear()
    assert fastpath.library() is not None, "the fast path is not compiled: this would test half of the client"
    rng, outcomes, left = random.Random(f"answers {seed}"), Counter[str](), packets
    while left > 0:
        wire = SocketPair()
        try:
            if rng.random() < 0.1:
                client = Client(wire, 0, 0, VALUES, incarnation=1)
                for _ in range(8):
                    wire.switch.send(hostile(rng))
                left -= 8
                client.join(timeout_s=0.0001)
            else:
                client = _join(wire)
                for seq in itertools.count(1):
                    left -= _exchange(rng, wire, client, seq)
                    outcomes["exchanged"] += 1
                    if left <= 0:
                        break
        except SereneError as error:
            outcomes[type(error).__name__] += 1
        finally:
            wire.close()
    return outcomes


def _exchange(rng: random.Random, wire: SocketPair, client: Client, seq: int) -> int:
    """One exchange, in which the genuine answers come after mutated ones, mostly in the same batch. Returns the number
    of mutated ones."""
    sent = rng.randrange(1, 30) if rng.random() < 0.9 else rng.randrange(BATCH, BATCH + 20)
    for _ in range(sent):
        wire.switch.send(hostile(rng))
    values = np.zeros((SLOTS, LANES), np.int32)
    for answer in push_payloads(values, op=Op.ANSWER, session=SESSION, epoch=1, seq=seq, read_mode=1):
        wire.switch.send(answer.tobytes())
    client.exchange(np.ones(VALUES, np.float32))
    while True:
        try:
            wire.switch.recv(MOST_BYTES)
        except BlockingIOError:
            return sent
