"""Packet traces agree with the packets, and a switch that does not trace has no code for them."""

from __future__ import annotations

import contextlib
import json
import random
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serene.embedded import ControlError, Exact, MeterRates, Switch, load_program
from serene.embedded.codegen.generate import generate
from serene.embedded.engine import RUNTIME
from serene.embedded.trace.proto import messages
from serene.embedded.trace.steps import Step
from serene.embedded.trace.text import text
from serene.native import compile_source
from serene.program import Program
from serene.wire import Op
from tests.embedded import small
from tests.embedded.p4rt_probe import JSON, SOURCE, Probe
from tests.embedded.packets import shapes, trial
from tests.embedded.sanitizers import PROGRAMS
from tests.embedded.serene_job import SESSION, seeds, start_job
from tests.embedded.stf import Target
from tests.embedded.stf_embedded import EmbeddedTarget
from tests.embedded.trace_witness import Witness
from tests.frames import frame, request
from tests.suites.checkouts import QUICK

PACKETS = 120


def watch(program: Path, prepare: Callable[[Target], None], packets: Sequence[tuple[int, bytes]]) -> Witness:
    json = program.read_bytes()
    with (
        contextlib.closing(EmbeddedTarget(json, QUICK)) as twin,
        contextlib.closing(Witness(json, twin, QUICK)) as witness,
    ):
        for target in (witness, twin):
            prepare(target)
        for port, packet in packets:
            witness.send(port, packet)
        witness.check_state()
        return witness


def test_serene_traces_agree_with_the_packets() -> None:
    program = Program.load("serene")
    given = seeds(program.lanes)
    witness = watch(program.config_path, start_job, [*given, *trial(random.Random(1), given, PACKETS)])
    assert min(witness.seen[kind] for kind in ("register read", "register write", "copies", "drop", "output")) > 5


def test_shape_traces_agree_with_the_packets() -> None:
    path, _ = PROGRAMS["shapes"]
    witness = watch(path, lambda target: None, trial(random.Random(1), shapes(), PACKETS))
    assert witness.seen["header"] > PACKETS and witness.seen["parser error"] > 5


# -- a trace's contents ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def probe() -> Switch:
    return Switch.load(JSON)


def traced(switch: Switch, **fields: int) -> Step:
    return switch.process(1, Probe(**fields).frame(), trace=True)[1]


def test_trace_shows_table_hits_and_action_arguments(probe: Switch) -> None:
    trace = traced(probe, a=1, b=2, port=3)
    tables = {step.name.rpartition(".")[2]: step.values for step in trace.all("table")}
    assert tables["by_exact"] == {"hit": False, "key": {"a": 1, "b": 2}}
    assert tables["by_constant"] == {
        "hit": True, "key": {"b": 2}, "entry": 1, "match": {"b": "0x2 &&& 0xfffe"}, "priority": 2
    }  # fmt: skip
    actions = {step.name.rpartition(".")[2]: step.values for step in trace.all("action")}
    assert actions["found_constant"] == {"value": 12}
    (write,) = trace.all("register write")
    assert write.values["value"] == probe.register_read(write.name, int(str(write.values["index"])))
    assert "table ProbeIngress.by_constant {b=2}: hit entry 1 {b=0x2 &&& 0xfffe}, priority 2" in text(trace)
    assert json.loads(json.dumps(trace.json()))["steps"][0]["kind"] == "ingress"


def test_trace_shows_digest_name_and_values(probe: Switch) -> None:
    trace = traced(probe, b=9, digests=1)
    (digest,) = trace.all("digest")
    assert digest.name == "learned_t"
    assert digest.values == {"values": [SOURCE, 1, 9]}
    assert "digest learned_t: 0x20000000001, 1, 9" in text(trace)
    assert not list(traced(probe, b=9).all("digest"))


