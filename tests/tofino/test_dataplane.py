"""The tests of the v1model program, run on the Tofino program."""

from __future__ import annotations

import numpy as np
import pytest

from serene.strategy import BSP
from serene.wire import Op
from tests.dataplane.test_admission import *  # noqa: F403
from tests.dataplane.test_forwarding import *  # noqa: F403
from tests.dataplane.test_protocol import *  # type: ignore[assignment] # noqa: F403
from tests.dataplane.test_protocol import test_packets_are_answered_by_each_rule as answered_by_rule
from tests.frames import Packet, altered, dissect, frame, request
from tests.tofino.plane import Build, TofinoDataPlane, WideTofinoDataPlane

# What differs, as docs/tofino.md has it: one more nudge for the packet that opens an epoch at a slot, and the packets
# whose checksum is verified.
del test_packets_are_answered_by_each_rule, test_too_short_packets_are_not_verified  # noqa: F821


@pytest.fixture
def plane(build: Build) -> WideTofinoDataPlane:
    return WideTofinoDataPlane(build)


@pytest.mark.parametrize("rule", [rule for rule in RULES if "nudges" not in rule])  # noqa: F405
def test_packets_are_answered_by_each_rule_without_nudges(plane: WideTofinoDataPlane, rule: str) -> None:
    answered_by_rule(plane, rule)


@pytest.mark.parametrize("length", [0, 39, 40])
def test_damaged_ip_header_is_dropped_at_any_length(plane: WideTofinoDataPlane, length: int) -> None:
    plane.start_job(BSP())
    short = frame(request(Op.PUSH, 0)[:length], 0)
    assert plane.send(1, altered(short, 22, bytes([short[22] ^ 1]))) == []
    assert plane.drops() == {"bad_checksum": 1}


def test_old_session_packet_clears_only_the_slots_epoch(plane: WideTofinoDataPlane) -> None:
    """Session, sums and waiting workers stay; the next packet of the newer session begins the epoch again."""

    def push(worker: int, **fields: int) -> list[Packet]:
        values = np.full(plane.lanes, worker + 1)
        data = frame(request(Op.PUSH, worker, values=values, lanes=plane.lanes, **fields), worker)
        return [dissect(*item) for item in TofinoDataPlane.send(plane, worker + 1, data)]

    def heard(answers: list[Packet]) -> list[tuple[Op, int]]:
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
