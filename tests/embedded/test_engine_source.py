"""Names and strings of a program do not reach the compiler."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from serene.embedded import load_program
from serene.embedded.codegen.generate import generate
from serene.embedded.codegen.names import identifier
from tests.embedded.sanitizers import PROGRAMS

# Identifiers made of a P4 name.
OURS = re.compile(r"\b((?:(?:valid|next|extract|trace)_)?(?:[hsutfrva]|table|condition|state)\d+)_\w*")
SOURCES = {name: path.read_bytes() for name, (path, _) in PROGRAMS.items()}
HOSTILE = (
    '*/ __attribute__((constructor)) static void own{n}(void) {{ system("id > /tmp/owned"); }} /* {name}',
    '\\\n#include "/etc/passwd"\n// {n} {name}',
    '??/"; __asm__("int3"); {n} {name} %s%n',
    "ünïcödé ＿𝐱 {n} {name}\0",
)


@pytest.mark.parametrize("program", SOURCES)
@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_change_only_identifier_endings_in_c(program: str, text: str) -> None:
    """Whatever names a program uses, its C differs only in the readable endings of our own identifiers."""
    plain = generate(load_program(renamed(SOURCES[program], lambda n, name: f"n{n}")))
    hostile = generate(load_program(renamed(SOURCES[program], lambda n, name: text.format(n=n, name=name))))
    assert hostile.isascii()
    assert OURS.sub(r"\1", hostile) == OURS.sub(r"\1", plain)
    # ... and these ends are what they seem.
    ends = {match.group() for match in OURS.finditer(hostile)}
    assert ends and all(re.fullmatch(r"[a-z_]+\d+_[A-Za-z0-9_]{0,54}", end) for end in ends)


@pytest.mark.parametrize("program", SOURCES)
def test_unused_strings_of_a_program_do_not_reach_c(program: str) -> None:
    """Messages, source locations, metadata, names of errors, and keys that the format does not define."""
    raw = json.loads(SOURCES[program])
    mark = "MARK*/ hostile"

    def visit(node: object) -> None:
        if isinstance(node, dict):
            for value in node.values():
                visit(value)
            node["source_info"] = {"filename": mark, "line": mark, "column": mark, "source_fragment": mark}
            node[mark] = mark
        elif isinstance(node, list):
            for value in node:
                visit(value)

    visit({key: value for key, value in raw.items() if key != "pipelines"})  # next_tables has names for keys
    raw.update({"program": mark, "__meta__": {"version": [mark], "compiler": mark}, "enums": [[mark, mark]]})
    raw["errors"] = [[f"{mark} {name}", number] for name, number in raw["errors"]]
    raw["force_arith"] = [[mark, mark]]
    raw["field_aliases"] = [[mark, [mark, mark]]]
    source = generate(load_program(json.dumps(raw).encode()))
    assert "MARK" not in source and "hostile" not in source


@pytest.mark.parametrize("program", ["serene", "serene_jumbo"])
def test_serene_engine_reads_no_time_and_moves_whole_registers(program: str) -> None:
    """`mark_to_drop(standard_metadata)` does not need the time. Registers are moved as a whole: in a loop over limbs, C
    would look the register up again for each limb."""
    source = generate(load_program(SOURCES[program]))
    assert "USES_INGRESS_TIME = 0, USES_EGRESS_TIME = 0" in source
    assert "wide_move(" in source
    assert not re.search(r"\[i\] = state->rows_|state->rows_\d+\[at\]\.\w+\[i\] = h->", source)


def test_c_identifiers_are_readable_and_bounded() -> None:
    assert identifier("h", 3, "ethernet") == "h3_ethernet"
    assert identifier("a", 12, "Ingress.add") == "a12_Ingress_add"
    assert identifier("f", 0, "") == "f0_"
    assert len(identifier("f", 1, "x" * 500)) < 60


KEPT = {"standard_metadata", "ingress", "egress", "$valid$", "NoAction"}
WORDS = {"op", "type", "match_type", "algo"}  # keys whose values belong to the format as well


def names(program: dict[str, Any]) -> set[str]:
    """The names that the program itself gives to its parts, without standard_metadata and the names of v1model."""
    found = {""}

    def visit(node: Any) -> None:
        if isinstance(node, dict):
            found.add(node.get("name") or "")
            members = [*(node.get("fields") or ()), *(node.get("headers") or ())]
            found.update(member[0] for member in members if isinstance(member, list))
        for part in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
            visit(part)

    visit(program)
    standard = {item["header_type"] for item in program["headers"] if item["name"] == "standard_metadata"}
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
