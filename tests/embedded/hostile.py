"""Programs with hostile names: every name in a program replaced by text that would break C code."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

KEPT = {"standard_metadata", "ingress", "egress", "$valid$", "NoAction"}
WORDS = {"op", "type", "match_type", "algo"}  # keys whose values belong to the format as well
LISTS = (
    "header_types", "headers", "header_stacks", "header_union_types", "header_unions", "header_union_stacks", "parsers",
    "deparsers", "actions", "pipelines", "calculations", "checksums", "learn_lists", "field_lists", "counter_arrays",
    "meter_arrays", "register_arrays", "parse_vsets",
)  # fmt: skip


def names(program: dict[str, Any]) -> set[str]:
    """The names that the program itself gives to its parts, without standard_metadata and the names of v1model."""
    found: set[str] = set()
    for kind in LISTS:
        for item in program.get(kind) or ():
            found.add(item.get("name", ""))
            for inner in ("tables", "conditionals", "action_profiles", "parse_states", "runtime_data", "key"):
                for part in item.get(inner) or ():
                    found.add(part.get("name") or "")
                    found |= {key.get("name") or "" for key in part.get("key") or ()}
    standard = {item["header_type"] for item in program["headers"] if item["name"] == "standard_metadata"}
    for header_type in program["header_types"]:
        if header_type["name"] not in standard:
            found |= {field[0] for field in header_type["fields"]}
    for union in program.get("header_union_types") or ():
        found |= {member for member, _ in union["headers"]}
    known = {field[0] for item in program["header_types"] if item["name"] in standard for field in item["fields"]}
    return found - known - KEPT - {""}


def renamed(source: bytes, rename: Callable[[int, str], str]) -> bytes:
    """The program with each of its names replaced by another one."""
    program = json.loads(source)
    new = {name: rename(number, name) for number, name in enumerate(sorted(names(program)))}

    def visit(node: Any, key: str = "") -> Any:
        if isinstance(node, dict):
            of_names = key == "next_tables"  # elsewhere keys belong to the format
            return {new.get(k, k) if of_names else k: visit(value, k) for k, value in node.items()}
        if isinstance(node, list):
            return [visit(value, key) for value in node]
        return new.get(node, node) if isinstance(node, str) and key not in WORDS else node

    result = visit(program)
    result["program"] = rename(len(new), "program")
    return json.dumps(result).encode()