def test_trace_shows_table_meter_colour(probe: Switch) -> None:
    """The entry's meter lets one packet an hour pass."""
    handle = probe.table_add("ProbeIngress.by_metered", [Exact(1)], "ProbeIngress.found_metered", [7])
    probe.meter_set("ProbeIngress.entry_rate", handle, MeterRates(1 / 3600, 1, 1 / 3600, 1))
    traces = [traced(probe, a=a) for a in (1, 1, 2)]
    own = [[step for step in trace.all("meter") if step.name == "ProbeIngress.entry_rate"] for trace in traces]
    assert [[step.values["colour"] for step in steps] for steps in own] == [["green"], ["red"], []]
    assert f"meter ProbeIngress.entry_rate[{handle}] is red" in text(traces[1])


MIRROR = JSON.with_name("mirror.json")
DROPPED_COPY = "marked to drop by MirrorEgress.drop_copy in egress"


@pytest.mark.parametrize(
    ("program", "packet", "kind", "names"),
    [
        (JSON, Probe(group=77).frame(), "drop", ["its multicast group has no replicas"]),
        (JSON, Probe(port=511).frame(), "drop", ["its egress port is the drop port after ingress"]),
        (JSON, Probe().frame()[:20], "parser error", ["PacketTooShort"]),
        (MIRROR, bytes(13) + b"\1", "drop", [DROPPED_COPY, "marked to drop by MirrorIngress.drop_original in ingress"]),
        (MIRROR, bytes(13) + b"\2", "drop", [DROPPED_COPY, "marked to drop by MirrorEgress.drop_original in egress"]),
        (MIRROR, bytes(6) + b"\2\0\0\0\0\1\0\3", "log", [f"type 3 from {0x020000000001}, 7", "nothing else {}"]),
    ],
)
def test_trace_names_drop_reasons_errors_and_log_texts(
    program: Path, packet: bytes, kind: str, names: list[str]
) -> None:
    """A dropped copy does not hide why the packet itself was dropped."""
    with Switch.load(program) as switch:
        switch.clone_session_set(5, [(4, 0)])
        _, trace = switch.process(1, packet, trace=True)
    assert [step.name for step in trace.all(kind)] == names
    assert all(name in text(trace) for name in names)


def test_trace_shows_each_copy_as_a_message() -> None:
    """A clone is parsed before its egress; a recirculated packet has passed the deparser."""
    with Switch.load(MIRROR) as switch:
        switch.clone_session_set(5, [(4, 0)])
        _, trace = switch.process(1, bytes(12) + b"\0\1", trace=True)
    clone, original = messages(trace, 7)
    assert [stages(clone), stages(original)] == [["parser", "ingress", "parser", "egress"], ["parser", "ingress"]]
    assert (clone.input.packet_id, clone.input.ingress_port, clone.root.WhichOneof("outcome")) == (7, 1, "drop")
    seen = set()
    with Switch.load(PROGRAMS["shapes"][0], compiler_flags=QUICK) as switch:
        for port, packet in shapes():
            outputs, trace = switch.process(port, packet, trace=True)
            shown = list(messages(trace, 0))
            left = [
                (one.root.transmit.egress_port, one.root.transmit.packet_size)
                for one in shown
                if stages(one)[-1] == "deparser"
            ]
            assert left == [(to, len(data)) for to, data in outputs]
            assert len(shown) == len(left) + len(list(trace.all("drop")))
            again = sum(step.values["type"] == "recirculated" for step in trace.all("ingress"))
            assert all(stages(one).count("deparser") == 1 + again for one in shown if stages(one)[-1] == "deparser")
            seen.add(again)
    assert len(seen) > 1


