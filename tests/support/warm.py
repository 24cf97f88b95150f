"""A Python that has already imported the modules that programs need, so that they begin within milliseconds.

``warm_python()`` is the path of an executable that takes the place of ``sys.executable``: the same arguments, streams,
environment, folder and network namespace; the program ends as it would otherwise, with the same status or signal, and
is killed when its caller is. It is a process of its own, forked from a server that has no threads. Otherwise each of a
test's many ranks would spend four seconds of processor time on importing PyTorch and the modules that its optimisers
import when they are first used. Controllers and embedded switches, which spend a second on imports and on reading the
P4 program, are started by `warm_process.py`. All processes of a run of the tests share the servers; the first that
needs one starts it. That our programs start in interpreters of their own is tested in tests/endtoend,
tests/unit/test_spawn.py and tests/controller/test_local_switch.py.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import gc
import importlib
import itertools
import json
import os
import runpy
import selectors
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[2]
CLIENT = Path(__file__).with_name("warm_client.py")
# The modules that a server imports, by the server's name.
MODULES = {
    "torch": (
        "numpy", "torch", "torch._dynamo", "torch.distributed.fsdp", "torch.distributed.run",
        "torch.distributed.checkpoint.state_dict_saver", "torch.distributed.checkpoint.state_dict_loader",
        "torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook", "serene.torch.group", "serene.torch.optimizer",
        "serene.controller.http.client", "httpcore", "serene.workers.options", "serene.workers.results",
        "serene.workers.training", "serene.experiments.run.cli", "serene.experiments.shared.style",
    ),
    "controller": (
        "serene.controller.commands.cli", "serene.controller.daemon", "pydantic.v1", "serene.embedded.command.cli",
        "concurrent.futures.thread", "grpc._server", "grpc._interceptor", "encodings.idna",
        "tests.support.warm_programs",
    ),
    "nothing": (),
}  # fmt: skip
HOME = "SERENE_WARM_PYTHONS"  # the environment variable that names the servers' folder
LIFELINE = "lifeline"
PR_SET_PDEATHSIG = 1
END = b"\n"
# Tests search /proc/PID/environ for a variable MARK (tests/runs.py). There the kernel shows the environment with which
# the program began, for a fork the server's: so the fork writes MARK over the variable ROOM.
MARK, ROOM, BLANK = "SERENE_TEST_RUN", "SERENE_WARM_ROOM", "." * 64
FILES = 4  # descriptors that a caller sends: its three streams and its network namespace


# NumPy and PyTorch would start a thread for each processor: in each of a test's many processes, and in a server, which
# could not be forked then.
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}


def begin_session() -> None:
    """To be called in the first process of a run of the tests, before it starts other processes or a server: all of
    them find the same servers then, which end when this process does, however it ends."""
    home = Path(tempfile.mkdtemp(prefix="serene-warm-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    os.environ[HOME] = str(home)
    os.mkfifo(home / LIFELINE)
    os.open(home / LIFELINE, os.O_RDWR)  # never closed: a reader sees the end of its input when this process has ended


@cache
def warm_python(modules: str = "torch") -> str:
    """The path of an executable that works like Python, but has ``modules`` imported already. It can be used as long as
    the run of the tests lasts."""
    listener = server(modules)
    executable = listener.with_name(f"python-{modules}-{os.getpid()}")
    # The shell begins it, and Python takes its first lines for a string: after #! a path must be short, without blanks.
    begin = f"#!/bin/sh\n'''exec' {shlex.quote(sys.executable)} -IS \"$0\" \"$@\"\n'''\n"
    executable.write_text(f"{begin}SOCKET = {str(listener)!r}\n{CLIENT.read_text()}")
    executable.chmod(0o755)
    return str(executable)


@cache
def server(modules: str) -> Path:
    """The socket of the server that has imported MODULES[modules]; starts one if there is none yet."""
    if HOME not in os.environ:  # no other process shares this folder
        begin_session()
    home = Path(os.environ[HOME])
    listener = home / modules
    with (home / f"{modules}.lock").open("w") as lock, (home / LIFELINE).open("rb", buffering=0) as lifeline:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not listener.exists():
            errors = listener.with_suffix(".log")
            with errors.open("wb") as to:  # not this process's: whoever reads that to its end would wait for the server
                process = subprocess.Popen(
                    [sys.executable, "-m", __name__, str(listener), modules],
                    stdin=lifeline,
                    stdout=subprocess.PIPE,
                    stderr=to,
                    cwd=ROOT,
                    env={**os.environ, **ONE_THREAD, ROOM: BLANK},
                    start_new_session=True,  # a terminal's Ctrl-C ends the tests, and thereby the server
                )
            assert process.stdout is not None
            with process.stdout as stdout:
                assert stdout.readline() == b"ready\n", f"the server of warm Pythons ended: {errors.read_text()}"
            process.returncode = 0  # Popen is not to wait for it: it may outlive this process
    return listener


class Caller:
    """The process that asked for a program, and waits for its end."""

    def __init__(self, connection: socket.socket, pid: int) -> None:
        self.connection = connection
        self.pid = pid
        self.watch = os.pidfd_open(pid)

    def close(self) -> None:
        self.connection.close()
        os.close(self.watch)


def serve(path: str) -> dict[str, Any]:
    """Forks a process for each request, and returns the request in that process. In the server it does not return: it
    exits at the end of its input."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    selector = selectors.DefaultSelector()
    selector.register(sys.stdin, selectors.EVENT_READ)
    selector.register(listener, selectors.EVENT_READ)
    os.write(1, b"ready\n")
    callers: list[Caller] = []
    while True:
        key = selector.select()[0][0]
        if key.fileobj is listener:
            connection, _ = listener.accept()
            message, files, _, _ = socket.recv_fds(connection, 4, FILES, socket.MSG_WAITALL)
            with connection.makefile("rb") as stream:
                request = stream.read(int.from_bytes(message, "big"))
            if not request.endswith(END):  # the caller was killed before it had sent its request
                pid = None
            elif (pid := os.fork()) == 0:
                for ours in (listener, connection):
                    ours.close()
                for other in callers:
                    other.close()
                selector.close()
                take_place(files)
                return dict(json.loads(request))
            for file in files:
                os.close(file)
            if pid is None:
                connection.close()
                continue
            with suppress(OSError):  # the caller was killed meanwhile
                connection.sendall(pid.to_bytes(4, "big"))
            callers.append(Caller(connection, pid))
            for end in (connection, callers[-1].watch):
                selector.register(end, selectors.EVENT_READ, callers[-1])
        elif key.fileobj is sys.stdin:
            for caller in callers:
                os.kill(caller.pid, signal.SIGKILL)
            shutil.rmtree(Path(path).parent, ignore_errors=True)
            raise SystemExit
        else:
            caller = key.data
            if key.fileobj is caller.connection:  # the caller was killed
                os.kill(caller.pid, signal.SIGKILL)
            status = os.waitstatus_to_exitcode(os.waitpid(caller.pid, 0)[1])
            with suppress(OSError):
                caller.connection.sendall(status.to_bytes(4, "big", signed=True))
            for end in (caller.connection, caller.watch):
                selector.unregister(end)
            callers.remove(caller)
            caller.close()


