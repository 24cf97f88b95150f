"""p4c's own packet tests on the embedded switch: all of them pass.

They need p4c-bm2-ss and a checkout of p4c (P4C_SOURCE); reading the language of the scripts needs neither.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from tests.embedded import stf_samples
from tests.embedded.stf import Add, Runner, Send, StfError, StfMismatch, parse
from tests.embedded.stf_embedded import EmbeddedTarget

MIRROR = Path(__file__).parent / "programs" / "mirror.json"  # without a session, it sends to port 2
FRAME = "0000000000010000000000020000"


def test_every_p4c_packet_test_passes() -> None:
    p4c = os.environ.get("P4C_SOURCE")
    missing = stf_samples.why_not(p4c)
    if missing or p4c is None:
        pytest.skip(missing)
    results = stf_samples.run_all(stf_samples.samples(p4c))
    assert results and not [result for result in results if result.outcome not in ("pass", "not v1model")]


def test_stf_script_is_parsed() -> None:
    given, packet = parse("add ing.t 10 h.f:0x1* act(x:3) = e\npacket 1 00 0a ff  # a remark\n")
    assert isinstance(given, Add) and given.table == "ing.t"
    assert packet == Send(1, bytes([0, 10, 255]))


@pytest.mark.parametrize("line", ["frobnicate 1 2", "packet one 00"])
def test_bad_stf_line_is_refused(line: str) -> None:
    with pytest.raises(StfError):
        parse(line)


@pytest.mark.parametrize(
    ("expected", "complete", "passes"),
    [
        ("", False, True),
        ("", True, False),
        (f"expect 2 {FRAME}$", True, True),
        ("expect 2", True, True),
        (f"expect 3 {FRAME}$", True, False),
    ],
)
def test_complete_stf_script_forbids_packets_at_other_ports(expected: str, complete: bool, passes: bool) -> None:
    statements = parse(f"packet 1 {FRAME}\n{expected}\n")
    with contextlib.closing(EmbeddedTarget(MIRROR.read_bytes())) as target:
        if passes:
            Runner(target, complete).run(statements)
        else:
            with pytest.raises(StfMismatch):
                Runner(target, complete).run(statements)
