"""p4c's own packet tests on the embedded switch: all of them pass.

They need p4c-bm2-ss and a checkout of p4c (P4C_SOURCE); reading the language of the scripts needs neither.
"""

from __future__ import annotations

import os

import pytest

from tests.embedded import stf_samples
from tests.embedded.stf import Add, Send, StfError, parse


def test_every_p4c_packet_test_passes() -> None:
    p4c = os.environ.get("P4C_SOURCE")
    missing = stf_samples.why_not(p4c)
    if missing or p4c is None:
        pytest.skip(missing)
    results = stf_samples.run_all(p4c)
    assert results and not [result for result in results if result.outcome not in ("pass", "not v1model")]


def test_stf_script_is_parsed() -> None:
    given, packet = parse("add ing.t 10 h.f:0x1* act(x:3) = e\npacket 1 00 0a ff  # a remark\n")
    assert isinstance(given, Add) and given.table == "ing.t"
    assert packet == Send(1, bytes([0, 10, 255]))


@pytest.mark.parametrize("line", ["frobnicate 1 2", "packet one 00"])
def test_bad_stf_line_is_refused(line: str) -> None:
    with pytest.raises(StfError):
        parse(line)
