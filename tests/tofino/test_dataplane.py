"""The tests of the v1model program, run on the Tofino program."""

from __future__ import annotations

import numpy as np
import pytest

from serene.fixedpoint import DEFAULT_LIMIT, DEFAULT_SCALE
from serene.strategy import BSP
from serene.wire import ENCAPSULATION_BYTES, HEADER, MEMBERSHIP, Op
from tests.dataplane.test_admission import *  # noqa: F403
from tests.dataplane.test_forwarding import *  # noqa: F403
from tests.dataplane.test_protocol import *  # type: ignore[assignment] # noqa: F403
from tests.frames import Said, altered, frame, request, said
from tests.tofino.builds import Build
from tests.tofino.plane import TofinoDataPlane, WideTofinoDataPlane

# What differs, as docs/tofino.md has it: lanes beyond the 32 (test_agreement.py compares values), one more nudge for
# the packet that opens an epoch at a slot, the number of lanes in a WELCOME, and whose checksum is verified.
del test_bsp_answers_all_workers_when_the_round_completes  # noqa: F821
del test_swap_nudges_blocked_workers_and_accepts_old_epoch  # noqa: F821
del test_hello_is_answered_with_the_membership  # noqa: F821
del test_too_short_packets_are_not_verified  # noqa: F821


@pytest.fixture
def plane(build: Build) -> WideTofinoDataPlane:
    return WideTofinoDataPlane(build)


def test_hello_is_answered_with_the_tofino_programs_size(plane: WideTofinoDataPlane) -> None:
    plane.start_job(BSP(), slots=4)
    ((port, reply),) = plane.send(2, frame(request(Op.HELLO, 1, session=0), 1))
    assert port == 2
    header = np.frombuffer(reply, HEADER, 1, ENCAPSULATION_BYTES)[0]
    told = ("op", "worker", "session", "epoch", "quorum", "members", "incarnation")
    assert [int(header[name]) for name in told] == [Op.WELCOME, 1, 7, 1, 3, 3, 1]
    (body,) = np.frombuffer(reply, MEMBERSHIP, 1, ENCAPSULATION_BYTES + HEADER.itemsize).tolist()
    limit = round(DEFAULT_LIMIT * DEFAULT_SCALE)
    assert body == (1280, 4, DEFAULT_SCALE, limit, plane.lanes, 3, 0)
    assert len(reply) == ENCAPSULATION_BYTES + HEADER.itemsize + MEMBERSHIP.itemsize


@pytest.mark.parametrize("length", [0, 39, 40])
def test_damaged_ip_header_is_dropped_at_any_length(plane: WideTofinoDataPlane, length: int) -> None:
    plane.start_job(BSP())
    short = frame(request(Op.PUSH, 0)[:length], 0)
    assert plane.send(1, altered(short, 22, bytes([short[22] ^ 1]))) == []
    assert plane.drops() == {"bad_checksum": 1}


def test_old_session_packet_clears_only_the_slots_epoch(plane: WideTofinoDataPlane) -> None:
    """Session, sums and waiting workers stay; the next packet of the newer session begins the epoch again."""

    def push(worker: int, **fields: int) -> list[Said]:
        values = np.full(plane.lanes, worker + 1)
        data = frame(request(Op.PUSH, worker, values=values, lanes=plane.lanes, **fields), worker)
        return [said(*item) for item in TofinoDataPlane.send(plane, worker + 1, data)]

    def heard(answers: list[Said]) -> list[tuple[Op, int]]:
        return [(item.op, item.worker) for item in answers]

    plane.start_job(BSP())
    assert heard(push(0)) == [(Op.NUDGE, 0)]
    assert push(0) == []
    plane.swap(BSP(), 1, session=5)
    assert push(1, session=5) == []
    assert plane.drops() == {"old_session": 1}
    plane.swap(BSP(), 1)
    assert heard(push(1)) == [(Op.NUDGE, 0), (Op.NUDGE, 1)]
    assert push(0) == push(1) == []
    assert [(item.worker, item.total, item.values[0]) for item in push(2)] == [(n, 3, 1 + 2 + 3) for n in range(3)]
