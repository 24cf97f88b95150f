"""Workers that are forked from this process, which has imported PyTorch and read the data, rather than started anew.

A worker that starts as a program computes for some seconds before it trains. Where several runs go side by side that
would be taken from those that train already; a fork takes milliseconds, and the data are in memory once.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import runpy
import signal
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from typing import IO, Protocol

from serene.errors import SereneError
from serene.spawn import RUN
from topologies.isolation import die_with

CLONE_NEWNET = 0x40000000


class Process(Protocol):
    """What a run needs of a process that it started; `subprocess.Popen` has it, too."""

    def poll(self) -> int | None: ...

    def wait(self) -> int: ...

    def kill(self) -> None: ...

    def terminate(self) -> None: ...

    def send_signal(self, sig: int) -> None: ...


class ForkedProcess:
    """A child of this process."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._status: int | None = None

    def poll(self) -> int | None:
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
        return self._status

    def wait(self) -> int:
        if self._status is None:
            self._status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._status

    def wait_for(self, seconds: float) -> int | None:
        """Its exit status; None if it has not ended by then."""
        until = time.monotonic() + seconds
        while self.poll() is None and time.monotonic() < until:
            time.sleep(0.05)  # between two looks
        return self._status

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)


def start(host: int, command: Sequence[str], output: IO[bytes], environment: Mapping[str, str]) -> ForkedProcess:
    """Runs a command of `serene.spawn.module` in a child, in the network of process ``host``. It ends with this one."""
    if list(command[:3]) != [sys.executable, "-c", RUN]:
        raise SereneError(f"only our own modules are forked, not {command[0]}")
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    child = os.fork()
    if child:
        return ForkedProcess(child)
    status = 1
    try:
        die_with(parent)
        _enter_network(host)
        for stream in (1, 2):
            os.dup2(output.fileno(), stream)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        os.environ.update(environment)
        status = _run(command[3], command[4:])
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _run(name: str, arguments: Sequence[str]) -> int:
    sys.argv = [name, *arguments]
    try:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0


def _enter_network(host: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/proc/{host}/ns/net") as network:
        if libc.setns(network.fileno(), CLONE_NEWNET):
            number = ctypes.get_errno()
            raise OSError(number, f"cannot enter the network of process {host}: {os.strerror(number)}")
