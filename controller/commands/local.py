"""The embedded switch of `serenectl up --local`: a separate process. Its ports are memory shared with the programs that
use them, or UDP sockets on loopback.

It keeps running when the controller dies, as any switch does. The next `serenectl up --local` finds it by its record, a
file that is locked while the switch runs. `serenectl down` stops the switch. The record stays: the next switch takes
the same UDP ports, to which programs may still be sending.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, fields
from pathlib import Path
from typing import IO

from serene.controller.commands.background import STOP_TIMEOUT_S, folder, last_error, launch, named, room
from serene.controller.settings import ShmPort, UdpPort, host_and_port, is_loopback
from serene.errors import SereneError
from serene.process.interrupts import allowed
from serene.process.locks import locked
from serene.process.spawn import module

FIRST_UDP_PORT, LAST_UDP_PORT = 24200, 31998  # below Linux's ports for outgoing connections
ATTEMPTS = 5  # another program may take a port between our check and the switch's
START_TIMEOUT_S = 60.0
LEASE_TIMEOUT_S = 5.0  # for a switch's answer whether a port is free
RECORD_TIMEOUT_S = 5.0  # for a process with the lock to record its switch, or to release the lock
LONGEST_PATH = 108  # bytes of a Unix socket's path, with a zero
STARTING = 0  # in place of a pid: the process that has the lock has started no switch yet
READY = "serene-switch: P4Runtime on"  # what a switch prints when it is ready


Ports = list[UdpPort] | list[ShmPort]


class NoLocalSwitch(SereneError):
    """The switch of `serenectl up --local` could not be started."""


def start(address: str, ports: Sequence[int], *, udp: bool = False) -> tuple[Ports, bool]:
    """Starts a switch whose P4Runtime server is at ``address``, unless a local one runs there. Returns its ports, and
    whether it was started now. ports: port numbers of a new switch. These are shared memory where that works; with
    ``udp``, UDP sockets. Raises NoLocalSwitch or NoFolder."""
    host, grpc_port = host_and_port(address)
    if not is_loopback(host):
        raise NoLocalSwitch(f"--switch {address}: --local needs a loopback address")
    with room():
        opened = _record(address).open("a+")
    with opened as file:
        there = _of_the_living(file)
        if there is not None:
            return there[1], False
        if _listens(host, grpc_port):
            raise NoLocalSwitch(
                f"{address} is in use. If a switch runs there, omit --local; else choose another address with --switch"
            )
        name = named("switch", address)
        paths = [ShmPort(port, str(_record(address).with_name(f"{name}-port{port}"))) for port in ports]
        if not udp and shared_memory_works([at.path for at in paths]):
            _run(address, paths, file)
            return paths, True
        before = [at for at in _ports_before(file) if isinstance(at, UdpPort)]
        chosen = before if [at.port for at in before] == list(ports) and _all_free(before) else []
        first = FIRST_UDP_PORT + grpc_port * 128 % (LAST_UDP_PORT - FIRST_UDP_PORT) // 2 * 2
        for attempt in range(1, ATTEMPTS + 1):
            chosen = chosen or _free_ports(ports, first)
            try:
                _run(address, chosen, file)
            except NoLocalSwitch:
                if attempt == ATTEMPTS or _all_free(chosen):
                    raise
                chosen = []
            else:
                break
    return chosen, True


def shared_memory_works(paths: Sequence[str] = ()) -> bool:
    """Whether ports of the switch can be shared memory, at these paths."""
    try:
        os.close(os.memfd_create("serene-probe", os.MFD_ALLOW_SEALING))  # as serene/embedded/runtime/shm.h
    except (AttributeError, OSError):  # no Linux, or a sandbox without the system call
        return False
    return all(len(os.fsencode(path)) < LONGEST_PATH for path in paths)


def _run(address: str, ports: Sequence[UdpPort | ShmPort], file: IO[str]) -> None:
    """Starts a switch, which inherits the lock of its record, ``file``, and waits until it is ready. Raises
    NoLocalSwitch or NoFolder."""
    log = _record(address).with_suffix(".log")
    command = module("serene.switch_command", "--no-p4", "--device-id", "0")
    command += [f"-i{at.port}@{_where(at)}" for at in ports]

    def ready(process: subprocess.Popen[bytes]) -> None:
        _write(file, process.pid, ports)
        _wait(process, log)

    launch([*command, "--", "--grpc-server-addr", address, "--cpu-port", "255"], log, ready, [file.fileno()])


def _wait(process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_TIMEOUT_S
    while READY not in log.read_text():
        if process.poll() is not None:
            raise NoLocalSwitch(last_error(log, "the switch"))
        if time.monotonic() > end:
            raise NoLocalSwitch(f"the switch was not ready within {START_TIMEOUT_S:g} s; its log: {log}")
        with allowed():
            time.sleep(0.02)


def _where(at: UdpPort | ShmPort) -> str:
    return f"udp:{at.switch}:{at.host}" if isinstance(at, UdpPort) else f"shm:{at.path}"


def stop(address: str, ports: Sequence[UdpPort | ShmPort]) -> bool:
    """Ends the switch at ``address`` with these ports, if `start` has started it on this machine. Returns whether there
    was one. Raises SereneError."""
    with _switch_of(address, ports) as there:
        if there is None:
            return False
        pid, file = there
        for number in (signal.SIGTERM, signal.SIGKILL):
            _signal(pid, number)
            end = time.monotonic() + STOP_TIMEOUT_S
            while time.monotonic() < end:
                if _lock(file) or not _has(pid, file):  # the latter: another process has the lock now
                    return True
                time.sleep(0.02)
    raise SereneError(f"the switch at {address} (process {pid}) did not end")


@contextmanager
def _switch_of(address: str, ports: Sequence[UdpPort | ShmPort]) -> Iterator[tuple[int, IO[str]] | None]:
    """The process that `start` has started for this address and these ports, and its record; None if it does not
    run."""
    record = _record(address)
    if not record.exists():
        yield None
        return
    with record.open("a+") as file:
        there = _of_the_living(file)
        yield (there[0], file) if there is not None and there[1] == list(ports) and _has(there[0], file) else None


def is_deserted(address: str, ports: Sequence[UdpPort | ShmPort], numbers: Container[int] | None = None) -> bool:
    """Whether no program uses any of these ports of the switch at ``address``, or of those with these numbers. The
    kernel frees the ports of dead processes. False for a switch that `start` has not started, or in another network
    namespace, where the same numbers are other ports."""
    with _switch_of(address, ports) as there:
        if there is None or not _is_here(there[0]):
            return False
    asked = [at for at in ports if numbers is None or at.port in numbers]
    return not any(_is_leased(at.path) if isinstance(at, ShmPort) else not _free(at.host) for at in asked)


def _is_here(pid: int) -> bool:
    """Whether a process is in this process's network namespace."""
    try:
        return os.path.samefile(f"/proc/{pid}/ns/net", "/proc/self/ns/net")
    except OSError:
        return False


