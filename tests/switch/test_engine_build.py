"""What reaches the compiler, what the compiler may do, and where its work is kept."""

from __future__ import annotations

import json
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from serene.switch import CompileFailed, Switch, UnsafeCache, load_program
from serene.switch import build as building
from serene.switch.build import compile_source, compiler_user
from serene.switch.codegen import generate
from serene.switch.names import identifier
from tests.switch.hostile import renamed
from tests.switch.sanitizers import PROGRAMS

# Identifiers made of a P4 name.
OURS = re.compile(r"\b((?:(?:valid|next|extract)_)?(?:[hsutfrva]|table|condition|state)\d+)_\w*")
SOURCES = {name: path.read_bytes() for name, (path, _) in PROGRAMS.items()}
HOSTILE = (
    '*/ __attribute__((constructor)) static void own{n}(void) {{ system("id > /tmp/owned"); }} /* {name}',
    '\\\n#include "/etc/passwd"\n// {n} {name}',
    '??/"; __asm__("int3"); {n} {name} %s%n',
    "ünïcödé ＿𝐱 {n} {name}\0",
)


@pytest.mark.parametrize("program", SOURCES)
@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_of_a_program_reaches_the_compiler(program: str, text: str) -> None:
    """Whatever a program calls its parts, its C is the same but for the readable ends of our own identifiers."""
    plain = generate(load_program(renamed(SOURCES[program], lambda n, name: f"n{n}")))
    hostile = generate(load_program(renamed(SOURCES[program], lambda n, name: text.format(n=n, name=name))))
    assert hostile.isascii()
    assert OURS.sub(r"\1", hostile) == OURS.sub(r"\1", plain)
    # ... and these ends are what they seem.
    ends = {match.group() for match in OURS.finditer(hostile)}
    assert ends and all(re.fullmatch(r"[a-z_]+\d+_[A-Za-z0-9_]{0,54}", end) for end in ends)


@pytest.mark.parametrize("program", SOURCES)
def test_strings_that_name_nothing_are_not_written_at_all(program: str) -> None:
    """Messages, source locations, meta data, errors' names, keys that the format does not know."""
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


def test_a_name_in_a_comment_runs_no_code(tmp_path: Path) -> None:
    """The attack as it was: the constructor runs when the library is loaded."""
    marker = tmp_path / "owned"
    attack = f'*/ #include <stdio.h>\n__attribute__((constructor)) static void f(void) {{ fopen("{marker}", "w"); }} /*'
    raw = json.loads(SOURCES["shapes"])
    raw["program"] = attack
    raw["parsers"][0]["parse_states"][0]["name"] = raw["parsers"][0]["init_state"] = attack
    raw["pipelines"][0]["tables"][0]["key"] = []
    Switch.load(json.dumps(raw).encode(), compiler_flags=("-O0",)).close()
    assert not marker.exists()


def test_identifiers() -> None:
    assert identifier("h", 3, "ethernet") == "h3_ethernet"
    assert identifier("a", 12, "Ingress.add") == "a12_Ingress_add"
    assert identifier("f", 0, "") == "f0_"
    assert len(identifier("f", 1, "x" * 500)) < 60


# -- the compiler's rights ---------------------------------------------------------------------------------------


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A directory that any user reaches, as /tmp is; pytest's own is root's alone."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


def pretend_compiler(place: Path, script: str) -> str:
    path = place / "cc"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "serene" / "switch"


def test_the_compiler_has_few_rights(open_place: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = open_place / "report"
    tell = f'(id -u; id -G; grep -E "NoNewPrivs|CapEff" /proc/self/status; ulimit -t; ulimit -v; env; pwd) > {report}'
    monkeypatch.setenv("CC", pretend_compiler(open_place, f'[ -e wide.h ] && {tell}; exec /usr/bin/cc "$@"'))
    monkeypatch.setenv("SECRET", "of ours")
    library = compile_source("int answer(void) { return 42; }")
    told = report.read_text()
    user, groups, *_ = told.splitlines()
    if os.geteuid() == 0:
        assert int(user) in range(61184, 65520) and groups == user
        assert re.search(r"CapEff:\s*0+$", told, re.MULTILINE)
    assert re.search(r"NoNewPrivs:\s*1", told)
    assert "SECRET" not in told and "of ours" not in told
    limits = [line for line in told.splitlines() if line.isdigit()][-2:]
    assert len(limits) == 2 and int(limits[0]) == building.TIME_LIMIT_S
    # What it made is ours, and nobody else can change it.
    for path in (cache, library, library.with_suffix(".c")):
        status = path.stat()
        assert status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    assert {path.suffix for path in cache.iterdir()} == {".so", ".c"}


def test_a_compiler_that_takes_too_long_is_stopped(
    open_place: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = '[ -e wide.h ] || exec /usr/bin/cc "$@"'
    monkeypatch.setenv("CC", pretend_compiler(open_place, f"{trial}; sleep 1000 & sleep 1000"))
    monkeypatch.setattr(building, "TIME_LIMIT_S", 2)
    with pytest.raises(CompileFailed, match="took more than 2 s"):
        compile_source("int answer;")
    assert not list(cache.iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run it as another user")
def test_a_compiler_that_only_root_reaches_runs_as_root_and_says_so(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tmp_path.chmod(0o700)
    compiler = pretend_compiler(tmp_path, 'exec /usr/bin/cc "$@"')
    monkeypatch.setenv("CC", compiler)
    assert compile_source("int answer;").exists()
    assert compiler_user(compiler) == "-"
    assert "runs as root" in caplog.text and compiler in caplog.text


# -- the cache ---------------------------------------------------------------------------------------------------

SOURCE = "int cached(void) { return 1; }"


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777])
def test_a_cache_that_others_may_write_to_is_refused(cache: Path, mode: int) -> None:
    compile_source(SOURCE)
    cache.chmod(mode)
    with pytest.raises(UnsafeCache, match=f"chmod go-w {cache}"):
        compile_source(SOURCE)
    cache.chmod(0o755)
    assert compile_source(SOURCE).parent == cache


def test_a_cache_below_a_directory_that_others_may_write_to_is_refused(cache: Path) -> None:
    compile_source(SOURCE)
    cache.parent.chmod(0o777)
    with pytest.raises(UnsafeCache, match=str(cache.parent)):
        compile_source(SOURCE)
    cache.parent.chmod(0o1777)  # as /tmp: what is not theirs they cannot replace
    assert compile_source(SOURCE).exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("what", ["the cache", "what is above", "the library"])
def test_what_belongs_to_somebody_else_is_refused(cache: Path, what: str) -> None:
    library = compile_source(SOURCE)
    path = {"the cache": cache, "what is above": cache.parent, "the library": library}[what]
    os.chown(path, 12345, 12345)
    with pytest.raises(UnsafeCache, match="belongs to user 12345"):
        compile_source(SOURCE)


def test_a_link_in_the_library_s_place_is_refused(cache: Path, tmp_path: Path) -> None:
    library = compile_source(SOURCE)
    other = tmp_path / "other.so"
    other.write_bytes(library.read_bytes())
    other.chmod(0o666)
    library.unlink()
    library.symlink_to(other)
    with pytest.raises(UnsafeCache):
        compile_source(SOURCE)
