"""Rights of the C compiler, and the cache of its output."""

from __future__ import annotations

import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from serene.native import CompileFailed, UnsafeCache, compile_source
from serene.native import build as building
from serene.native import cache as caching
from serene.native.build import compiler_user
from tests.controller.processes import until
from tests.disks import disk, fill


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
    return tmp_path / "serene" / "native"


@pytest.fixture
def headers(tmp_path: Path) -> Path:
    """What the trial compilation, which asks whether the compiler runs as an ordinary user, does not have."""
    directory = tmp_path / "headers"
    directory.mkdir()
    (directory / "wide.h").write_text("")
    return directory


def test_compiler_runs_with_few_rights(
    open_place: Path, headers: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = open_place / "report"
    tell = f'(id -u; id -G; grep -E "NoNewPrivs|CapEff" /proc/self/status; ulimit -t; ulimit -v; env; pwd) > {report}'
    monkeypatch.setenv("CC", pretend_compiler(open_place, f'[ -e wide.h ] && {tell}; exec /usr/bin/cc "$@"'))
    monkeypatch.setenv("SECRET", "of ours")
    library = compile_source("int answer(void) { return 42; }", headers=headers)
    text = report.read_text()
    user, groups, *_ = text.splitlines()
    if os.geteuid() == 0:
        assert int(user) in range(61184, 65520) and groups == user
        assert re.search(r"CapEff:\s*0+$", text, re.MULTILINE)
    assert re.search(r"NoNewPrivs:\s*1", text)
    assert "SECRET" not in text and "of ours" not in text
    limits = [line for line in text.splitlines() if line.isdigit()][-2:]
    assert len(limits) == 2 and int(limits[0]) == building.TIME_LIMIT_S
    # What it made is ours, and nobody else can change it.
    for path in (cache, library, library.with_suffix(".c")):
        status = path.stat()
        assert status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    assert {path.suffix for path in cache.iterdir()} == {".so", ".c"}


def test_compiler_over_its_time_limit_is_stopped(
    open_place: Path, headers: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = '[ -e wide.h ] || exec /usr/bin/cc "$@"'
    monkeypatch.setenv("CC", pretend_compiler(open_place, f"{trial}; sleep 1000 & sleep 1000"))
    monkeypatch.setattr(building, "TIME_LIMIT_S", 2)
    with pytest.raises(CompileFailed, match="took more than 2 s"):
        compile_source("int answer;", headers=headers)
    assert not list(cache.iterdir())


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("exit 1", "ended with status 1, with no output"),
        ("echo 'what is -shared?' >&2; exit 3", r"ended with status 3, with this output:\nwhat is -shared\?"),
        ("exit 0", "ended with status 0, with no output"),
    ],
)
def test_unusable_compiler_is_named(
    open_place: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, script: str,
    message: str,
) -> None:  # fmt: skip
    compiler = pretend_compiler(open_place, script)
    monkeypatch.setenv("CC", compiler)
    with pytest.raises(CompileFailed, match=rf"^{compiler}, which \$CC names, compiles no C program: it {message}"):
        compile_source("int answer;")
    assert not caplog.records, "root or not makes no difference"


def test_compile_error_in_our_code_asks_for_a_report(cache: Path) -> None:
    with pytest.raises(
        CompileFailed, match=r"refuses Serene's code \(please report it\): it ended with status 1, with this output:\n"
    ):
        compile_source("int answer(")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run it as another user")
