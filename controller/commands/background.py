"""`serenectl up` without --foreground: the daemon in a separate process, with files for its log and its pid."""

from __future__ import annotations

import errno
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from serene.controller.http.client import ControllerClient, NoController
from serene.errors import SereneError
from serene.http import LONGEST_PATH
from serene.process.interrupts import allowed, held
from serene.process.locks import locked
from serene.process.spawn import module

START_TIMEOUT_S = 150.0  # the embedded switch may have to compile the program first
STOP_TIMEOUT_S = 10.0


class NotStarted(SereneError):
    """The daemon ended before it answered."""


class NoFolder(SereneError):
    """The files of background processes cannot be written."""

    def __init__(self, there: Path, why: str) -> None:
        advice = "choose another folder with XDG_RUNTIME_DIR=/PATH"
        super().__init__(f"cannot write logs and pid files to {there}: {why}; {advice}")


@dataclass(frozen=True)
class Files:
    """A daemon's files, named after the address of its HTTP interface."""

    log: Path
    pid: Path
    socket: Path

    @classmethod
    def of(cls, http: str) -> Files:
        """http: HOST:PORT, or a URL that ends with it. Raises NoFolder."""
        first = folder() / named("controller", http)
        return cls(*(first.with_name(f"{first.name}.{kind}") for kind in ("log", "pid", "sock")))

    def socket_path(self) -> str:
        """The socket's path; "" where it is too long for a socket."""
        path = str(self.socket)
        return path if len(os.fsencode(path)) <= LONGEST_PATH else ""


def named(kind: str, address: str) -> str:
    """The name of a process's files: its port, and its host unless that is the default. address: HOST:PORT, or a URL
    that ends with it."""
    host, _, port = address.rpartition("//")[2].rpartition(":")
    return f"{kind}-{port}" if host in ("127.0.0.1", "localhost") else f"{kind}-{host.strip('[]')}-{port}"


def folder() -> Path:
    """The folder for files of background processes, made if necessary. Raises NoFolder."""
    there = place()
    try:
        there.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NoFolder(there, error.strerror or str(error)) from None
    if not os.access(there, os.W_OK | os.X_OK):
        raise NoFolder(there, os.strerror(errno.EACCES))
    return there


def place() -> Path:
    """The folder's path; it need not exist. Raises NoFolder."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and os.path.isabs(runtime):  # by the XDG specification, other paths are ignored
        return Path(runtime) / "serene"
    try:
        return Path.home().absolute() / ".local" / "state" / "serene"
    except RuntimeError:  # an unknown user, as in some containers
        raise NoFolder(Path("~"), "this user has no home directory") from None


@contextmanager
def room() -> Iterator[None]:
    """A context for writing a file to that folder: raises NoFolder if the disk is full."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise NoFolder(place(), os.strerror(error.errno)) from None


@contextmanager
def alone(files: Files) -> Iterator[None]:
    """Prevents other processes from starting a daemon with these files until the context ends. Raises NotStarted while
    another process starts one."""
    with room():
        opened = files.log.open("a")
    with opened as log:
        if not locked(log):
            raise NotStarted("another 'serenectl up' is starting a controller there: try again in a moment")
        yield


def start(arguments: list[str], url: str, files: Files) -> int:
    """Runs ``serenectl ARGUMENTS`` as a daemon, waits until it answers at ``url``, and returns its pid. Raises
    NotStarted with the daemon's own error, or NoFolder."""

    def ready(process: subprocess.Popen[bytes]) -> None:
        _wait(process, url, files.log)
        with room():
            files.pid.write_text(f"{process.pid}\n")

    return launch(module("serene.controller", *arguments), files.log, ready)


def launch(
    command: list[str], log: Path, ready: Callable[[subprocess.Popen[bytes]], None], inherited: Sequence[int] = ()
) -> int:
    """Starts a process in the background and returns its pid. ready: waits until it is ready; if that raises, the
    process is ended. inherited: descriptors. Raises what ``ready`` raises, or NoFolder."""
    with room():
        opened = log.open("w")
    with held():
        with opened as out:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, pass_fds=inherited
            )
        try:
            ready(process)
        except BaseException:  # also for a full disk, and for Ctrl-C, which does not reach the process
            end(process)
            raise
    return process.pid


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process, if necessary by SIGKILL after STOP_TIMEOUT_S."""
    process.terminate()
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    end = time.monotonic() + START_TIMEOUT_S
    with ControllerClient(url, timeout_s=5.0) as client:
        while process.poll() is None:
            try:
                client.status()
                if process.poll() is None:  # else another controller has answered
                    return
            except NoController:
                if time.monotonic() > end:
                    raise NotStarted(
                        f"the controller did not answer within {START_TIMEOUT_S:g} s; its log: {log}"
                    ) from None
                with allowed():
                    time.sleep(0.05)
    raise NotStarted(last_error(log, "the controller"))


def last_error(log: Path, who: str) -> str:
    """The last error that a process has logged, or else a text that it ended. who: the process's name in this text."""
    errors = [line for line in log.read_text().splitlines() if line.startswith("error: ")]
    return errors[-1].removeprefix("error: ") if errors else f"{who} stopped right after its start; log: {log}"
