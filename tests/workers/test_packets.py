"""Packets built by scapy have the same bytes as NumPy's. (A training with them: test_whole_run.py.)"""

from __future__ import annotations

import numpy as np
import pytest

from serene.wire import HEADER, MEMBERSHIP, Op, control_payload, push_payloads
from serene.workers.packets import ScapyPackets
from tests.support.transports import Untroubled, received

RANDOM = np.random.default_rng(5)


class Wire(Untroubled):
    """A transport that records sent payloads, and returns the given ones."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.coming: list[bytes] = []

    def send(self, payloads: np.ndarray) -> None:
        self.sent += [payload.tobytes() for payload in payloads]

    def receive(self, timeout_s: float) -> tuple[np.ndarray, np.ndarray]:
        return received(self.coming)


def header_bytes(op: Op) -> bytes:
    header = np.frombuffer(RANDOM.bytes(HEADER.itemsize), HEADER).copy()
    header["op"] = op
    return bytes(header.tobytes())


def values_bytes(op: Op, lanes: int) -> bytes:
    values = RANDOM.integers(-(2**31), 2**31, (1, lanes)).astype(np.int32)
    return bytes(push_payloads(values, op=op, seq=2**31, total=7)[0].tobytes())


PAYLOADS = [
    *(values_bytes(op, lanes) for op in (Op.PUSH, Op.PULL, Op.ANSWER) for lanes in (320, 896)),
    *(header_bytes(op) + RANDOM.bytes(1280) for op in (Op.PUSH, Op.ANSWER)),
    *(header_bytes(op) + RANDOM.bytes(MEMBERSHIP.itemsize) for op in (Op.HELLO, Op.WELCOME)),
    *(control_payload(op, b'{"step": 3, "text": "\\xc3\\xa4"}') for op in (Op.REPORT, Op.LEAVE, Op.BYE)),
    control_payload(Op.NUDGE),
    header_bytes(Op.ANSWER),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(PAYLOADS)))
def test_scapy_packets_have_the_same_bytes(number: int) -> None:
    payload, wire = PAYLOADS[number], Wire()
    scapy = ScapyPackets(wire)
    scapy.send(np.frombuffer(payload, np.uint8)[None, :])
    assert wire.sent == [payload]
    wire.coming = [payload, b"short", payload]
    rows, lengths = scapy.receive(0)
    assert [row[:length].tobytes() for row, length in zip(rows, lengths, strict=True)] == wire.coming
