"""Serene's programs as background processes: their paths, their ports, and when they are ready."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from serene.process.interrupts import allowed
from serene.process.locks import locked

ROOT = Path(__file__).resolve().parent.parent
BINARIES = ROOT / ".venv" / "bin"


class NotReady(Exception):
    """A part of a network cannot be started or set up, or did not become ready. The message gives the reason, or the
    end of its log."""


def program(name: str) -> str:
    """Path of one of Serene's commands, in the checkout's environment or else on the PATH. Raises NotReady."""
    ours = BINARIES / name
    path = str(ours) if ours.exists() else shutil.which(name)
    if path is None:
        raise NotReady(f"{name} is not installed: run 'make setup' in {ROOT}")
    return path


@cache
def _has_thrift(path: str) -> bool:
    """Whether this simple_switch_grpc was built with Thrift. Without Thrift it has no option for Thrift's port."""
    shown = subprocess.run([path, "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return "--thrift-port" in shown.stdout


def bmv2(thrift_port: int, device_id: int = 0) -> list[str]:
    """The command that starts simple_switch_grpc without a program, before its ports and ``--``. thrift_port: a free
    port for Thrift, if it was built with Thrift; another switch may use the default. Raises NotReady if it is not
    installed."""
    path = shutil.which("simple_switch_grpc")
    if path is None:
        raise NotReady("simple_switch_grpc is not installed (p4lang's behavioral model); use the embedded switch")
    thrift = ["--thrift-port", str(thrift_port)] if _has_thrift(path) else []
    return [path, "--no-p4", "--device-id", str(device_id), *thrift]


def free_ports(*preferred: int, kind: socket.SocketKind = socket.SOCK_STREAM) -> list[int]:
    """A free port of loopback for each preferred one: the port itself, or the next free one above it. All are
    different.

    The kernel is not asked for a port, because it may give the same one to two processes that have not bound it yet.
    Raises NotReady if no port is free.
    """
    chosen: list[int] = []
    for first in preferred:
        free = (port for port in range(first, 1 << 16) if port not in chosen and _is_free(port, kind))
        port = next(free, None)
        if port is None:
            raise NotReady(f"no port from {first} up is free on loopback")
        chosen.append(port)
    return chosen


def _is_free(port: int, kind: socket.SocketKind) -> bool:
    with socket.socket(socket.AF_INET, kind) as probe:
        if kind == socket.SOCK_STREAM:  # with this option a port is in use only if a program listens on it
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return True
    return False


LISTENING = "0A"  # TCP_LISTEN, as /proc/net/tcp writes a socket's state


@contextlib.contextmanager
def set_up_turn(timeout_s: float = 120.0) -> Iterator[None]:
    """Lets one process at a time set up its network, so that a free port or name stays free until this process uses it.

    It is a lock that the kernel releases when its process dies. Raises NotReady if the lock is not free in time.
    """
    until = time.monotonic() + timeout_s
    with socket.socket(socket.AF_UNIX) as turn:
        while True:
            with contextlib.suppress(OSError):
                turn.bind("\0serene-set-up")
                break
            if time.monotonic() > until:
                raise NotReady(f"another run has been setting up its network for {timeout_s:g} s")
            with allowed():
                time.sleep(0.05)
        yield


class OwnFolder:
    """A folder of this process, in the machine's folder for temporary files. Folders of killed processes are removed
    when the next one is created.

    The process locks a file in it while it lives, and the kernel releases the lock. A process id would not do: outside
    its PID namespace it means another process.
    """

    PREFIX, LOCK = "serene-", ".lock"

    def __init__(self) -> None:
        self._remove_abandoned()
        self.path = Path(tempfile.mkdtemp(prefix=self.PREFIX))
        made = self.path / f"{self.LOCK}.new"
        self._lock = made.open("w")
        locked(self._lock, None)
        made.rename(self.path / self.LOCK)  # renamed after locking: a process that finds the file finds it locked

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()

    @classmethod
    def _remove_abandoned(cls) -> None:
        for path in Path(tempfile.gettempdir()).glob(f"{cls.PREFIX}*/{cls.LOCK}"):
            with contextlib.suppress(OSError):  # its owner lives, or another process removed it first
                lock = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
                try:
                    if os.fstat(lock).st_uid == os.geteuid() and locked(lock):
                        shutil.rmtree(path.parent, ignore_errors=True)
                finally:
                    os.close(lock)


def mortal(command: Sequence[str]) -> list[str]:
    """The same command; the kernel kills it when the process that started it ends."""
    return ["setpriv", "--pdeathsig", "KILL", "--", *command]


class Background:
    """A program in the background, which is killed when the process that started it ends.

    log: for its output; by default a temporary file, which ``stop`` removes.
    """

    def __init__(self, name: str, command: Sequence[str], log: Path | None = None) -> None:
        self.name = name
        if log is None:  # not named after the process id: a process of another PID namespace may have the same one
            descriptor, made = tempfile.mkstemp(".log", f"serene-{name}-")
            os.close(descriptor)
            self.log = Path(made)
        else:
            self.log = log
            self.log.unlink(missing_ok=True)
        self._keep_log = log is not None
        self._command = command
        self.killed = False  # by ``kill``, and not restarted yet
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as output:
            return subprocess.Popen(
                mortal(self._command), stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def poll(self) -> int | None:
        """The exit status; None while it runs."""
        return self._process.poll()

    def tail(self, lines: int = 15) -> str:
        """The last lines of its log; empty if the log cannot be read."""
        with contextlib.suppress(OSError):
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
        return ""

    def serves(self, port: int) -> bool:
        """Whether this program listens on a TCP port. Raises NotReady if another program listens on the same port. That
        is possible because gRPC's servers, and so BMv2, set SO_REUSEPORT."""
        ours, others = set[str](), set[str]()  # addresses
        with contextlib.suppress(OSError):
            open_files = {os.readlink(file) for file in Path(f"/proc/{self.pid}/fd").iterdir()}
            for table in ("tcp", "tcp6"):
                for line in Path(f"/proc/{self.pid}/net/{table}").read_text().splitlines()[1:]:
                    _, local, _, state, *_, inode = line.split()[:10]
                    address, _, number = local.rpartition(":")
                    if state == LISTENING and int(number, 16) == port:
                        listeners = ours if f"socket:[{inode}]" in open_files else others
                        listeners.add(address[-8:])  # the IPv4 part: an IPv6 socket may listen on IPv4 addresses, too
        if ours & others:
            raise NotReady(f"port {port} of {self.name} is also used by another program")
        return bool(ours)

    def wait_until(self, ready: Callable[[], bool], timeout_s: float) -> None:
        """Polls until the program is ready. Interrupts are allowed meanwhile. Raises NotReady if it ends first or is
        not ready in time."""
        until = time.monotonic() + timeout_s
        while not ready():
            if self.poll() is not None:
                raise NotReady(f"{self.name} ended with status {self.poll()}:\n{self.tail()}")
            if time.monotonic() > until:
                raise NotReady(f"{self.name} was not ready within {timeout_s:g} s:\n{self.tail()}")
            with allowed():
                time.sleep(0.05)

    def kill(self) -> None:
        """Kills it with SIGKILL. ``killed`` is then true until ``start_again``."""
        self.killed = True
        self._process.kill()
        self._process.wait()

    def start_again(self) -> None:
        """Runs the same command again. The output is appended to the same log."""
        self._process = self._start()
        self.killed = False

    def stop(self, timeout_s: float = 5.0) -> None:
        """Ends it with SIGTERM, or with SIGKILL if it has not ended in time."""
        if self.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if not self._keep_log:
            self.log.unlink(missing_ok=True)


class Server(Background):
    """A program in the background that listens on a TCP port of loopback. Each start waits until it listens, and raises
    NotReady if it does not within ``timeout_s`` seconds."""

    def __init__(self, name: str, command: Sequence[str], port: int, timeout_s: float, log: Path | None = None) -> None:
        super().__init__(name, command, log)
        self._port, self._timeout_s = port, timeout_s
        try:
            self._await()
        except BaseException:
            self.stop()
            raise

    def _await(self) -> None:
        self.wait_until(lambda: self.serves(self._port), self._timeout_s)

    def start_again(self) -> None:
        super().start_again()
        self._await()


def p4runtime(ports: Mapping[int, str], port: int) -> list[str]:
    """Arguments for serene-switch or simple_switch_grpc: the interfaces that are its ports, and the TCP port of
    loopback for P4Runtime."""
    interfaces = [argument for number, name in ports.items() for argument in ("-i", f"{number}@{name}")]
    return [*interfaces, "--", "--grpc-server-addr", f"127.0.0.1:{port}", "--cpu-port", "255"]


def embedded_switch(ports: Mapping[int, str], port: int, log: Path) -> Server:
    """Starts an embedded switch that serves P4Runtime on this TCP port of loopback. Raises NotReady."""
    return Server("switch", [program("serene-switch"), "--no-p4", *p4runtime(ports, port)], port, 90, log)


def controller(switch_port: int, http_port: int, ports: int, log: Path, *options: str) -> Server:
    """Starts a controller of a switch on loopback that has ports 1 to ``ports``. options: additional options of
    `serenectl up`. Raises NotReady."""
    command = [
        program("serenectl"), "up", "--foreground", "--switch", f"127.0.0.1:{switch_port}", "--ports", f"1-{ports}",
        "--http", f"127.0.0.1:{http_port}", *options,
    ]  # fmt: skip
    return Server("controller", command, http_port, 150, log)


def listens(port: int) -> bool:
    """Whether a program accepts connections on a TCP port of loopback."""
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) == 0