def take_place(files: Sequence[int]) -> None:
    """Gives the new process the caller's streams and network namespace, and has it end with the server."""
    os.setsid()
    for stream, file in enumerate(files[:3]):
        os.dup2(file, stream)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.fstat(files[3]).st_ino != os.stat("/proc/self/ns/net").st_ino and libc.setns(files[3], 0):
        raise OSError(ctypes.get_errno(), "setns")
    for file in files:
        os.close(file)


def show(mark: str) -> None:
    """Puts MARK=mark in the place of ROOM in what the kernel shows as this process's environment."""
    variables = ctypes.POINTER(ctypes.c_void_p).in_dll(ctypes.CDLL(None), "environ")
    room, shown = f"{ROOM}={BLANK}".encode(), f"{MARK}={mark}".encode()
    assert len(shown) <= len(room), mark
    for place in itertools.takewhile(bool, map(variables.__getitem__, itertools.count())):
        if ctypes.string_at(place) == room:
            ctypes.memmove(place, shown.ljust(len(room), b"\0"), len(room))


def run(request: dict[str, Any]) -> None:
    """Does what a command line of Python asks for: [-u] [-W RULE] (-m MODULE | FILE) ARGUMENT..."""
    os.chdir(request["folder"])
    if MARK in request["environment"]:
        show(request["environment"][MARK])
    os.environ.clear()
    os.environ.update(request["environment"])
    tempfile.tempdir = None  # it is the server's
    arguments: list[str] = request["arguments"]
    # The server's own stream objects are for the same descriptors, and nothing has been read or written through them.
    sys.stderr.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    while arguments[0] in ("-u", "-W"):
        if arguments.pop(0) == "-u":
            sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
        else:
            sys.warnoptions.append(arguments.pop(0))
            warnings._processoptions(sys.warnoptions)  # type: ignore[attr-defined] # as Python itself does
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path[0] = str(Path(arguments[0]).resolve().parent)
        runpy.run_path(arguments[0], run_name="__main__")


def end_of(request: dict[str, Any]) -> NoReturn:
    """Runs the request, and ends as Python does, but without destroying the imported modules, which would take a third
    of a second."""
    status = 1
    try:
        run(request)
        status = 0
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        else:
            status = end.code or 0
    except KeyboardInterrupt:
        status = 128 + signal.SIGINT
    except BaseException:
        sys.excepthook(*sys.exc_info())
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(status & 255)


if __name__ == "__main__":
    gc.disable()
    for module in MODULES[sys.argv[2]]:
        importlib.import_module(module)
    gc.freeze()
    assert len(os.listdir("/proc/self/task")) == 1  # a lock that another thread held would stay held in a fork
    asked = serve(sys.argv[1])
    gc.enable()
    end_of(asked)
