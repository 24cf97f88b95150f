"""Names and strings of a program do not reach the compiler."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from serene.embedded import Switch, load_program
from serene.embedded.codegen.generate import generate
from serene.embedded.codegen.names import identifier
from tests.embedded.hostile import renamed
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


def test_hostile_comment_in_a_program_runs_no_code(tmp_path: Path) -> None:
    """The original attack: a constructor that runs when the library is loaded."""
    marker = tmp_path / "owned"
    attack = f'*/ #include <stdio.h>\n__attribute__((constructor)) static void f(void) {{ fopen("{marker}", "w"); }} /*'
    raw = json.loads(SOURCES["shapes"])
    raw["program"] = attack
    raw["parsers"][0]["parse_states"][0]["name"] = raw["parsers"][0]["init_state"] = attack
    raw["pipelines"][0]["tables"][0]["key"] = []
    Switch.load(json.dumps(raw).encode(), compiler_flags=("-O0",)).close()
    assert not marker.exists()


def test_c_identifiers_are_readable_and_bounded() -> None:
    assert identifier("h", 3, "ethernet") == "h3_ethernet"
    assert identifier("a", 12, "Ingress.add") == "a12_Ingress_add"
    assert identifier("f", 0, "") == "f0_"
    assert len(identifier("f", 1, "x" * 500)) < 60
