"""Admission: every packet that is not admitted is dropped, counted under its reason, and changes no value."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from serene.strategy import ASP, BSP
from serene.wire import ENCAPSULATION_BYTES, HEADER, SWITCH_IP, SWITCH_MAC, Op
from tests.dataplane.conftest import WORKERS, DataPlane
from tests.frames import altered, frame, mac, request, with_ip_checksum

LANES = 320
ONES = np.ones(LANES, np.int32)


def push(**fields: int) -> bytes:
    return request(Op.PUSH, fields.pop("worker", 0), values=ONES, **fields)


def sum_in_slot(plane: DataPlane, worker: int = 0) -> int:
    """Returns the sum that a PULL reads."""
    packets = plane.ask(worker + 1, frame(request(Op.PULL, worker, seq=99), worker))
    assert len(packets) == 1
    return packets[0].values[0]


@pytest.fixture
def running(plane: DataPlane) -> DataPlane:
    """A job with one contribution in slot 0."""
    plane.start_job(ASP())
    assert len(plane.send(1, frame(push(), 0))) == 1
    return plane


def refused(plane: DataPlane, port: int, data: bytes, reason: str) -> None:
    before = plane.drops()
    assert plane.send(port, data) == []
    assert plane.drops() == {**before, reason: before.get(reason, 0) + 1}, "no other reason is counted"
    assert sum_in_slot(plane) == 1


WHOLE = frame(push(seq=2), 0)
PARTS = (len(WHOLE) - 1, ENCAPSULATION_BYTES + 40, ENCAPSULATION_BYTES + 8, ENCAPSULATION_BYTES)
OF_THE_SWITCH = (0x00, 0x06, 0x7F, Op.WELCOME, Op.ANSWER, Op.NUDGE, Op.REFUSED, Op.BYE, 0xFF)
OUT_OF_RANGE = [(8, 0), (255, 0), (0, 32), (0, 255)]  # job and worker
# By reason: the port, and the frame that is dropped there.
REFUSED: dict[str, list[tuple[int, bytes]]] = {
    "stranger": [
        (2, WHOLE),
        (1, frame(push(seq=2), 0, source_mac=mac(1))),
        (1, frame(push(seq=2), 0, source_ip="10.0.0.77")),
        (1, frame(push(seq=2), 0, udp_port=40001)),
        (1, frame(push(seq=2, worker=1), 0)),
        (1, frame(push(seq=2, job=3), 0)),
        (3, frame(request(Op.REPORT, 1) + b"{}", 2)),
        *((1, frame(altered(push(seq=2), 2, bytes(ids)), 0)) for ids in OUT_OF_RANGE),
    ],
    "wrong_session": [(1, frame(push(seq=2, session=session), 0)) for session in (6, 8, 0)],
    "wrong_slot": [
        (1, frame(request(op, 0, seq=2, slot=slot), 0))
        for op in (Op.PUSH, Op.PULL)
        for slot in (4, 5, 3000, 8191, 2**32 - 1)
    ],
    "malformed": [
        *((1, frame(push(seq=2)[:length], 0)) for length in (0, 1, 39, 40, 41, 80, 1319)),
        *((1, WHOLE[:length]) for length in PARTS),  # shorter than its headers say
        (1, frame(push(seq=2) + b"\0", 0)),
        (1, altered(WHOLE, 38, struct.pack("!H", 500))),  # UDP's length
        (1, with_ip_checksum(altered(WHOLE, 16, struct.pack("!H", 500)))),
        *((1, frame(altered(push(seq=2), 1, bytes([op])), 0)) for op in OF_THE_SWITCH),
        *((1, frame(altered(push(seq=2), 0, bytes([version])), 0)) for version in (0, 1, 3, 255)),
    ],
    "bad_checksum": [(1, altered(WHOLE, 22, bytes([WHOLE[22] ^ 1])))],
}


@pytest.mark.parametrize("reason", REFUSED)
def test_refused_packet_is_counted_by_reason_and_changes_nothing(running: DataPlane, reason: str) -> None:
    for port, data in REFUSED[reason]:
        refused(running, port, data, reason)
    assert running.punted() is None


def test_push_to_a_job_without_policy_is_dropped(plane: DataPlane) -> None:
    plane.admit(0)
    assert plane.send(1, frame(push(), 0)) == []
    assert plane.drops() == {"no_policy": 1}


@pytest.mark.parametrize(("length", "reason"), [(0, "malformed"), (39, "malformed"), (40, "bad_checksum")])
def test_too_short_packets_are_not_verified(running: DataPlane, length: int, reason: str) -> None:
    """Only Serene's packets are verified. One that is too short for their header is none."""
    short = frame(push(seq=2)[:length], 0)
    refused(running, 1, altered(short, 22, bytes([short[22] ^ 1])), reason)