def test_compiler_reachable_only_by_root_runs_as_root(
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
def test_build_cache_writable_by_others_is_refused(cache: Path, mode: int) -> None:
    compile_source(SOURCE)
    cache.chmod(mode)
    with pytest.raises(UnsafeCache, match=f"chmod go-w {cache}"):
        compile_source(SOURCE)
    cache.chmod(0o755)
    assert compile_source(SOURCE).parent == cache


def test_build_cache_below_a_writable_folder_is_refused(cache: Path) -> None:
    compile_source(SOURCE)
    cache.parent.chmod(0o777)
    with pytest.raises(UnsafeCache, match=str(cache.parent)):
        compile_source(SOURCE)
    cache.parent.chmod(0o1777)  # as /tmp: what is not theirs they cannot replace
    assert compile_source(SOURCE).exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("what", ["the cache", "what is above", "the library"])
def test_build_cache_of_another_owner_is_refused(cache: Path, what: str) -> None:
    library = compile_source(SOURCE)
    path = {"the cache": cache, "what is above": cache.parent, "the library": library}[what]
    os.chown(path, 12345, 12345)
    with pytest.raises(UnsafeCache, match="belongs to user 12345"):
        compile_source(SOURCE)


def test_symbolic_link_in_place_of_a_library_is_refused(cache: Path, tmp_path: Path) -> None:
    library = compile_source(SOURCE)
    other = tmp_path / "other.so"
    other.write_bytes(library.read_bytes())
    other.chmod(0o666)
    library.unlink()
    library.symlink_to(other)
    with pytest.raises(UnsafeCache):
        compile_source(SOURCE)


def source(number: int) -> str:
    return f"int cached(void) {{ return {number}; }}"


def used_long_ago(*paths: Path, hours: float = 2.0) -> None:
    for path in paths:
        os.utime(path, (time.time() - 3600 * hours,) * 2)


@pytest.fixture
def quick_compiler(open_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that ask only which libraries there are."""
    monkeypatch.setenv("CC", pretend_compiler(open_place, "[ -e source.c ] && cp source.c library.so; exit 0"))


@pytest.mark.usefixtures("quick_compiler")
def test_build_cache_keeps_the_libraries_used_last(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caching, "KEPT", 3)
    libraries = [compile_source(source(number)) for number in range(4)]
    assert all(library.exists() for library in libraries), "whoever asked for one of them may not have loaded it yet"
    for age, library in enumerate(libraries):
        used_long_ago(library, library.with_suffix(".c"), hours=10 - age)
    assert compile_source(source(0)) == libraries[0], "used again"
    libraries.append(compile_source(source(4)))
    kept = [libraries[0], *libraries[3:]]
    assert {*cache.iterdir()} == {library.with_suffix(suffix) for library in kept for suffix in (".so", ".c")}


def test_library_requested_twice_at_once_is_built_once(
    open_place: Path, headers: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by the ranks of a program, or by two switches. The compiler ends when both have looked into the cache."""
    calls, go, asked = open_place / "calls", open_place / "go", list[Path]()
    script = f"echo >> {calls}; while [ ! -e {go} ]; do sleep 0.02; done"
    monkeypatch.setenv("CC", pretend_compiler(open_place, f'[ -e wide.h ] && {{ {script}; }}; exec /usr/bin/cc "$@"'))

    def in_cache(library: Path) -> bool:
        asked.append(library)
        return caching.in_cache(library)

    monkeypatch.setattr(building, "in_cache", in_cache)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(compile_source, SOURCE, (), headers)
        until(calls.exists, "the first one compiles")
        before = len(asked)
        second = pool.submit(compile_source, SOURCE, (), headers)
        until(lambda: len(asked) > before, "the second one asks")
        go.touch()
        assert first.result() == second.result()
    assert calls.read_text().count("\n") == 1
    assert {path.suffix for path in cache.iterdir()} == {".so", ".c"}


@pytest.mark.usefixtures("quick_compiler")
def test_old_leftovers_of_a_killed_build_are_removed(cache: Path) -> None:
    compile_source(source(0))
    staging, half = cache / "tmpabcdefgh", cache / f"{'0' * 32}.c"
    staging.mkdir()
    (staging / "library.so").write_bytes(b"half of it")
    half.write_text(SOURCE)
    compile_source(source(1))
    assert staging.exists() and half.exists(), "that build may be under way"
    used_long_ago(staging, half)
    compile_source(source(2))
    assert {path.suffix for path in cache.iterdir()} == {".so", ".c"} and len(list(cache.iterdir())) == 6


def test_pruning_does_not_remove_a_library_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One process removes libraries not used for long while another one asks for one of them."""
    monkeypatch.setattr(caching, "KEPT", 0)
    library, ended = tmp_path / "library.so", Event()

    def remove() -> None:
        while not ended.is_set():
            caching.prune(tmp_path)

    with ThreadPoolExecutor(1) as pool:
        removing = pool.submit(remove)
        asked = found = 0
        try:
            while asked < 5000 or not 0 < found < asked:  # either comes first now and then
                asked += 1
                library.touch()
                used_long_ago(library)
                if caching.in_cache(library):
                    found += 1
                    assert library.exists()
        finally:
            ended.set()
        removing.result()


@pytest.mark.parametrize(("full", "variable"), [("scratch", "TMPDIR"), ("cache", "XDG_CACHE_HOME")])
def test_full_disk_build_error_names_variable_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: str, variable: str
) -> None:
    """Sources are compiled on another disk than the one that keeps libraries."""
    places = {name: tmp_path / name for name in ("scratch", "cache")}
    places["scratch" if full == "cache" else "cache"].mkdir()
    with disk(places[full], "64k") as small:
        monkeypatch.setenv("XDG_CACHE_HOME", str(places["cache"]))
        monkeypatch.setattr(tempfile, "tempdir", str(places["scratch"]))
        fill(small, leave=12288)
        with pytest.raises(CompileFailed, match=f"cannot build in {small}.*No space left.*; {variable}=/PATH chooses"):
            compile_source(f"int answer(void) {{ return 42; }} /* {'.' * 40000} */")
