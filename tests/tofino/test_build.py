"""The committed output for Tofino matches its sources, was not edited, and contains no absolute path."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = ("serene.p4", "serene.p4info.txtpb", "serene.stateful", "resources.md", "serene.sha256")
FRONTIER = ("frontier.md", "frontier.sha256")
CHIPS = ("tofino", "tofino2")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "p4src", tmp_path / "p4src")
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "p4_tofino.py", tmp_path / "scripts")
    return tmp_path


def p4_tofino(checkout: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "scripts/p4_tofino.py", *options]
    return subprocess.run(
        command, cwd=checkout, capture_output=True, text=True, timeout=1900, env=environment or None, check=False
    )


def check_says(checkout: Path, what: str) -> None:
    checked = p4_tofino(checkout, "--check")
    assert checked.returncode == 1 and what in checked.stderr


def test_tofino_output_digest_matches_the_sources() -> None:
    checked = p4_tofino(ROOT, "--check")
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize("source", ["include/headers.p4", "tna/barrier.p4"])
def test_tofino_check_detects_changed_sources(checkout: Path, source: str) -> None:
    with (checkout / "p4src" / source).open("a") as file:
        file.write("// one more line\n")
    checked = p4_tofino(checkout, "--check")
    assert checked.returncode == 1
    assert "the sources changed" in checked.stderr and "make p4-tofino" in checked.stderr


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", OUTPUT[:-1])
def test_tofino_check_detects_edited_or_missing_output(checkout: Path, name: str, chip: str) -> None:
    path = checkout / "p4src" / "build" / chip / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    check_says(checkout, "the output is not as it was written")
    path.unlink()
    check_says(checkout, f"{name} missing")


@pytest.mark.parametrize("name", FRONTIER)
def test_tofino_check_detects_edited_or_missing_frontier(checkout: Path, name: str) -> None:
    path = checkout / "p4src" / "build" / "tofino" / name
    path.write_text(path.read_text().replace("1", "2", 1))
    check_says(checkout, "make p4-tofino FRONTIER=1")
    path.unlink()
    check_says(checkout, f"{name} missing")


def test_tofino_page_shows_the_committed_frontier() -> None:
    table = (ROOT / "p4src" / "build" / "tofino" / "frontier.md").read_text()
    assert table in (ROOT / "docs" / "tofino.md").read_text()


@pytest.mark.parametrize("present", [[], ["p4c-barefoot"]])
def test_missing_tofino_compiler_is_named_and_output_is_kept(
    checkout: Path, tmp_path: Path, present: list[str]
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in present:
        (tools / tool).write_text("#!/bin/sh\n")
        (tools / tool).chmod(0o755)
    compiled = p4_tofino(checkout, PATH=str(tools))
    assert compiled.returncode == 1
    assert compiled.stderr.startswith(f"error: {'bfas' if present else 'p4c-barefoot'} is not installed")
    for path in (Path("p4src", "build", chip, name) for chip in CHIPS for name in OUTPUT):
        assert (checkout / path).read_text() == (ROOT / path).read_text()


def test_tofino_output_contains_no_absolute_paths() -> None:
    for path in (Path("p4src", "build", chip, name) for chip in CHIPS for name in OUTPUT):
        text = (ROOT / path).read_text()
        assert not re.search(r"(?<![\w.])/(root|home|tmp|usr|work|opt)/", text), path


def p4infos(chip: str) -> list[str]:
    """Of v1model's program, and of a chip's."""
    names = ("serene.p4info.txtpb", f"{chip}/serene.p4info.txtpb")
    return [(ROOT / "p4src" / "build" / name).read_text() for name in names]


@pytest.mark.parametrize("chip", CHIPS)
def test_controller_tables_are_the_same_on_both_architectures(chip: str) -> None:
    """The controller's tables: names, keys in order, actions and their parameters."""
    ours, theirs = p4infos(chip)
    tables = (
        "member",
        "job",
        "policy",
        "address",
        "forward",
        "known_source",
        "switch_address",
        "switch_mac",
        "switch_ip",
    )
    for table in tables:
        assert keys(ours, table) == keys(theirs, table), table
    for action in ("admit", "set_job", "set_policy", "to_member", "to_port", "answer_arp"):
        wider = ["staleness", "quorum"] if action == "set_policy" else []  # docs/tofino.md
        expected = [(name, "32" if name in wider else width) for name, width in parameters(ours, action)]
        assert parameters(theirs, action) == expected, action


@pytest.mark.parametrize("chip", CHIPS)
def test_drop_counters_are_the_same_on_both_architectures(chip: str) -> None:
    """The controller finds these counters by their names."""
    reasons = [sorted(re.findall(r'alias: "(?:\w+\.)*(dropped_\w+)"', text)) for text in p4infos(chip)]
    assert reasons[0] == reasons[1]
    assert {"dropped_impostor", "dropped_tagged", "dropped_old_session"} <= set(reasons[0])


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


def test_tofino_compilation_is_reproducible(checkout: Path) -> None:
    tools = ("p4c-barefoot", "bfas")
    if any(shutil.which(tool) is None for tool in tools):
        pytest.skip("needs p4c-barefoot and bfas")
    output = [Path("p4src", "build", chip, name) for chip in CHIPS for name in OUTPUT]
    for path in output:  # or output that nobody compiled would be compared
        (checkout / path).unlink()
    compiled = p4_tofino(checkout)
    assert compiled.returncode == 0, compiled.stderr
    for path in output:
        assert (checkout / path).read_text() == (ROOT / path).read_text()