def _has(pid: int, file: IO[str]) -> bool:
    """Whether this machine has a process with this pid that has the file open; other machines may share its folder."""
    try:
        ours = os.fstat(file.fileno())
        return any(os.path.samestat(each.stat(), ours) for each in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


def _is_leased(path: str) -> bool:
    """Whether a process uses a port of shared memory. A switch passes the port's memory to a process that connects, or
    closes the connection if another process has it."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(LEASE_TIMEOUT_S)
        try:
            probe.connect(path)
            return not probe.recv(1)
        except (FileNotFoundError, ConnectionRefusedError):
            return False  # there is no switch any more
        except OSError:
            return True


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):  # it has just ended by itself
        os.kill(pid, number)


def _record(address: str) -> Path:
    return folder() / f"{named('switch', address)}.json"


def _of_the_living(file: IO[str]) -> tuple[int, Ports] | None:
    """The pid and the ports in a record whose switch runs. None: it does not run, and this process has the record's
    lock now. Raises NoLocalSwitch if another process has the lock and has not started a switch."""
    end = time.monotonic() + RECORD_TIMEOUT_S
    while not _lock(file):
        pid, ports = _read(file)
        if pid != STARTING:
            return pid, ports
        if time.monotonic() > end:
            raise NoLocalSwitch("another process is starting or stopping the switch: try again in a moment")
        time.sleep(0.02)
    return None


def _lock(file: IO[str]) -> bool:
    """Takes a record's lock, if it is free. Returns whether it did; then the record names no process any more."""
    if not locked(file):
        return False
    _write(file, STARTING, _ports_before(file))
    return True


def _write(file: IO[str], pid: int, ports: Sequence[UdpPort | ShmPort]) -> None:
    with room():
        file.truncate(0)
        record = json.dumps([pid, [list(astuple(at)) for at in ports]]).encode()
        while record:  # without the file's buffer: closing the file would write the rest again, and fail again
            record = record[os.write(file.fileno(), record) :]


def _read(file: IO[str]) -> tuple[int, Ports]:
    file.seek(0)
    try:
        pid, ports = json.loads(file.read())
    except ValueError:  # the record is new, or just being written
        return STARTING, []
    if ports and len(ports[0]) == len(fields(ShmPort)):
        return pid, [ShmPort(*port) for port in ports]
    return pid, [UdpPort(*port) for port in ports]


def _ports_before(file: IO[str]) -> Ports:
    """The ports of the last switch of a record; none if the record is new."""
    return _read(file)[1]


def _free_ports(ports: Sequence[int], first: int) -> list[UdpPort]:
    """A pair of UDP ports for each port: an even one for the switch, and the next one for the host. first: the start of
    the search. The host's port is free while no program uses it, so the switch's port shows whether another local
    switch has the pair."""
    numbers = [*range(first, LAST_UDP_PORT, 2), *range(FIRST_UDP_PORT, first, 2)]
    pairs = (UdpPort(0, number, number + 1) for number in numbers)
    free = (pair for pair in pairs if _free(pair.switch) and _free(pair.host))
    return [UdpPort(port, pair.switch, pair.host) for port, pair in zip(ports, free, strict=False)]


def _all_free(ports: Sequence[UdpPort]) -> bool:
    return all(_free(at.switch) for at in ports)


def _free(udp_port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("127.0.0.1", udp_port))
        except OSError:
            return False
    return True


def _listens(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port)):
            return True
    except OSError:
        return False
