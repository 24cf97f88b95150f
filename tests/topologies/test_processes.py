"""Background programs: ports, readiness, and stopping."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from serene.topologies.processes import ROOT, Background, NotReady, bmv2, free_ports, listens, program
from tests.ports import some_port


@pytest.fixture
def listener() -> Iterator[int]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", some_port()))
        server.listen()
        yield server.getsockname()[1]


def background(code: str, log: Path) -> Background:
    return Background("snippet", [sys.executable, "-c", code], log)


def test_free_ports_skips_a_port_in_use(listener: int) -> None:
    (chosen,) = free_ports(listener)
    assert chosen > listener
    assert not listens(chosen)


def test_free_ports_returns_the_preferred_port_if_free(listener: int) -> None:
    free = free_ports(listener)
    assert free_ports(*free) == free


def test_free_ports_chosen_together_differ() -> None:
    """None of them is bound yet, and every request prefers the same port."""
    assert len(set(free_ports(*[21000] * 8, kind=socket.SOCK_DGRAM))) == 8
    assert len(set(free_ports(21000, 21001, 21000))) == 3


def test_free_ports_skips_a_udp_port_in_use() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        end.bind(("127.0.0.1", 0))
        port = end.getsockname()[1]
        assert free_ports(port, kind=socket.SOCK_DGRAM) != [port]


@pytest.mark.parametrize("option", ["--thrift-port arg", "--nanolog arg"], ids=["with Thrift", "without"])
def test_bmv2_without_thrift_gets_no_thrift_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str) -> None:
    """It would refuse the option and end. A machine has one build: here a script prints the help of each."""
    switch = tmp_path / "simple_switch_grpc"
    switch.write_text(f"#!/bin/sh\necho '  {option}  ...'\n")
    switch.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    thrift = ["--thrift-port", "9090"] if "thrift" in option else []
    assert bmv2(9090) == [str(switch), "--no-p4", "--device-id", "0", *thrift]


def owner(temporary: Path) -> tuple[subprocess.Popen[str], Path]:
    """A process with a folder of its own, and the folder."""
    code = "from serene.topologies.processes import OwnFolder; folder = OwnFolder(); print(folder.path, flush=True); "
    process = subprocess.Popen(
        [sys.executable, "-c", f"{code}input(); folder.remove()"], env={**os.environ, "TMPDIR": str(temporary)},
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_scratch_folders_of_killed_owners_are_removed(tmp_path: Path) -> None:
    of_others = tmp_path / "serene-of-others"
    of_others.mkdir()
    with contextlib.ExitStack() as stack:
        (killed, left), (running, kept) = owner(tmp_path), owner(tmp_path)
        for process in (killed, running):
            stack.enter_context(process)
            stack.callback(process.kill)
        killed.kill()
        killed.wait()
        assert {*tmp_path.iterdir()} == {left, kept, of_others}
        last, its = owner(tmp_path)
        stack.enter_context(last)
        stack.callback(last.kill)
        assert {*tmp_path.iterdir()} == {kept, its, of_others}
        for process in (running, last):
            process.communicate("\n", timeout=60)
            assert process.returncode == 0
        assert {*tmp_path.iterdir()} == {of_others}


SERVER = "import socket, time; server = socket.create_server(('127.0.0.1', {port})); time.sleep(60)"
SHARING_SERVER = SERVER.replace("))", "), reuse_port=True)")


def test_port_of_another_program_does_not_count_as_ready(listener: int, tmp_path: Path) -> None:
    late = background(SERVER.format(port=listener), tmp_path / "late.log")
    with pytest.raises(NotReady, match=r"snippet ended with status 1:(.|\n)*in use"):
        late.wait_until(lambda: late.serves(listener), 60)
    (free,) = free_ports(listener)
    other = background(SERVER.format(port=free), tmp_path / "other.log")
    other.wait_until(lambda: other.serves(free), 60)
    assert listens(listener) and not other.serves(listener)
    other.stop()


def test_shared_port_does_not_count_as_ready(tmp_path: Path) -> None:
    """gRPC's servers share their ports like this: each gets some of the connections."""
    (port,) = free_ports(21100)
    first = background(SHARING_SERVER.format(port=port), tmp_path / "first.log")
    first.wait_until(lambda: first.serves(port), 60)
    second = background(SHARING_SERVER.format(port=port), tmp_path / "second.log")
    with pytest.raises(NotReady, match=f"port {port} of snippet is also used by another program"):
        second.wait_until(lambda: second.serves(port), 60)
    second.stop()
    assert first.serves(port)
    first.stop()


def test_free_ports_fails_if_no_port_is_left() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", (1 << 16) - 1))
        server.listen()
        with pytest.raises(NotReady, match="no port from 65535 up is free on loopback"):
            free_ports((1 << 16) - 1)


def test_missing_program_is_named() -> None:
    with pytest.raises(NotReady, match=r"no-such-program is not installed.*make setup"):
        program("no-such-program")


def test_program_that_ends_early_shows_the_end_of_its_log(tmp_path: Path) -> None:
    process = background("print('first'); print('port 5 is taken'); raise SystemExit(3)", tmp_path / "log")
    with pytest.raises(NotReady, match=r"snippet ended with status 3:\n(.*\n)*port 5 is taken"):
        process.wait_until(lambda: False, 30)
    process.stop()


def test_program_that_never_becomes_ready_times_out(tmp_path: Path) -> None:
    process = background("import signal; signal.pause()", tmp_path / "log")
    with pytest.raises(NotReady, match=r"not ready within 0\.2 s"):
        process.wait_until(lambda: False, 0.2)
    process.stop()
    assert process.poll() == -signal.SIGTERM


def test_program_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = background(
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); signal.pause()", log
    )
    process.wait_until(lambda: "up" in process.tail(), 30)
    process.stop(timeout_s=0.2)
    assert process.poll() == -signal.SIGKILL


def test_only_a_requested_log_is_kept(tmp_path: Path) -> None:
    kept = background("pass", tmp_path / "log")
    scratch = [Background("snippet", [sys.executable, "-c", "pass"]) for _ in range(2)]
    assert scratch[0].log != scratch[1].log
    for process in (kept, *scratch):
        process.wait_until(lambda: process.poll() == 0, 30)  # noqa: B023
        process.stop()
    assert kept.log.exists()
    assert not any(process.log.exists() for process in scratch)
