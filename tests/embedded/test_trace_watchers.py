"""Watchers of a switch whose programs change, and of a machine without room."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from serene.embedded import Switch
from serene.embedded.p4runtime import P4RuntimeServer
from serene.embedded.trace.recording import Tracing
from tests.disks import disk, fill
from tests.embedded import running as processes
from tests.embedded.conftest import Target
from tests.embedded.p4rt_controller import PATIENCE_S, Code, load_p4info, until
from tests.embedded.p4rt_probe import JSON, PROGRAMS, Probing
from tests.embedded.refusals import refused
from tests.embedded.running import DEVICE_ID, Watch

OTHER = PROGRAMS / "shapes.json"


@pytest.fixture
def running() -> Iterator[P4RuntimeServer]:
    with P4RuntimeServer((), address="127.0.0.1:0", device_id=DEVICE_ID, program=Switch.load(JSON)) as server:
        yield server


@pytest.fixture
def primary(running: P4RuntimeServer) -> Iterator[Probing]:
    with Probing(f"127.0.0.1:{running.port}", DEVICE_ID) as controller:
        controller.become_primary()
        yield controller


def test_watch_ends_if_the_new_program_lacks_its_header(running: P4RuntimeServer, primary: Probing) -> None:
    one, every = Watch(running.port, match="probe.a == 1"), Watch(running.port)
    primary.push(OTHER.read_bytes(), load_p4info(OTHER.with_suffix(".p4info.txtpb")))
    assert one.ended.wait(PATIENCE_S), "it would wait for ever"
    assert one.error.startswith("the program was replaced, and the new one lacks what was requested: no header")
    assert not every.ended.is_set()
    every.close()


def test_tracing_is_compiled_without_holding_the_server_lock(
    running: P4RuntimeServer, primary: Probing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watcher comes when the program is saved, and is traced once it is committed."""
    prepare = Tracing.prepare_tracing
    compiled: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def lock_is_free() -> bool:
        """For others than this thread."""
        with ThreadPoolExecutor(1) as other:
            free = other.submit(running._lock.acquire, timeout=2).result()
            if free:
                other.submit(running._lock.release).result()
        return free

    def noted(self: Tracing) -> None:
        if not self.can_trace:
            compiled.put(lock_is_free())
        prepare(self)

    primary.push(action="VERIFY_AND_SAVE")
    watched = Watch(running.port)
    monkeypatch.setattr(Tracing, "prepare_tracing", noted)
    primary.push_nothing("COMMIT")
    assert compiled.get(timeout=PATIENCE_S), "the lock was held"
    assert compiled.empty()
    watched.close()


def test_trace_watcher_reports_count_of_untraced_packets(running: P4RuntimeServer, tmp_path: Path) -> None:
    watching = processes.Tracing(tmp_path, running.port)
    try:
        (watcher,) = running._device.observers._watchers
        watcher.offer(None, lost=3)
        until(lambda: watching.lines[1:] == ["3 packets were not traced: they arrived too fast"], "it is told")
    finally:
        watching.kill()


@pytest.mark.parametrize(
    ("place", "code", "words"),
    [("full", Code.RESOURCE_EXHAUSTED, "No space left on device"), ("a file", Code.INTERNAL, "Not a directory")],
)
def test_failed_compilation_blames_the_machine_not_the_program(
    fresh: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, code: Code, words: str
) -> None:
    with disk(tmp_path / "small", "64k") as small, fresh.controller() as controller:
        fill(small)
        (tmp_path / "file").touch()
        monkeypatch.setenv("XDG_CACHE_HOME", str(small if place == "full" else tmp_path / "file"))
        controller.become_primary()
        message = refused(code, controller.push, action="VERIFY")
        assert words in message and "XDG_CACHE_HOME=/PATH chooses another place" in message
