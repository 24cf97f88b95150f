"""The P4Info of the Tofino program beside v1model's, and the page that shows what it takes of a chip."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from serene.program import Program
from tests.tofino.plane import Build, TofinoDataPlane

BUILD = Path(__file__).resolve().parents[2] / "p4src" / "build"
CHIPS = ("tofino", "tofino2")


def test_tofino_page_shows_the_committed_frontier() -> None:
    assert (BUILD / "tofino" / "frontier.md").read_text() in (BUILD.parents[1] / "docs" / "tofino.md").read_text()


def p4infos(chip: str) -> list[str]:
    """Of v1model's program, and of a chip's."""
    names = ("serene.p4info.txtpb", f"{chip}/serene.p4info.txtpb")
    return [(BUILD / name).read_text() for name in names]


@pytest.mark.parametrize("chip", CHIPS)
def test_controller_tables_are_the_same_on_both_architectures(chip: str) -> None:
    """The controller's tables: names, keys in order, actions and their parameters."""
    ours, theirs = p4infos(chip)
    tables = (
        "member", "job", "policy", "address", "forward", "known_source", "switch_address", "switch_mac", "switch_ip",
    )  # fmt: skip
    for table in tables:
        assert keys(ours, table) == keys(theirs, table), table
    for action in ("admit", "set_job", "set_policy", "to_member", "to_port", "answer_arp"):
        wider = ["staleness", "quorum"] if action == "set_policy" else []  # docs/tofino.md
        expected = [(name, "32" if name in wider else width) for name, width in parameters(ours, action)]
        assert parameters(theirs, action) == expected, action


@pytest.mark.parametrize("chip", CHIPS)
def test_counters_are_the_same_on_both_architectures(chip: str) -> None:
    """Names and sizes: the controller finds them by their names."""
    ours, theirs = (
        re.findall(r'^counters {\n.*?alias: "(\w+)".*?size: (\d+)', text, re.MULTILINE | re.DOTALL)
        for text in p4infos(chip)
    )
    assert sorted(ours) == sorted(theirs)
    assert {("dropped_tagged", "1"), ("contributions", "256"), ("staleness", "4096")} <= set(ours)


def test_controller_takes_the_programs_sizes_from_its_p4info(
    build: Build, tofino: TofinoDataPlane, tmp_path: Path
) -> None:
    (tmp_path / "serene.bin").write_bytes(b"for the chip")
    shutil.copy(build.directory / "serene.p4info.txtpb", tmp_path)
    program = Program.load(tmp_path / "serene.bin")
    assert (program.lanes, program.max_workers, program.max_jobs) == (tofino.lanes, 16, 8)
    assert program.slots == tofino.machine.registers["base_of"].size


def part(p4info: str, kind: str, name: str) -> str:
    """A table or an action of a P4Info text."""
    parts = re.findall(rf"^{kind} {{\n(.*?)^}}", p4info, re.MULTILINE | re.DOTALL)
    (found,) = [text for text in parts if re.search(rf'alias: "(?:\w+\.)*{name}"', text)]
    return str(found)


def keys(p4info: str, table: str) -> list[tuple[str, ...]]:
    pattern = r'match_fields {\n\s+id: \d+\n\s+name: "(\w+)"\n\s+bitwidth: (\d+)\n\s+match_type: (\w+)'
    found = re.findall(pattern, part(p4info, "tables", table))
    assert found
    return found


def parameters(p4info: str, action: str) -> list[tuple[str, str]]:
    return re.findall(r'params {\n\s+id: \d+\n\s+name: "(\w+)"\n\s+bitwidth: (\d+)', part(p4info, "actions", action))