def test_push_of_an_impossible_round_is_dropped(plane: DataPlane) -> None:
    plane.start_job(BSP())
    assert plane.send(1, frame(push(), 0)) == []
    for round_ in (1, 16, 2**32 - 1):
        refused(plane, 2, frame(push(worker=1, round=round_), 1), "wrong_round")
    # Well-behaved workers continue undisturbed.
    assert plane.send(2, frame(push(worker=1), 1)) == []
    assert [item.values[0] for item in plane.ask(3, frame(push(worker=2), 2))] == [3, 3, 3]


def test_ip_fragment_is_forwarded_and_not_aggregated(running: DataPlane) -> None:
    fragment = with_ip_checksum(altered(frame(push(seq=2), 0), 20, b"\x20\x00"))
    assert [port for port, _ in running.send(1, fragment)] == [2, 3]
    assert running.drops() == {}
    assert sum_in_slot(running) == 1


def test_hello_report_and_leave_of_any_length_are_punted(running: DataPlane) -> None:
    """A HELLO also if its ids are out of range: the controller notifies the worker of what is wrong."""
    ids = [(0, 1, 1), *((job, worker, 0) for job, worker in OUT_OF_RANGE)]
    hellos = [(sender, frame(request(Op.HELLO, worker, job=job, incarnation=9), sender)) for job, worker, sender in ids]
    lengths = (0, 1, 2, 3, 254, 255, 256, 1000)
    reports = [(2, frame(request(op, 2) + b"x" * length, 2)) for op in (Op.REPORT, Op.LEAVE) for length in lengths]
    for sender, data in (*hellos, *reports):
        assert running.send(sender + 1, data) == []
        assert running.punted() == (sender + 1, data)
    assert running.drops() == {}


def test_packets_from_the_switch_have_valid_ip_checksums(running: DataPlane) -> None:
    """An answer, a WELCOME, a release and a NUDGE: lengths and addresses differ from those of the request."""
    written = running.send(1, frame(push(seq=2), 0)) + running.send(2, frame(request(Op.HELLO, 1, session=0), 1))
    running.swap(BSP(), 2)
    for worker in range(WORKERS):
        written += running.send(worker + 1, frame(push(worker=worker, epoch=2, seq=3), worker))
    running.send(1, frame(push(epoch=2, round=1, seq=4), 0))
    running.swap(BSP(), 3)
    written += running.send(2, frame(push(worker=1, epoch=3, seq=4), 1))
    ops = [data[ENCAPSULATION_BYTES + 1] for _, data in written]
    assert {Op.ANSWER, Op.WELCOME, Op.NUDGE} <= set(ops) and ops.count(Op.ANSWER) == 4
    assert [with_ip_checksum(data) for _, data in written] == [data for _, data in written]


def test_answers_carry_the_addresses_of_both_ends(running: DataPlane) -> None:
    ((port, reply),) = running.send(3, frame(push(worker=2), 2))
    assert port == 3
    assert reply[:12] == bytes.fromhex((mac(2) + SWITCH_MAC).replace(":", ""))
    assert reply[26:34] == bytes(int(part) for part in (SWITCH_IP + ".10.0.0.3").split("."))
    assert with_ip_checksum(reply) == reply
    assert struct.unpack("!HHHH", reply[34:42]) == (24142, 40000, 8 + HEADER.itemsize + 4 * LANES, 0)
