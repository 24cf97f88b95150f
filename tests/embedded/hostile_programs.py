"""Programs that once overran the switch's memory or never ended, and packets for them.

To be run with sanitizers loaded: ``python -m tests.embedded.hostile_programs`` plays each in a process of its own and
prints how that ended. The functions check what comes out, but mainly the process has to end, without a finding.
"""

from __future__ import annotations

import os
import random
import signal
import traceback
from collections.abc import Callable

from serene.embedded import Switch
from tests.embedded import small
from tests.embedded.sanitizers import FLAGS
from tests.embedded.small import Node, constant, field, operation, primitive

DEADLINE_S = 120  # of a program that would run for ever, or for years
PACKETS = [(1, bytes([n % 256]) + random.Random(n).randbytes(n % 700)) for n in range(200)]


def run(made: Node, packets: list[tuple[int, bytes]], *, group: int = 0) -> list[list[tuple[int, bytes]]]:
    with Switch.load(small.encoded(made), compiler_flags=FLAGS) as switch:
        if group:
            switch.multicast_set(1, [(port % 500, port) for port in range(group)])
            switch.clone_session_set(1, [(port % 500, port) for port in range(group)])
        sent = switch.process_many(packets)
        counts = switch.port_counts(1)
        assert counts.dropped <= counts.received, "a packet is dropped once, however many copies it had"
        return sent


def a_large_varbit_header_that_is_not_there() -> None:
    """Copies, hashes and writes the header's field, in a packet's first pass and in copies of the packet."""
    varbit = {"type": "header", "value": "big"}
    calculation = {"name": "c", "id": 0, "algo": "crc32", "input": [field("big", "x")]}
    steps = [
        primitive("assign_VL", field("small", "x"), field("big", "x")),
        primitive("modify_field_with_hash_based_offset", field("h", "a"), constant(0),
                  {"type": "calculation", "value": "c"}, constant(256)),
        primitive("add_header", {"type": "header", "value": "small"}),
        primitive("assign_header", varbit, varbit),
        primitive("assign", field("standard_metadata", "mcast_grp"), constant(1)),
    ]  # fmt: skip
    made = small.program(steps, calculations=[calculation])
    small.with_header(made, "big", [["b", 8], ["x", "*"]], max_length=2000)
    small.with_header(made, "small", [["b", 8], ["x", "*"]], max_length=60)
    egress = small.table("e", 1)
    made["actions"].append({
        "name": "egress", "id": 1, "runtime_data": [],
        "primitives": [primitive("assign_VL", field("small", "x"), field("big", "x"))],
    })  # fmt: skip
    made["pipelines"][1].update(init_table="e", tables=[egress])
    made["deparsers"][0]["order"] = ["h", "small", "big"]
    extract_big = {"op": "extract_VL", "parameters": [{"type": "regular", "value": "big"}, constant(8 * 600)]}
    small.with_more_after_seven(made, extract_big)
    for sent in run(made, PACKETS, group=3):
        assert len(sent) == 3 and len({packet for _, packet in sent}) == 1


def a_header_emitted_often() -> None:
    made = small.program([small.send_to(1), primitive("add_header", {"type": "header", "value": "big"})])
    small.with_header(made, "big", [[f"x{n}", 8000] for n in range(20)])
    made["deparsers"][0]["order"] = ["h"] + ["big"] * 12
    for (_, packet), (_, given) in zip((sent[0] for sent in run(made, PACKETS)), PACKETS, strict=True):
        assert len(packet) == len(given) + 12 * 20 * 1000


def a_calculation_on_a_wide_expression() -> None:
    wide = operation("<<", operation("|", field("big", "x"), constant(1)), constant(4000))
    calculation = {"name": "c", "id": 0, "algo": "csum16", "input": [wide, field("h", "a")]}
    steps = [
        primitive("modify_field_with_hash_based_offset", field("h", "a"), constant(0),
                  {"type": "calculation", "value": "c"}, constant(0)),
        small.send_to(1),
    ]  # fmt: skip
    made = small.program(steps, calculations=[calculation])
    small.with_header(made, "big", [["x", 12000]])
    assert all(len(sent) == 1 for sent in run(made, PACKETS))


