"""Watchers of a switch whose programs change, and what a machine without room says to those who want one."""

from __future__ import annotations

import queue
import threading
from pathlib import Path

import grpc
import pytest

from serene.switch import Switch
from serene.switch.p4runtime import P4RuntimeServer
from serene.switch.tracing import Tracing
from tests.disks import disk, fill
from tests.switch.conftest import DEVICE_ID, embedded_target
from tests.switch.p4rt_controller import Code, Controller, load_p4info
from tests.switch.p4rt_probe import JSON, P4INFO, PROGRAMS
from tests.switch.watching import PATIENCE_S, Watch, serenectl

OTHER = PROGRAMS / "shapes.json"


def server() -> P4RuntimeServer:
    return P4RuntimeServer((), address="127.0.0.1:0", device_id=DEVICE_ID, program=Switch.load(JSON))


def primary(port: int, p4info: Path = P4INFO) -> Controller:
    controller = Controller(f"127.0.0.1:{port}", DEVICE_ID, load_p4info(p4info))
    controller.become_primary()
    return controller


def test_a_watcher_is_told_when_the_next_program_has_not_what_it_looks_for() -> None:
    with server() as running:
        one, every = Watch(running.port, match="probe.a == 1"), Watch(running.port)
        controller = primary(running.port, PROGRAMS / "shapes.p4info.txtpb")
        controller.set_pipeline("VERIFY_AND_COMMIT", OTHER.read_bytes())
        assert one.ended.wait(PATIENCE_S), "it would wait for ever"
        assert one.error.startswith("another program runs now, and what was asked for is not in it: there is no header")
        assert not every.ended.is_set()
        controller.close()
        every.close()


def test_nobody_waits_while_what_a_watcher_needs_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The watcher came when the program was saved already, and begins to be traced when it is committed."""
    prepare = Tracing.prepare_tracing
    compiled: queue.SimpleQueue[bool] = queue.SimpleQueue()

    with server() as running:

        def lock_is_free() -> bool:
            """For others than this thread."""
            said: queue.SimpleQueue[bool] = queue.SimpleQueue()

            def attempt() -> None:
                free = running._lock.acquire(timeout=2)
                if free:
                    running._lock.release()
                said.put(free)

            threading.Thread(target=attempt).start()
            return said.get()

        def noted(self: Tracing) -> None:
            if not self.can_trace:
                compiled.put(lock_is_free())
            prepare(self)

        controller = primary(running.port)
        controller.set_pipeline("VERIFY_AND_SAVE", JSON.read_bytes())
        watched = Watch(running.port)
        monkeypatch.setattr(Tracing, "prepare_tracing", noted)
        controller.set_pipeline("COMMIT")
        assert compiled.get(timeout=PATIENCE_S), "the lock was held"
        assert compiled.empty()
        controller.close()
        watched.close()


def test_packets_that_found_no_room_are_told_of() -> None:
    with server() as running, serenectl("--switch", f"127.0.0.1:{running.port}") as watching:
        assert watching.stderr is not None
        assert watching.stderr.readline().endswith("are traced\n")
        (watcher,) = running._device.observers._watchers
        watcher.offer(None, lost=3)
        assert watching.stderr.readline() == "3 packets came too fast to be traced\n"
        watching.terminate()


@pytest.mark.parametrize(
    ("place", "code", "words"),
    [("full", Code.RESOURCE_EXHAUSTED, "No space left on device"), ("a file", Code.INTERNAL, "Not a directory")],
)
def test_a_machine_that_cannot_compile_does_not_blame_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, code: grpc.StatusCode, words: str
) -> None:
    with embedded_target() as target, disk(tmp_path / "small", "64k") as small:
        fill(small)
        (tmp_path / "file").touch()
        monkeypatch.setenv("XDG_CACHE_HOME", str(small if place == "full" else tmp_path / "file"))
        controller = target.controller()
        controller.become_primary()
        with pytest.raises(grpc.RpcError) as refused:
            controller.set_pipeline("VERIFY", JSON.read_bytes())
        assert refused.value.code() is code
        assert words in refused.value.details()
        assert "XDG_CACHE_HOME=/PATH chooses another place" in refused.value.details()
        controller.close()
