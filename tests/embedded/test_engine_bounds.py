"""Programs that no compiler writes are refused with their place, or bounded in memory and time for any input."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

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
A, BIG = field("h", "a"), field("big", "x")
H, META = ({"type": "header", "value": name} for name in ("h", "standard_metadata"))
TABLE, DEFAULT = "pipelines.0.tables.0", "pipelines.0.tables.0.default_entry"


def at(made: Any, path: str) -> Any:
    for step in path.split("."):
        made = made[int(step) if step.isdigit() else step]
    return made


def put(path: str, **items: object) -> Change:
    return lambda made: at(made, path).update(items)


def steps(*primitives: Node) -> Change:
    return put("actions.0", primitives=list(primitives))


def assigned(value: Node) -> Change:
    return steps(primitive("assign", A, value))


def key(*target: str, **more: object) -> Change:
    return put(TABLE, key=[{"match_type": "exact", "name": "k", "target": target, "mask": None, **more}])


def entry(action: int) -> Change:
    """One without match keys."""
    made = {"match_key": [], "action_entry": {"action_id": action, "action_data": []}, "priority": 1}
    return put(TABLE, entries=[made])


def added(kind: str, *items: Node) -> Change:
    return lambda made: made.setdefault(kind, []).extend(items)


def again(kind: str, number: int, **other: object) -> Change:
    """One more item, which differs in these values from the item with this number."""
    return lambda made: made[kind].append({**made[kind][number], **other})


def table(name: str, **more: Any) -> Change:
    return lambda made: at(made, "pipelines.0.tables").append(small.table(name, **more))


def header(name: str, *widths: int) -> Change:
    return lambda made: small.with_header(made, name, [[f"x{n or ''}", bits, False] for n, bits in enumerate(widths)])


def squared(value: Node, times: int) -> Node:
    return operation("*", *[squared(value, times - 1)] * 2) if times else value


STACK = {"name": "s", "id": 0, "header_ids": list(range(10, 266))}
ELEMENTS = [{"name": f"s[{n}]", "id": 10 + n, "header_type": "h_t", "metadata": False} for n in range(256)]
METER = {"name": "m", "is_direct": True, "binding": "u", "result_target": ["h", "a"]}
# What is refused: a pattern of the message, and changes to a program.
REFUSED: dict[str, tuple[Any, ...]] = {
    "a field of 2^32 bits": (r"header_types\[2\].fields\[0\].*less than or equal to 16384", header("big", 2**32)),
    "a field of -1 bits": (r"header_types\[2\].fields\[0\].*greater than or equal to 0", header("big", -1)),
    "headers of a packet": ("a packet's headers have .* at most", *(header(f"h{n}", *[2**14] * 31) for n in range(5))),
    "one header": ("header type 'big_t': 81920 bytes", header("big", *[2**14] * 40)),
    "what the deparser emits": ("emits up to", header("big", *[2**14] * 30), put("deparsers.0", order=["big"] * 6)),
    "a register": (r"register_arrays\[0\].size", added("register_arrays", {"name": "r", "size": 2**40, "bitwidth": 8})),
    "registers": (
        "bytes; .* at most",
        added("register_arrays", *({"name": f"r{n}", "size": 2**28, "bitwidth": 2048} for n in range(2))),
    ),
    "a counter": (r"counter_arrays\[0\].size", added("counter_arrays", {"name": "c", "size": -1})),
    "a table": (r"pipelines\[0\].tables\[0\].max_size", put(TABLE, max_size=2**33)),
    "an expression": (
        r"actions\[0\].primitives\[1\].parameters\[1\].value",
        steps(primitive("assign", A, nested("*", 2)), primitive("assign", A, constant(1 << 20000))),
    ),
    "nesting": ("recursion limit", assigned(nested("+", 200))),
    "an intermediate value": (
        "action 'run'.*primitive 0.*operator '\\*' on .* bits", header("big", 2**14), assigned(squared(BIG, 3))
    ),
    "intermediate values": (
        "intermediate values of more than",
        header("big", 2**14), steps(*[primitive("assign", BIG, squared(BIG, 1))] * 1000),
    ),
    "a cast's width": ("a cast to", assigned(operation("usat_cast", A, constant(1 << 64)))),
    "a shift": ("'<<' by -1", assigned(operation("<<", A, {"type": "hexstr", "value": "-0x1"}))),
    "a stack": (r"header_stacks\[0\].header_ids", added("headers", *ELEMENTS), added("header_stacks", STACK)),
    "tables that lead in a circle": (
        "leads back to itself", table("u", next_tables={"run": "v"}), table("v", next_tables={"run": "u"})
    ),
    "a table that leads to itself": ("'t' leads back to itself", put(TABLE, next_tables={"run": "t"})),
    "a table that is not there": ("pipeline 'ingress': no .* 'x'; expected ", put(TABLE, next_tables={"run": "x"})),
    "another table's direct meter": (
        "table 't'.*'m' is not a direct meter of this table",
        added("meter_arrays", METER), table("u"), put(TABLE, direct_meters="m", max_size=1024), key("h", "a"),
    ),
    "an unknown header": ("primitive 0.*no header 'x'", steps(primitive("add_header", {**H, "value": "x"}))),
    "metadata removed": ("primitive 0 .*is metadata", steps(primitive("remove_header", META))),
    "metadata emitted": ("is metadata", put("deparsers.0", order=["standard_metadata"])),
    "an operand too few": ("primitive 0 .*number 2 is missing", steps(primitive("assign", A))),
    "an operand of another kind": ("type 'field' where register_array", steps(primitive("register_read", A, A, A))),
    "a parameter outside": ("no parameter 7", assigned({"type": "runtime_data", "value": 7})),
    "a parameter written": (
        "assigning to",
        put("actions.0", runtime_data=[{"name": "p", "bitwidth": 8}]), put(DEFAULT, action_data=["0x1"]),
        steps(primitive("assign", {"type": "expression", "value": {"type": "runtime_data", "value": 0}}, A)),
    ),
    "headers of two types": (
        "different types", header("other", 16), steps(primitive("assign_header", H, {**H, "value": "other"}))
    ),
    "a jump out of the action": ("a jump to primitive 9;", steps(primitive("_jump", constant(9)))),
    "an unknown parser state": (
        "parser state 'start'.*no parser state 'x'", put("parsers.0.parse_states.0.transitions.0", next_state="x")
    ),
    "two headers with a name": ("two headers", again("headers", 1)),
    "two headers with an id": ("header 'x': its id 1 is used twice", again("headers", 1, name="x")),
    "a key of no field": ("table 't'.*key 'k'.*no field 'x'", key("h", "x")),
    "a mask too wide": ("mask 0x1ff does not fit 8 bits", key("h", "a", mask="0x1ff")),
    "two lpm keys": (
        "two lpm keys",
        put(TABLE, key=[{"match_type": "lpm", "name": n, "target": ["h", "a"], "mask": None} for n in "kl"]),
    ),
    "an entry of no action": ("table 't'.*entry 0.*no action with id 9", key("h", "a"), entry(9)),
    "an entry of too few keys": ("entry 0: 0 match keys for a table with 1", key("h", "a"), entry(0)),
    "a default action with too many parameters": (
        "table 't'.*takes 0 parameters, not 5", put(DEFAULT, action_data=["0x1"] * 5)
    ),
    "a third pipeline": ("expected pipelines ingress and egress", again("pipelines", 1, name="int x; void")),
    "text for a number": (r"errors\[1\]\[1\].*valid integer", lambda made: made["errors"].append(["x", "7; }"])),
    "no actions": ("actions: Field required", lambda made: made.pop("actions")),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_bad_program_is_refused_with_its_place(what: str) -> None:
    made = small.program([small.send_to(1)])
    generate(load_program(small.encoded(made)))  # it is the changes that are refused
    message, *changes = REFUSED[what]
    for change in changes:
        change(made)
    with pytest.raises((NotBmv2Json, UnsupportedProgram), match=message):
        generate(load_program(small.encoded(made)))
