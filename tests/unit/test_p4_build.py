"""The committed compiler output matches the P4 sources, was not edited, and contains no absolute path."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from serene.program import Program

ROOT = Path(__file__).resolve().parents[2]
VARIANTS = ("serene", "serene_jumbo", "serene_leaf", "serene_root")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The sources, their output and the script, in a place of their own."""
    shutil.copytree(ROOT / "p4src", tmp_path / "p4src")
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "compile_p4.py", tmp_path / "scripts")
    return tmp_path


def compile_p4(checkout: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "scripts/compile_p4.py", *options]
    return subprocess.run(
        command, cwd=checkout, capture_output=True, text=True, timeout=900, env=environment or None, check=False
    )


def test_p4_output_digest_matches_the_sources() -> None:
    checked = compile_p4(ROOT, "--check", PATH="/nowhere")
    assert checked.returncode == 0, checked.stderr
    assert "nothing was compiled: p4c-bm2-ss is not installed" in checked.stdout


@pytest.mark.parametrize("source", ["include/sizes.p4", "v1model/barrier.p4", "v1model/extra.p4"])
def test_p4_check_detects_changed_or_new_sources(checkout: Path, source: str) -> None:
    with (checkout / "p4src" / source).open("a") as file:
        file.write("// one more line\n")
    checked = compile_p4(checkout, "--check")
    assert checked.returncode == 1
    for variant in VARIANTS:
        assert f"the sources of {variant} changed" in checked.stderr
    assert "make p4" in checked.stderr


@pytest.mark.parametrize(
    ("suffix", "was", "becomes"), [(".json", "0xffffffff", "0xfffffffe"), (".p4info.txtpb", "size: 8192", "size: 8191")]
)
def test_p4_check_detects_edited_output(checkout: Path, suffix: str, was: str, becomes: str) -> None:
    """Edits one digit of a constant, and one size."""
    for variant in VARIANTS:
        path = checkout / "p4src" / "build" / f"{variant}{suffix}"
        text = path.read_text()
        assert was in text
        path.write_text(text.replace(was, becomes, 1))
    checked = compile_p4(checkout, "--check")
    assert checked.returncode == 1
    for variant in VARIANTS:
        assert f"the output of {variant} is not as the compiler wrote it" in checked.stderr


def test_p4_check_names_missing_output(checkout: Path) -> None:
    names = ("serene.json", "serene_jumbo.p4info.txtpb", "serene_leaf.sha256")
    for name in names:
        (checkout / "p4src" / "build" / name).unlink()
    checked = compile_p4(checkout, "--check")
    assert checked.returncode == 1
    assert all(f"{name} of" in checked.stderr for name in names) and checked.stderr.count("missing") == len(names)


def test_missing_p4_compiler_is_named_and_output_is_kept(checkout: Path) -> None:
    before = (checkout / "p4src" / "build" / "serene.json").read_bytes()
    compiled = compile_p4(checkout, PATH="/nowhere")
    assert compiled.returncode == 1
    assert compiled.stderr.startswith("error: p4c-bm2-ss is not installed")
    assert (checkout / "p4src" / "build" / "serene.json").read_bytes() == before


@pytest.mark.parametrize("variant", VARIANTS)
def test_p4_output_contains_no_absolute_paths(variant: str) -> None:
    text = (ROOT / "p4src" / "build" / f"{variant}.json").read_text()
    assert not Path(json.loads(text)["program"]).is_absolute()
    assert '"/' not in text
    assert f"{Path.home()}/" not in text and str(ROOT) not in text


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
        return compile_p4(checkout, "--check", PATH=with_compiler, MADE=str(made))

    same = check(committed)
    assert same.returncode == 0 and f"{tools}/p4c-bm2-ss makes this output again" in same.stdout, same.stderr
    assert compile_p4(checkout, PATH=with_compiler, MADE=str(edited)).returncode == 0
    assert compile_p4(checkout, "--check", PATH="/nowhere").returncode == 0
    checked = check(committed)
    assert checked.returncode == 1
    assert f"serene_leaf.json of serene_leaf not as {tools}/p4c-bm2-ss makes it now" in checked.stderr
    assert "serene_root" not in checked.stderr and "make p4" in checked.stderr


@pytest.mark.timeout(1000)  # four compilations
def test_p4_compilation_is_reproducible(checkout: Path) -> None:
    if shutil.which("p4c-bm2-ss") is None:
        pytest.skip("needs p4c-bm2-ss")
    for path in (checkout / "p4src" / "build").glob("*.*"):  # or output that nobody compiled would be compared
        path.unlink()
    compiled = compile_p4(checkout)
    assert compiled.returncode == 0, compiled.stderr
    for variant in VARIANTS:
        for name in (f"{variant}.json", f"{variant}.p4info.txtpb", f"{variant}.sha256"):
            assert (checkout / "p4src/build" / name).read_text() == (ROOT / "p4src/build" / name).read_text(), name


@pytest.mark.timeout(1000)  # four compilations
def test_p4c_output_for_other_slot_counts_equals_with_slots(checkout: Path) -> None:
    if shutil.which("p4c-bm2-ss") is None:
        pytest.skip("needs p4c-bm2-ss")
    sizes = checkout / "p4src" / "include" / "sizes.p4"
    sizes.write_text(sizes.read_text().replace("SLOTS = 8192;", "SLOTS = 7777;"))  # as many digits: p4c notes columns
    made = compile_p4(checkout, **os.environ)
    assert made.returncode == 0, made.stderr
    for variant in VARIANTS:
        name = f"p4src/build/{variant}"
        resized = Program.load(ROOT / f"{name}.json").with_slots(7777)
        assert json.loads((checkout / f"{name}.json").read_text()) == json.loads(resized.config)
        assert (checkout / f"{name}.p4info.txtpb").read_text() == resized.p4info
