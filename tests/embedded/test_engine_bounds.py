"""Programs that no compiler writes are refused with their place, or bounded in memory and time for any input."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Callable

import pytest

from serene.embedded import NotBmv2Json, UnsupportedProgram, load_program
from serene.embedded.codegen.generate import generate
from tests.embedded import sanitizers, small
from tests.embedded.hostile_programs import PROGRAMS
from tests.embedded.small import Node, constant, field, operation, primitive


@pytest.mark.skipif(not sanitizers.sanitizer_libraries(), reason="needs the C compiler's sanitizer libraries")
def test_hostile_programs_are_bounded_in_memory_and_time() -> None:
    """Under sanitizers, in processes of their own, because a failure would end the process."""
    command = [sys.executable, "-m", "tests.embedded.hostile_programs"]
    run = subprocess.run(
        command, capture_output=True, text=True, cwd=sanitizers.ROOT, env=sanitizers.environment(), check=False
    )
    assert run.stdout.splitlines() == [f"{name}: 0" for name in PROGRAMS], run.stderr[-3000:]


def nested(op: str, depth: int) -> Node:
    node = field("h", "a")
    for _ in range(depth):
        node = operation(op, field("h", "a"), node)
    return node


def test_generated_code_grows_linearly_with_nesting() -> None:
    """C names each divisor twice; nested divisions once doubled it at every level."""
    made = [small.program([primitive("assign", field("h", "a"), nested("/", depth))]) for depth in (5, 40)]
    shorter, longer = (len(generate(load_program(small.encoded(each)))) for each in made)
    assert longer - shorter < 35 * 100


Change = Callable[[Node], object]
A = field("h", "a")


def steps(*primitives: Node) -> Change:
    return lambda made: made["actions"][0].update(primitives=list(primitives))


def in_table(**more: object) -> Change:
    return lambda made: made["pipelines"][0]["tables"][0].update(more)


def one_more(kind: str, *items: Node) -> Change:
    return lambda made: made.setdefault(kind, []).extend(items)


def several(*changes: Change) -> Change:
    return lambda made: [change(made) for change in changes]


def key(match_type: str, target: object, **more: object) -> Change:
    return in_table(key=[{"match_type": match_type, "name": "k", "target": target, "mask": None, **more}])


META = {"type": "header", "value": "standard_metadata"}
WIDE = [["x", 2**14, False]]

REFUSED: dict[str, tuple[Change, str]] = {
    "a field of 2^32 bits": (
        lambda made: small.with_header(made, "big", [["x", 2**32, False]]),
        r"header_types\[2\].fields\[0\].*less than or equal to 16384",
    ),
    "a field of fewer bits than none": (
        lambda made: small.with_header(made, "big", [["x", -1, False]]),
        r"header_types\[2\].fields\[0\].*greater than or equal to 0",
    ),
    "headers of a packet": (
        lambda made: [small.with_header(made, f"big{n}", [[f"x{m}", 2**14] for m in range(31)]) for n in range(5)],
        "a packet's headers have .* at most",
    ),
    "one header": (
        lambda made: small.with_header(made, "big", [[f"x{m}", 2**14] for m in range(40)]),
        "header type 'big_t': 81920 bytes",
    ),
    "what the deparser emits": (
        lambda made: [
            small.with_header(made, "big", [[f"x{m}", 2**14] for m in range(30)]),
            made["deparsers"][0].update(order=["big"] * 6),
        ],
        "emits up to",
    ),
    "a register": (
        one_more("register_arrays", {"name": "r", "size": 2**40, "bitwidth": 8}),
        r"register_arrays\[0\].size",
    ),
    "registers": (
        one_more("register_arrays", *({"name": f"r{n}", "size": 2**28, "bitwidth": 2048} for n in range(2))),
        "bytes; .* at most",
    ),
    "a counter": (one_more("counter_arrays", {"name": "c", "size": -1}), r"counter_arrays\[0\].size"),
    "a table": (in_table(max_size=2**33), r"pipelines\[0\].tables\[0\].max_size"),
    "an expression": (
        steps(primitive("assign", A, nested("*", 2)), primitive("assign", A, constant(1 << 20000))),
        r"actions\[0\].primitives\[1\].parameters\[1\].value",
    ),
    "nesting": (steps(primitive("assign", A, nested("+", 200))), "recursion limit"),
    "an intermediate value": (
        several(
            lambda made: small.with_header(made, "big", WIDE),
            steps(
                primitive(
                    "assign", A, operation("*", *[operation("*", *[operation("*", *[field("big", "x")] * 2)] * 2)] * 2)
                )
            ),
        ),
        "action 'run'.*primitive 0.*operator '\\*' on .* bits",
    ),
    "intermediate values": (
        several(
            lambda made: small.with_header(made, "big", WIDE),
            steps(*[primitive("assign", field("big", "x"), operation("*", *[field("big", "x")] * 2))] * 1000),
        ),
        "intermediate values of more than",
    ),
    "a cast's width": (steps(primitive("assign", A, operation("usat_cast", A, constant(1 << 64)))), "a cast to"),
    "a shift": (steps(primitive("assign", A, operation("<<", A, {"type": "hexstr", "value": "-0x1"}))), "'<<' by -1"),
    "a stack": (
        lambda made: [
            made["headers"].extend(
                {"name": f"s[{n}]", "id": 10 + n, "header_type": "h_t", "metadata": False} for n in range(256)
            ),
            made["header_stacks"].append({"name": "s", "id": 0, "header_ids": list(range(10, 266))}),
        ],
        r"header_stacks\[0\].header_ids",
    ),
    "tables that lead in a circle": (
        lambda made: made["pipelines"][0]["tables"].extend(
            [small.table("u", next_tables={"run": "v"}), small.table("v", next_tables={"run": "u"})]
        ),
        "leads back to itself",
    ),
    "a table that leads to itself": (in_table(next_tables={"run": "t"}), "'t' leads back to itself"),
    "a table that is not there": (in_table(next_tables={"run": "x"}), "pipeline 'ingress': no .* 'x'; expected "),
    "another table's direct meter": (
        several(
            one_more("meter_arrays", {"name": "m", "is_direct": True, "binding": "u", "result_target": ["h", "a"]}),
            lambda made: made["pipelines"][0]["tables"].append(small.table("u")),
            in_table(direct_meters="m", max_size=1024),
            lambda made: key("exact", ["h", "a"])(made),
        ),
        "table 't'.*'m' is not a direct meter of this table",
    ),
    "an unknown header": (
        steps(primitive("add_header", {"type": "header", "value": "x"})),
        "primitive 0.*no header 'x'",
    ),
    "metadata removed": (steps(primitive("remove_header", META)), "primitive 0 .*is metadata"),
    "metadata emitted": (lambda made: made["deparsers"][0].update(order=["standard_metadata"]), "is metadata"),
    "an operand too few": (steps(primitive("assign", A)), "primitive 0 .*number 2 is missing"),
    "an operand of another kind": (steps(primitive("register_read", A, A, A)), "type 'field' where register_array"),
    "a parameter outside": (steps(primitive("assign", A, {"type": "runtime_data", "value": 7})), "no parameter 7"),
    "a parameter written": (
        several(
            lambda made: made["actions"][0].update(runtime_data=[{"name": "p", "bitwidth": 8}]),
            lambda made: made["pipelines"][0]["tables"][0]["default_entry"].update(action_data=["0x1"]),
            steps(primitive("assign", {"type": "expression", "value": {"type": "runtime_data", "value": 0}}, A)),
        ),
        "assigning to",
    ),
    "headers of two types": (
        several(
            lambda made: small.with_header(made, "other", [["b", 16]]),
            steps(primitive("assign_header", {"type": "header", "value": "h"}, {"type": "header", "value": "other"})),
        ),
        "different types",
    ),
    "a jump out of the action": (steps(primitive("_jump", constant(9))), "a jump to primitive 9;"),
    "an unknown parser state": (
        lambda made: made["parsers"][0]["parse_states"][0]["transitions"][0].update(next_state="x"),
        "parser state 'start'.*no parser state 'x'",
    ),
    "two headers with a name": (lambda made: made["headers"].append(copy.copy(made["headers"][1])), "two headers"),
    "two headers with an id": (
        lambda made: made["headers"].append({**made["headers"][1], "name": "x"}),
        "header 'x': its id 1 is used twice",
    ),
    "a key of no field": (key("exact", ["h", "x"]), "table 't'.*key 'k'.*no field 'x'"),
    "a mask too wide": (key("exact", ["h", "a"], mask="0x1ff"), "mask 0x1ff does not fit 8 bits"),
    "two lpm keys": (
        in_table(key=[{"match_type": "lpm", "name": n, "target": ["h", "a"], "mask": None} for n in "kl"]),
        "two lpm keys",
    ),
    "an entry of no action": (
        several(
            key("exact", ["h", "a"]),
            in_table(entries=[{"match_key": [], "action_entry": {"action_id": 9, "action_data": []}, "priority": 1}]),
        ),
        "table 't'.*entry 0.*no action with id 9",
    ),
    "an entry of too few keys": (
        several(
            key("exact", ["h", "a"]),
            in_table(entries=[{"match_key": [], "action_entry": {"action_id": 0, "action_data": []}, "priority": 1}]),
        ),
        "entry 0: 0 match keys for a table with 1",
    ),
    "a default action with too many parameters": (
        lambda made: made["pipelines"][0]["tables"][0]["default_entry"].update(action_data=["0x1"] * 5),
        "table 't'.*takes 0 parameters, not 5",
    ),
    "a third pipeline": (
        lambda made: made["pipelines"].append({**made["pipelines"][1], "name": "int x; void"}),
        "expected pipelines ingress and egress",
    ),
    "text for a number": (lambda made: made["errors"].append(["x", "7; }"]), r"errors\[1\]\[1\].*valid integer"),
    "no actions": (lambda made: made.pop("actions"), "actions: Field required"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_bad_program_is_refused_with_its_place(what: str) -> None:
    made = small.program([small.send_to(1)])
    generate(load_program(small.encoded(made)))  # it is the change that is refused
    change, message = REFUSED[what]
    change(made)
    with pytest.raises((NotBmv2Json, UnsupportedProgram), match=message):
        generate(load_program(small.encoded(made)))
