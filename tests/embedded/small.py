"""Small BMv2 programs written by hand, such as no P4 compiler would write."""

from __future__ import annotations

import json
from typing import Any

from serene.embedded import Switch

Node = dict[str, Any]

STANDARD = (
    ("ingress_port", 9), ("egress_spec", 9), ("egress_port", 9), ("instance_type", 32), ("packet_length", 32),
    ("ingress_global_timestamp", 48), ("egress_global_timestamp", 48), ("mcast_grp", 16), ("egress_rid", 16),
    ("checksum_error", 1), ("parser_error", 32),
)  # fmt: skip


def operation(op: str, left: Node | None, right: Node | None, **more: Node) -> Node:
    return {"type": "expression", "value": {"op": op, "left": left, "right": right, **more}}


def constant(value: int) -> Node:
    return {"type": "hexstr", "value": hex(value)}


def field(header: str, name: str) -> Node:
    return {"type": "field", "value": [header, name]}


def primitive(op: str, *parameters: Node) -> Node:
    return {"op": op, "parameters": list(parameters)}


def send_to(port: int) -> Node:
    return primitive("assign", field("standard_metadata", "egress_spec"), constant(port))


def state(name: str, *operations: Node, to: str | None = None) -> Node:
    go = {"type": "default", "value": None, "mask": None, "next_state": to}
    return {"name": name, "id": 0, "parser_ops": list(operations), "transition_key": [], "transitions": [go]}


def extract(header: str) -> Node:
    return {"op": "extract", "parameters": [{"type": "regular", "value": header}]}


def table(name: str, action: int = 0, **more: Any) -> Node:
    return {
        "name": name, "id": 0, "key": [], "match_type": "exact", "type": "simple", "max_size": 16,
        "with_counters": False, "direct_meters": None, "action_ids": [action], "actions": ["run"],
        "base_default_next": None, "next_tables": {"run": None},
        "default_entry": {"action_id": action, "action_const": True, "action_data": [], "action_entry_const": True},
        **more,
    }  # fmt: skip


def program(steps: list[Node], **more: Any) -> Node:
    """A program that parses header ``h`` (field ``a``, 8 bits), runs ``steps`` as the ingress's only action, and
    sends ``h``."""
    nothing: Node = {"tables": [], "conditionals": [], "action_profiles": []}
    return {
        "program": "small.p4",
        "header_types": [
            {"name": "standard", "id": 0, "fields": [*map(list, STANDARD), ["_", 5]]},
            {"name": "h_t", "id": 1, "fields": [["a", 8, False]]},
        ],
        "headers": [
            {"name": "standard_metadata", "id": 0, "header_type": "standard", "metadata": True},
            {"name": "h", "id": 1, "header_type": "h_t", "metadata": False},
        ],
        "header_stacks": [],
        "errors": [["PacketTooShort", 1]],
        "parsers": [{"name": "parser", "id": 0, "init_state": "start", "parse_states": [state("start", extract("h"))]}],
        "deparsers": [{"name": "deparser", "id": 0, "order": ["h"]}],
        "actions": [{"name": "run", "id": 0, "runtime_data": [], "primitives": steps}],
        "pipelines": [
            {**nothing, "name": "ingress", "id": 0, "init_table": "t", "tables": [table("t")]},
            {**nothing, "name": "egress", "id": 1, "init_table": None},
        ],
        **more,
    }  # fmt: skip


def with_header(made: Node, name: str, fields: list[list[Any]], **more: Any) -> Node:
    """The program with one more header, of a type of its own."""
    number = len(made["headers"])
    made["header_types"].append({"name": f"{name}_t", "id": number, "fields": fields, **more})
    made["headers"].append({"name": name, "id": number, "header_type": f"{name}_t", "metadata": False})
    return made


def with_more_after_seven(made: Node, *operations: Node) -> Node:
    """The program whose parser continues with these operations, in state "more", if the byte a is 7."""
    (start,) = made["parsers"][0]["parse_states"]
    go = {"type": "hexstr", "value": "0x07", "mask": None, "next_state": "more"}
    start.update(transition_key=[field("h", "a")], transitions=[go, *start["transitions"]])
    made["parsers"][0]["parse_states"].append(state("more", *operations))
    return made


def encoded(made: Node) -> bytes:
    return json.dumps(made).encode()


def load(made: Node) -> Switch:
    """Compiled with few optimisations, which takes half the time."""
    return Switch.load(encoded(made), compiler_flags=("-O1",))
