"""p4c's own packet tests on the embedded switch: all of them pass.

They need p4c-bm2-ss and a checkout of p4c (P4C_SOURCE); reading the language of the scripts needs neither.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import cast

import pytest

from tests.embedded import bmv2, stf_samples
from tests.embedded.stf import Add, Runner, Send, StfError, StfMismatch, parse
from tests.embedded.stf_embedded import EmbeddedTarget
from tests.suites.apart import Apart
from tests.suites.checkouts import Program

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


def test_stf_names_may_have_any_characters() -> None:
    (given,) = parse('add "ing.#t" 10 "h.f[22:18]":0x08 "h.g & 0x1":1 "ing.act"("x":3)')
    assert (
        isinstance(given, Add)
        and given.table == "ing._t"
        and given.keys == (("h.f[22_18]", "0x08"), ("h.g___0x1", "1"))
    )
    assert given.action.arguments == (("x", "3"),)


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


@pytest.mark.parametrize(("complete", "outcome"), [(False, "pass"), (True, "fail")])
def test_complete_sample_is_run_as_such(tmp_path: Path, complete: bool, outcome: str) -> None:
    script, p4info = tmp_path / "n.stf", tmp_path / "none.txtpb"
    script.write_text(f"packet 1 {FRAME}\n")
    sample = stf_samples.Sample("s", "n", Program(MIRROR, p4info), script, complete)
    assert stf_samples.run_sample(sample, "serene-switch").outcome == outcome


def test_packet_test_is_repeated_while_the_switch_is_not_reached() -> None:
    results = [stf_samples.Result("s", "n", "fail", f"{stf_samples.UNREACHED} bmv2: busy")] * stf_samples.ATTEMPTS
    results[-1:] = [stf_samples.Result("s", "n", "pass"), stf_samples.Result("s", "n", "fail", "once too often")]
    sample = stf_samples.Sample("s", "n", Program(MIRROR), MIRROR)
    apart = cast(Apart, lambda *_: results.pop(0))  # in place of a process that runs the test
    assert stf_samples._attempted(apart, sample, "bmv2").outcome == "pass" and len(results) == 1


@pytest.mark.bmv2
@pytest.mark.skipif(bool(bmv2.why_not()), reason=bmv2.why_not() or "there")
def test_bmv2_that_hangs_fails_the_packet_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its parser has a loop that takes nothing from the packet, which BMv2 never leaves."""
    program = json.loads(MIRROR.read_bytes())
    (state,) = program["parsers"][0]["parse_states"]
    state["parser_ops"], state["transitions"][0]["next_state"] = [], state["name"]
    built, p4info, script = tmp_path / "loop.json", tmp_path / "loop.txtpb", tmp_path / "loop.stf"
    built.write_text(json.dumps(program))
    p4info.write_text("")
    script.write_text(f"packet 1 {FRAME}\n")
    monkeypatch.setattr(bmv2, "HANGS_S", 1.0)
    result = stf_samples.run_sample(stf_samples.Sample("s", "loop", Program(built, p4info), script), "bmv2")
    assert (result.outcome, result.reason) == ("fail", "bmv2 hangs")
