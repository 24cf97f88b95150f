"""The tests of the v1model program, run on the Tofino program."""

from __future__ import annotations

import numpy as np
import pytest

from serene.wire import ENCAPSULATION_BYTES, HEADER
from tests.dataplane.test_admission import *  # noqa: F403
from tests.dataplane.test_forwarding import *  # noqa: F403
from tests.dataplane.test_protocol import *  # noqa: F403
from tests.tofino.p4text import Module
from tests.tofino.plane import WideTofinoDataPlane

# What differs, as docs/tofino.md has it: lanes beyond the 32 (test_agreement.py compares values), one more nudge for
# the packet that opens an epoch at a slot, and the number of lanes in a WELCOME.
del test_bsp_answers_everyone_when_the_last_has_come  # noqa: F821
del test_a_swap_nudges_those_who_wait_and_lets_old_packets_go  # noqa: F821
del test_hello_is_answered_with_the_membership  # noqa: F821


@pytest.fixture
def plane(module: Module) -> WideTofinoDataPlane:
    return WideTofinoDataPlane(module)


def test_hello_is_answered_with_the_size_of_this_program(plane: WideTofinoDataPlane) -> None:
    plane.start_job(BSP(), slots=4)  # noqa: F405
    ((port, reply),) = plane.send(2, frame(request(Op.HELLO, 1, session=0), 1))  # noqa: F405
    assert port == 2
    header = np.frombuffer(reply[ENCAPSULATION_BYTES:], HEADER, 1)[0]
    assert (header["op"], header["session"], header["epoch"], header["quorum"]) == (Op.WELCOME, 7, 1, 3)  # noqa: F405
    assert struct.unpack("!IIIHBB", reply[-16:]) == (1280, 4, 2**20, plane.lanes, 3, 0)  # noqa: F405
