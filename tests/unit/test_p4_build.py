"""The committed output of both compilers matches the P4 sources, was not edited, and contains no absolute path."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from serene.program import Program
from tests import commands
from tests.commands import ROOT

VARIANTS = ("serene", "serene_jumbo", "serene_leaf", "serene_root")
CHIPS = ("tofino", "tofino2")


@dataclass(frozen=True)
class Script:
    """A script that compiles. output: in p4src/build. tools: the compilers. sources: to be changed. again: the command
    that compiles again, which is named where something does not fit."""

    name: str
    output: tuple[str, ...]
    tools: tuple[str, ...]
    sources: tuple[str, ...]
    again: str


V1MODEL = Script(
    "compile_p4.py", tuple(f"{variant}{end}" for variant in VARIANTS for end in (".json", ".p4info.txtpb", ".sha256")),
    ("p4c-bm2-ss",), ("include/sizes.p4", "v1model/barrier.p4", "v1model/extra.p4"), "make p4",
)  # fmt: skip
TOFINO = Script(
    "p4_tofino.py",
    tuple(
        f"{chip}/{name}" for chip in CHIPS
        for name in ("serene.p4", "serene.p4info.txtpb", "serene.stateful", "resources.md", "serene.sha256")
    ),
    ("p4c-barefoot", "bfas"), ("include/headers.p4", "tna/barrier.p4"), "make p4-tofino",
)  # fmt: skip
FRONTIER = ("tofino/frontier.md", "tofino/frontier.sha256")

both = pytest.mark.parametrize("script", [V1MODEL, TOFINO], ids=["v1model", "tofino"])


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The sources, their output and the scripts, in a place of their own."""
    shutil.copytree(ROOT / "p4src", tmp_path / "p4src")
    (tmp_path / "scripts").mkdir()
    for script in (V1MODEL, TOFINO):
        shutil.copy(ROOT / "scripts" / script.name, tmp_path / "scripts")
    return tmp_path


def run(script: Script, checkout: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, f"scripts/{script.name}", *options)
    return commands.run(*command, folder=checkout, environment=environment, timeout=1900)


def check_says(script: Script, checkout: Path, *words: str) -> None:
    checked = run(script, checkout, "--check", PATH="/nowhere")
    assert checked.returncode == 1
    assert all(word in checked.stderr for word in words), checked.stderr


@both
def test_p4_output_digest_matches_the_sources(script: Script) -> None:
    checked = run(script, ROOT, "--check", PATH="/nowhere")
    assert checked.returncode == 0, checked.stderr
    assert script is TOFINO or "nothing was compiled: p4c-bm2-ss is not installed" in checked.stdout


def check_detects_changed_sources(script: Script, checkout: Path) -> None:
    named = [f" of {variant}" for variant in VARIANTS] if script is V1MODEL else [""]
    check_says(script, checkout, *(f"the sources{of} have changed" for of in named), script.again)


@pytest.mark.parametrize(
    ("script", "source"), [(script, source) for script in (V1MODEL, TOFINO) for source in script.sources]
)
def test_p4_check_detects_changed_or_new_sources(checkout: Path, script: Script, source: str) -> None:
    with (checkout / "p4src" / source).open("a") as file:
        file.write("const bit<8> ONE_MORE = 1;\n")
    check_detects_changed_sources(script, checkout)


BARRIER, SIZES = "v1model/barrier.p4", "tna/sizes.p4"


@pytest.mark.parametrize(
    ("script", "source", "old", "new"),
    [
        # v1model's output has line numbers, and the texts of lines.
        (V1MODEL, BARRIER, "    // This is one action", "    // A further line\n    // This is one action"),
        (V1MODEL, BARRIER, "// accepted, by worker", "// by worker"),
        (V1MODEL, BARRIER, "    // This is one action", "    /* no\n    // This is one action"),
        (V1MODEL, BARRIER, "other workers need.\n", "other workers need. \\\n"),
        (V1MODEL, BARRIER, "    action decide() {", "    // action decide() {"),
        (TOFINO, SIZES, "#define RING_BITS 4\n", "#define RING_BITS 4 "),  # the next line becomes part of the macro
        (TOFINO, SIZES, "#define RING_BITS 4\n", "/* no\n#define RING_BITS 4\n*/\n"),
        (TOFINO, SIZES, "#define RING_BITS 4\n", "// no \\\n#define RING_BITS 4\n"),
        (TOFINO, SIZES, '"FIELDS must be', '"FIELDS // must be'),
    ],
)
def test_p4_check_detects_code_hidden_by_a_comment_or_a_line_end(
    checkout: Path, script: Script, source: str, old: str, new: str
) -> None:
    replace(checkout / "p4src" / source, old, new)
    check_detects_changed_sources(script, checkout)


def replace(path: Path, old: str, new: str) -> None:
    assert path.read_text().count(old) == 1
    path.write_text(path.read_text().replace(old, new))


