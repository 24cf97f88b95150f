"""A run's workers are forked from its own process, which has imported PyTorch and read the data.

A worker that starts as a program computes for two seconds before it trains, and all of them do so at once. A fork takes
milliseconds, and the data are in memory once.
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
from pathlib import Path
from typing import IO, NoReturn, Protocol

from serene.errors import SereneError
from serene.interrupts import SIGNALS
from serene.spawn import RUN
from topologies.isolation import die_with
from workers import data

CLONE_NEWNET = 0x40000000
PR_SET_NAME = 15


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


def prepare(exchange: str, dataset: str, directory: Path | None) -> None:
    """What every process of a run needs is imported and read, once for all. Raises DataError."""
    import torch

    torch.set_num_threads(1)  # those of a pool would not be there in a fork
    data.keep(dataset, directory)
    if exchange == "gloo":
        import torch.distributed
    import workers.server
    import workers.train  # noqa: F401


def start(
    name: str, command: Sequence[str], output: IO[bytes], environment: Mapping[str, str], host: int | None = None
) -> ForkedProcess:
    """Runs a command of `serene.spawn.module` in a child that ends with this process. name: for ``ps -o comm``.
    host: a process in whose network namespace it runs; None: in ours."""
    if list(command[:3]) != [sys.executable, "-c", RUN]:
        raise SereneError(f"only our own modules are forked, not {command[0]}")
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    # Python's handlers are for this process: in the child, a signal must find its own, or it would unwind our stack.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        child = os.fork()
        if child == 0:
            _child(parent, name, command[3:], output.fileno(), environment, host)
    finally:  # of the parent: the child does not come back
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return ForkedProcess(child)


def _child(
    parent: int, name: str, command: Sequence[str], output: int, environment: Mapping[str, str], host: int | None
) -> NoReturn:
    status = 1
    try:
        die_with(parent)
        _take_streams(output)
        os.setsid()  # a terminal's Ctrl-C is for the run, which stops its workers
        ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode())
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        if host is not None:
            _enter_network(host)
        os.environ.update(environment)
        status = _run(command[0], command[1:])
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _take_streams(output: int) -> None:
    """Nothing to read, and a log, written line by line; the run's own streams may be a live view's."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    for stream, file in enumerate((nothing, output, output)):
        os.dup2(file, stream)
    sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115 # for as long as the process lives
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115


def _run(name: str, arguments: Sequence[str]) -> int:
    sys.argv = [name, *arguments]
    sys.modules.pop(name, None)  # imported by the run; what it imports stays
    try:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0


def _enter_network(host: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/proc/{host}/ns/net") as network:
        if libc.setns(network.fileno(), CLONE_NEWNET):
            number = ctypes.get_errno()
            raise OSError(number, f"cannot enter the network of process {host}: {os.strerror(number)}")
