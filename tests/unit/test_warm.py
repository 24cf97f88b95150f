"""A warm Python behaves like a cold one in any folder, and fails if its server has ended."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands import output, run
from tests.support import warm

TELL = "import json, os, sys; print(json.dumps([sys.argv[1:], os.getcwd(), os.environ['SETTING']])); sys.exit(3)"
SHOW = """
import os
os.fork() and os.wait()
print(b"SERENE_TEST_RUN=of this run" in open("/proc/self/environ", "rb").read().split(b"\\0"), flush=True)
"""
WAIT = "import sys, time; print('here', flush=True); time.sleep(600)"


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Python and the servers of this test alone are in it; its name has blanks, and is short enough for a socket's."""
    with tempfile.TemporaryDirectory(prefix="with a blank ") as name:
        folder = Path(name)
        (folder / "python").symlink_to(sys.executable)
        monkeypatch.setattr(sys, "executable", str(folder / "python"))
        monkeypatch.setattr(tempfile, "tempdir", name)
        monkeypatch.setenv(warm.HOME, "")  # to be as it was, afterwards
        for cached in (warm.server, warm.warm_python):
            cached.cache_clear()
        warm.begin_session()
        yield folder
        kill_server()
    for cached in (warm.server, warm.warm_python):
        cached.cache_clear()


def kill_server() -> None:
    with socket.socket(socket.AF_UNIX) as asked:
        try:
            asked.connect(str(Path(os.environ[warm.HOME]) / "nothing"))
        except ConnectionRefusedError:
            return
        peer = asked.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, _, _ = struct.unpack("3i", peer)
    ended = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    select.select([ended], [], [])  # from then on nobody listens
    os.close(ended)


def script(folder: Path, text: str) -> str:
    path = folder / "program.py"
    path.write_text(text)
    return str(path)


def test_warm_python_keeps_arguments_cwd_env_and_status(folder: Path) -> None:
    python = warm.warm_python("nothing")
    done = run(python, script(folder, TELL), "an argument", "", folder=folder, environment={"SETTING": "by the caller"})
    assert done.returncode == 3, done.stderr
    assert json.loads(done.stdout) == [["an argument", ""], str(folder), "by the caller"]


def test_warm_process_and_its_forks_show_their_mark(folder: Path) -> None:
    """In /proc/PID/environ, where tests search for what is left of a run."""
    shown = output(warm.warm_python("nothing"), script(folder, SHOW), environment={warm.MARK: "of this run"})
    assert shown.split() == ["True", "True"]


def test_warm_program_ends_with_an_error_if_its_server_dies(folder: Path) -> None:
    command = [warm.warm_python("nothing"), script(folder, WAIT)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        kill_server()
        assert process.stdout.read() == ""  # nobody has it open any more
        assert process.wait(60) == 70


def test_warm_python_fails_without_its_server(folder: Path) -> None:
    python = warm.warm_python("nothing")
    kill_server()
    done = run(python, script(folder, TELL))
    assert done.returncode not in (0, 3)
    assert "ConnectionRefusedError" in done.stderr


def test_processes_of_one_run_share_the_warm_server(folder: Path) -> None:
    """The process that started the server may end first."""
    asked = "from tests.support import warm; print(warm.server('nothing'))"
    assert output(sys.executable, "-c", asked) == f"{os.environ[warm.HOME]}/nothing\n"
    assert run(warm.warm_python("nothing"), script(folder, TELL), environment={"SETTING": ""}).returncode == 3