def stages(message: Any) -> list[str]:
    """The names of the stages that were entered, each of which was left next."""
    events = [event.pipeline_stage for event in message.root.events]
    assert [event.direction for event in events] == [1, 2] * (len(events) // 2)
    return [event.stage_name for event in events[::2]]


def test_trace_shows_negative_log_msg_values() -> None:
    program = json.loads(MIRROR.read_bytes())
    (scalars,) = [one for one in program["header_types"] if one["name"] == "scalars_0"]
    for field in scalars["fields"]:  # as of int<16>, int<48> and int<8>
        field[2] = True
    with small.load(program) as switch:
        for source, type_, text in (
            (2**48 - 5, 3, "type 3 from -5, 7"),
            (2**47 - 1, 2**15, f"type -32768 from {2**47 - 1}, 7"),
        ):
            packet = bytes(6) + source.to_bytes(6, "big") + type_.to_bytes(2, "big")
            _, trace = switch.process(1, packet, trace=True)
            assert next(iter(trace.all("log"))).name == text


def test_process_many_is_traced_only_on_request() -> None:
    with contextlib.closing(Switch.load(JSON)) as switch:
        packets = [(1, Probe(a=a, port=2).frame()) for a in (1, 2, 3)]
        plain = switch.process_many(packets)
        switch.start_tracing()
        assert switch.process_many(packets) == plain
        assert not list(switch.read_traces(0)[0])
        with switch.processing_traced():
            assert switch.process_many(packets) == plain
        assert len(list(switch.read_traces(0)[0])) == 3
        switch.stop_tracing()
        assert switch.process_many(packets) == plain


def test_overlong_packet_trace_is_truncated_and_marked() -> None:
    """Whatever a program does, a trace is bounded: 30000 replicas do not fit."""
    with contextlib.closing(Switch.load(JSON)) as switch:
        switch.multicast_set(5, [(3, instance) for instance in range(30000)])
        outputs, trace = switch.process(1, Probe(group=5).frame(), trace=True)
        assert len(outputs) == 30000 and trace.values["cut"] is True
        assert 100 < len(trace.outputs) < 30000
        assert text(trace).endswith("... (the trace is truncated)")
        assert len(switch.process(1, Probe(port=3).frame())) == 1
        assert "cut" not in traced(switch, port=3).values


def test_packets_beyond_the_trace_buffer_are_counted_as_lost() -> None:
    """Their traces are lost as a whole; no trace is partial."""
    with Switch.load(JSON) as switch:
        switch.start_tracing()
        packets = [(1, Probe(a=1, port=3).frame())] * 8000
        untraced, switch._lib = switch._lib, switch._tracer()
        switch.process_many(packets)
        switch._lib = untraced
        steps, lost = switch.read_traces(0)
        traces = list(steps)
    assert lost > 0 and len(traces) + lost == len(packets)
    assert all("cut" not in trace.values and len(trace.outputs) == 1 for trace in traces)


def test_trace_page_example_matches_printed_trace() -> None:
    """docs/trace.md shows a PUSH that completes a round under BSP; only the time differs."""
    program = Program.load("serene")
    with contextlib.closing(EmbeddedTarget(program.config_path.read_bytes(), QUICK)) as target:
        start_job(target, staleness=0)
        for worker in range(3):
            values = np.full(program.lanes, worker + 1)
            payload = request(
                Op.PUSH, worker, values=values, lanes=program.lanes, session=SESSION, round=0, seq=1, slot=0
            )
            _, trace = target.switch.process(worker + 1, frame(payload, worker), trace=True)
    page = (Path(__file__).parents[2] / "docs" / "trace.md").read_text()
    shown = next(block for block in re.findall(r"```\n(packet on port 3.*?)```", page, re.S)).splitlines()
    printed = text(trace).splitlines()
    assert shown[1:] == printed[1:]


def test_refused_packet_leaves_no_trace() -> None:
    with Switch.load(JSON.read_bytes()) as switch:
        for port, size, words in ((512, 0, "0 to 511"), (1, 70_000, "a packet of 70000 bytes")):
            with pytest.raises(ControlError, match=words):
                switch.process(port, bytes(size), trace=True)
        _, trace = switch.process(1, Probe(a=1).frame(), trace=True)
        assert trace.kind == "packet" and switch.process(1, Probe(a=1).frame()) is not None


# -- what it costs --------------------------------------------------------------------------------------------


def test_program_that_is_not_traced_has_no_trace_code() -> None:
    source = generate(load_program(JSON))
    plain, with_trace = compile_source(source, (), RUNTIME), compile_source(source, ("-DTRACE",), RUNTIME)

    def functions(library: Path) -> str:
        return subprocess.run(["nm", str(library)], capture_output=True, text=True, check=True).stdout

    assert "switch_trace" in functions(with_trace)
    assert "trace" not in functions(plain) and "capture" not in functions(plain)
