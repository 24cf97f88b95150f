"""The compiled program's sizes, as Python takes them from p4c's output, are those of the P4 sources."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from serene.program import BUILD, NoSuchProgram, Program


def p4_sizes() -> dict[str, int]:
    text = (BUILD.parent / "include" / "sizes.p4").read_text()
    return {name: int(value) for name, value in re.findall(r"const bit<\d+> (\w+) = (\d+);", text)}


@pytest.mark.parametrize(("variant", "fields"), [("serene", 5), ("serene_jumbo", 14)])
def test_program_sizes_equal_those_of_the_p4_sources(variant: str, fields: int) -> None:
    program, sizes = Program.load(variant), p4_sizes()
    assert program.lanes == 64 * fields
    assert (program.slots, program.max_jobs, program.max_workers) == (
        sizes["SLOTS"], sizes["MAX_JOBS"], sizes["MAX_WORKERS"],
    )  # fmt: skip
    types = {item["name"]: item["fields"] for item in json.loads(program.config_path.read_text())["header_types"]}
    assert types["values_t"] == [[f"lanes_{number}", 2048, False] for number in range(fields)]


def test_tree_program_sizes_equal_those_of_the_p4_sources() -> None:
    sizes = p4_sizes()
    for program, workers in zip(Program.tree(), ("MAX_WORKERS", "LEAVES"), strict=True):
        assert (program.lanes, program.slots, program.max_jobs) == (320, sizes["SLOTS"], sizes["MAX_JOBS"])
        assert program.max_workers == program.counted_workers == sizes[workers]


def test_program_load_accepts_a_path(tmp_path: Path) -> None:
    for name in ("serene.json", "serene.p4info.txtpb"):
        shutil.copy(BUILD / name, tmp_path / name.replace("serene", "mine"))
    mine = Program.load(tmp_path / "mine.json")
    assert (mine.name, mine.lanes) == ("mine", 320)
    assert mine.p4info_path == tmp_path / "mine.p4info.txtpb"


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"header_types": []}', '{"header_types": [{"name": "other_t"}]}', 100_000 * "["],
    ids=lambda text: text[:40],
)
def test_program_load_refuses_other_builds(tmp_path: Path, text: str) -> None:
    (tmp_path / "other.json").write_text(text)
    shutil.copy(BUILD / "serene.p4info.txtpb", tmp_path / "other.p4info.txtpb")
    with pytest.raises(NoSuchProgram, match=r"other\.json is not a build of Serene's data plane"):
        Program.load(tmp_path / "other.json")


def test_program_load_names_a_missing_p4info(tmp_path: Path) -> None:
    shutil.copy(BUILD / "serene.json", tmp_path)
    with pytest.raises(NoSuchProgram, match=r"cannot read .*serene\.p4info\.txtpb: No such file"):
        Program.load(tmp_path / "serene.json")
