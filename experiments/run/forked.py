"""Starts a run's workers as forks of the run's own process, which has imported PyTorch and read the data before.

A worker started as a program would take two seconds of processor time to get that far, at the same time as all others.
A fork takes milliseconds, and all workers share one copy of the data in memory.
"""

from __future__ import annotations

import ctypes
import gc
import os
import runpy
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from serene.errors import SereneError
from serene.process.interrupts import SIGNALS
from serene.process.spawn import RUN
from serene.topologies.isolation import in_child, reset_handlers
from serene.workers import data

CLONE_NEWNET = 0x40000000
PR_SET_NAME = 15


class ForkedProcess:
    """A child of this process, by its process id. The methods are those of `subprocess.Popen`."""

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
        """Its exit status; None if it has not ended within so many seconds."""
        until = time.monotonic() + seconds
        while self.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        return self._status

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)


def prepare(exchange: str, dataset: str, directory: Path | None) -> None:
    """Imports what every worker and server of a run needs and reads the data set, before they are forked. Raises
    DataError."""
    import torch

    torch.set_num_threads(1)  # a fork would wait for a pool's threads, which it does not have
    data.keep(dataset, directory)
    if exchange == "gloo":
        import torch.distributed
    if exchange == "rpc":
        import torch.distributed.rpc
    import serene.workers.server
    import serene.workers.train  # noqa: F401


def start(
    name: str, command: Sequence[str], output: IO[bytes], environment: Mapping[str, str], host: int | None = None
) -> ForkedProcess:
    """Runs a command of `serene.process.spawn.module` in a forked child, which is killed when this process ends.

    name: what ``ps -o comm`` shows. output: for its standard output and error. environment: variables to add. host: id
    of a process in whose network namespace the child runs; None: in ours. Raises SereneError for any other command.
    """
    if list(command[:3]) != [sys.executable, "-c", RUN]:
        raise SereneError(f"only our own modules are forked, not {command[0]}")

    def child() -> int:
        # Else a worker's first collection would search everything that it has from its parent, and so copy those pages.
        gc.freeze()
        _take_streams(output.fileno())
        os.setsid()  # a terminal's Ctrl-C is to reach the run alone, which then stops its workers
        ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode())
        reset_handlers()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        if host is not None:
            enter_network(host)
        os.environ.update(environment)
        return _run(command[3], command[4:])

    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # until the child has reset its handlers
    try:
        return ForkedProcess(in_child(child))
    finally:  # only in the parent
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _take_streams(output: int) -> None:
    """Gives the child an empty standard input, and the log, line by line, for its output. Python's stream objects are
    replaced as well: those of the run may be a live view's."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    for stream, file in enumerate((nothing, output, output)):
        os.dup2(file, stream)
    sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115 # for as long as the process lives
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115


def _run(name: str, arguments: Sequence[str]) -> int:
    sys.argv = [name, *arguments]
    sys.modules.pop(name, None)  # `prepare` imported it, and runpy would warn; the modules that it imports stay
    try:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0


def enter_network(host: int) -> None:
    """Moves this process to the network namespace of another one. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/proc/{host}/ns/net") as network:
        if libc.setns(network.fileno(), CLONE_NEWNET):
            number = ctypes.get_errno()
            raise OSError(number, f"cannot enter the network of process {host}: {os.strerror(number)}")