def a_parser_that_goes_round() -> None:
    made = small.program([small.send_to(1)])
    made["parsers"][0]["parse_states"] = [small.state("start", to="again"), small.state("again", to="start")]
    assert len(run(made, PACKETS[:5])) == 5


def an_action_that_goes_round() -> None:
    made = small.program([small.send_to(1), primitive("_jump", constant(0))])
    assert len(run(made, PACKETS[:5])) == 5


def a_resubmission_without_end() -> None:
    made = small.program([small.send_to(1), primitive("resubmit", constant(0))])
    for number in range(5):  # packets of 200 KB, of which sixty-four were once on the stack
        small.with_header(made, f"big{number}", [[f"x{n}", 8000] for n in range(40)])
    assert run(made, PACKETS[:5]) == [[]] * 5


def copies_of_copies_of_copies() -> None:
    """Sends each of five hundred copies back to where five hundred are made, and clones it on the way."""
    steps = [
        primitive("assign", field("standard_metadata", "mcast_grp"), constant(1)),
        primitive("clone_ingress_pkt_to_egress", constant(1)),
    ]
    made = small.program(steps)
    again = [primitive("recirculate", constant(0)), primitive("clone_egress_pkt_to_egress", constant(1))]
    made["actions"].append({"name": "again", "id": 1, "runtime_data": [], "primitives": again})
    made["pipelines"][1].update(init_table="e", tables=[small.table("e", 1)])
    assert run(made, PACKETS[:3], group=500) == [[]] * 3


def indices_and_divisors_out_of_range() -> None:
    register = {"type": "register_array", "value": "r"}
    steps = [
        primitive("register_write", register, field("big", "x"), constant(255)),
        primitive("register_read", field("h", "a"), register, operation("+", field("big", "x"), constant(7))),
        primitive("count", {"type": "counter_array", "value": "c"}, field("big", "x")),
        primitive("execute_meter", {"type": "meter_array", "value": "m"}, field("big", "x"), field("h", "a")),
        primitive(
            "assign", field("h", "a"), operation("/", field("h", "a"), operation("%", field("h", "a"), constant(0)))
        ),
        small.send_to(1),
    ]
    made = small.program(
        steps,
        register_arrays=[{"name": "r", "id": 0, "size": 4, "bitwidth": 8}],
        counter_arrays=[{"name": "c", "id": 0, "size": 4, "is_direct": False}],
        meter_arrays=[{"name": "m", "id": 0, "size": 4, "is_direct": False, "type": "bytes"}],
    )
    small.with_header(made, "big", [["x", 64]])
    made["parsers"][0]["parse_states"] = [small.state("start", small.extract("h"), small.extract("big"))]
    packets = [(1, bytes([n]) + number.to_bytes(8, "big")) for n in (0, 9) for number in (0, 3, 4, 2**32, 2**64 - 1)]
    assert all(len(sent) == 1 for sent in run(made, packets))


def frames_longer_than_any() -> None:
    made = small.program([small.send_to(1)])
    assert [len(sent) for sent in run(made, [(1, bytes(65536)), (1, b"\0")])] == [1, 1]


PROGRAMS: dict[str, Callable[[], None]] = {
    each.__name__: each
    for each in (
        a_large_varbit_header_that_is_not_there,
        a_header_emitted_often,
        a_calculation_on_a_wide_expression,
        a_parser_that_goes_round,
        an_action_that_goes_round,
        a_resubmission_without_end,
        copies_of_copies_of_copies,
        indices_and_divisors_out_of_range,
        frames_longer_than_any,
    )
}


def played(program: Callable[[], None]) -> int:
    """The exit status, or the negative signal, of a process that plays one."""
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    signal.alarm(DEADLINE_S)
    status = 1
    try:
        program()
        status = 0
    except BaseException:
        traceback.print_exc()
    os._exit(status)


if __name__ == "__main__":
    for name, program in PROGRAMS.items():
        print(f"{name}: {played(program)}", flush=True)