@pytest.mark.parametrize("new", ["    // Another is one action", "  // This is one action"])
def test_p4_check_for_v1model_ignores_comments_on_their_own_lines(checkout: Path, new: str) -> None:
    replace(checkout / "p4src" / BARRIER, "    // This is one action", new)
    checked = run(V1MODEL, checkout, "--check", PATH="/nowhere")
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize("source", ["include/headers.p4", "tna/barrier.p4", "tna/sizes.p4"])
def test_p4_check_for_tofino_ignores_comments_alone(checkout: Path, source: str) -> None:
    path = checkout / "p4src" / source
    path.write_text(
        re.sub(r"^( *)(\w.*;)( *//.*)?$", r"\1\2  // another one\n\1// and a line", path.read_text(), flags=re.M)
    )
    assert path.read_text().count("and a line") > 5
    checked = run(TOFINO, checkout, "--check", PATH="/nowhere")
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize(
    ("script", "name"),
    [(script, name) for script in (V1MODEL, TOFINO) for name in (*script.output, *FRONTIER * (script is TOFINO))],
)
def test_p4_check_detects_edited_or_missing_output(checkout: Path, script: Script, name: str) -> None:
    path, again = checkout / "p4src" / "build" / name, f"{script.again}{' FRONTIER=1' * (name in FRONTIER)}"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    edited = [] if name.endswith(".sha256") or name in FRONTIER else ["has changed since it was compiled"]
    check_says(script, checkout, again, *edited)
    path.unlink()
    check_says(script, checkout, path.name, "missing", again)


@pytest.mark.parametrize(
    ("script", "lacking"), [(script, tool) for script in (V1MODEL, TOFINO) for tool in script.tools]
)
def test_missing_p4_compiler_is_named_and_output_is_kept(
    checkout: Path, tmp_path: Path, script: Script, lacking: str
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in script.tools[: script.tools.index(lacking)]:
        (tools / tool).write_text("#!/bin/sh\n")
        (tools / tool).chmod(0o755)
    compiled = run(script, checkout, PATH=str(tools))
    assert compiled.returncode == 1
    assert compiled.stderr.startswith(f"error: {lacking} is not installed")
    for name in script.output:
        assert (checkout / "p4src/build" / name).read_bytes() == (ROOT / "p4src/build" / name).read_bytes()


@both
def test_p4_output_contains_no_absolute_paths(script: Script) -> None:
    for name in script.output:
        text = (ROOT / "p4src" / "build" / name).read_text()
        assert not re.search(r"(?<![\w.])/(root|home|tmp|usr|work|opt)/", text), name
        assert f"{Path.home()}/" not in text and str(ROOT) not in text, name
        assert not name.endswith(".json") or not Path(json.loads(text)["program"]).is_absolute()


@both
@pytest.mark.timeout(2000)  # several compilations
def test_p4_compilation_is_reproducible(checkout: Path, script: Script) -> None:
    if any(shutil.which(tool) is None for tool in script.tools):
        pytest.skip(f"needs {' and '.join(script.tools)}")
    for name in script.output:  # or output that nobody compiled would be compared
        (checkout / "p4src/build" / name).unlink()
    compiled = run(script, checkout)
    assert compiled.returncode == 0, compiled.stderr
    for name in script.output:
        assert (checkout / "p4src/build" / name).read_text() == (ROOT / "p4src/build" / name).read_text(), name


STAND_IN = """#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in --p4runtime-files | -o) cp "$MADE/${2##*/}" "$2" ;; esac
    shift
done
"""


def test_p4_check_recompiles_to_detect_redigested_output(checkout: Path, tmp_path: Path) -> None:
    """Output is edited and its digest renewed. The stand-in for p4c copies a folder, whatever the sources are."""
    tools, committed, edited = (tmp_path / name for name in ("tools", "committed", "edited"))
    tools.mkdir()
    (tools / "p4c-bm2-ss").write_text(STAND_IN)
    (tools / "p4c-bm2-ss").chmod(0o755)
    for folder in (committed, edited):
        shutil.copytree(checkout / "p4src" / "build", folder)
    path = edited / "serene_leaf.json"
    path.write_text(path.read_text().replace("0xffffffff", "0xfffffffe", 1))
    with_compiler = f"{tools}:{os.environ['PATH']}"

    def check(made: Path) -> subprocess.CompletedProcess[str]:
        return run(V1MODEL, checkout, "--check", PATH=with_compiler, MADE=str(made))

    same = check(committed)
    assert same.returncode == 0 and f"{tools}/p4c-bm2-ss writes the same output" in same.stdout, same.stderr
    assert run(V1MODEL, checkout, PATH=with_compiler, MADE=str(edited)).returncode == 0
    assert run(V1MODEL, checkout, "--check", PATH="/nowhere").returncode == 0
    checked = check(committed)
    assert checked.returncode == 1
    assert f"{tools}/p4c-bm2-ss now writes a different serene_leaf.json" in checked.stderr
    assert "serene_root" not in checked.stderr and "make p4" in checked.stderr


@pytest.mark.timeout(1000)  # four compilations
def test_p4c_output_for_other_slot_counts_equals_with_slots(checkout: Path) -> None:
    if shutil.which("p4c-bm2-ss") is None:
        pytest.skip("needs p4c-bm2-ss")
    sizes = checkout / "p4src" / "include" / "sizes.p4"
    sizes.write_text(sizes.read_text().replace("SLOTS = 8192;", "SLOTS = 7777;"))  # as many digits: p4c notes columns
    made = run(V1MODEL, checkout)
    assert made.returncode == 0, made.stderr
    for variant in VARIANTS:
        name = f"p4src/build/{variant}"
        resized = Program.load(ROOT / f"{name}.json").with_slots(7777)
        assert json.loads((checkout / f"{name}.json").read_text()) == json.loads(resized.config)
        assert (checkout / f"{name}.p4info.txtpb").read_text() == resized.p4info
