"""A controller's listeners: a TCP port, and a Unix socket, which processes in other network namespaces reach.

A controller never takes either from a running one.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from serene.controller.settings import host_and_port
from serene.errors import SereneError
from serene.process.locks import locked

LOCK_TIMEOUT_S = 5.0
LEAVING_S = 1.0  # for a controller that has stopped listening to end


class AddressInUse(SereneError):
    """The interface's address or path is in use, or cannot be used."""


@contextmanager
def tcp_listener(http: str) -> Iterator[socket.socket]:
    """A socket bound to ``http``, HOST:PORT, that does not listen yet: until the switch is connected, clients are
    refused at once.

    Without SO_REUSEADDR a controller could not start for a minute after another one. But it lets two controllers bind
    one address until either listens. So each first claims the address by an abstract socket's name, which the kernel
    frees when the process ends. Raises AddressInUse.
    """
    host, port = host_and_port(http)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns Nagle's algorithm off only if the protocol is named. It would delay an answer by 40 ms.
    with ExitStack() as held:
        listener = held.enter_context(socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            address = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)[0][4]
            held.enter_context(_claimed(http, f"\0serene-controller-{address[0]}:{port}"))
            listener.bind(address)
        except OSError as error:
            raise AddressInUse(
                f"cannot listen on {http}: {error.strerror}; choose another port with --http HOST:PORT"
            ) from None
        yield listener


@contextmanager
def _claimed(http: str, name: str) -> Iterator[None]:
    """Holds a name in this network namespace until the context ends. Raises AddressInUse, which names the process that
    has it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as claim:
        until = time.monotonic() + LEAVING_S
        while True:
            with suppress(OSError):
                claim.bind(name)
                claim.listen()
                break
            if time.monotonic() > until:
                raise AddressInUse(
                    f"cannot listen on {http}: {_holder(name)} uses it; choose another port with --http HOST:PORT"
                )
            time.sleep(0.02)
        yield


def _holder(name: str) -> str:
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.setblocking(False)
        asking.connect(name)
        pid, _, _ = struct.unpack("3i", asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return f"the controller with process id {pid}" if pid else "a controller in another PID namespace"
    return "another controller"


@contextmanager
def unix_listener(path: str) -> Iterator[socket.socket]:
    """A Unix socket that listens at ``path``, for its owner alone, and is removed when the context ends. It replaces
    the file of a killed process.

    A file can be recognised as such a leftover only while no other controller is between bind and listen. So each
    checks, binds and listens while it holds the folder's lock. Raises AddressInUse.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        try:
            with _folder_locked(path):
                _remove_leftover(path)
                os.fchmod(listener.fileno(), 0o600)  # before bind, which gives the file this mode from the beginning
                listener.bind(path)
                listener.listen()
                made = os.lstat(path)
        except OSError as error:
            raise AddressInUse(f"cannot listen at {path}: {error.strerror or error}") from None
        try:
            yield listener
        finally:
            with suppress(OSError), _folder_locked(path):
                if os.path.samestat(os.lstat(path), made):
                    os.unlink(path)


@contextmanager
def _folder_locked(path: str) -> Iterator[None]:
    """Holds the lock of the path's folder until the context ends. Raises OSError."""
    folder = os.open(Path(path).parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if not locked(folder, LOCK_TIMEOUT_S):
            raise OSError(errno.EBUSY, f"another process has held the folder's lock for {LOCK_TIMEOUT_S:g} s")
        yield
    finally:
        os.close(folder)


def _remove_leftover(path: str) -> None:
    try:
        there = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(there.st_mode):
        raise OSError(errno.EEXIST, "the file there is not a socket")
    # A stream socket cannot distinguish a bound socket that does not listen yet from a file that no process has open:
    # both refuse it (ECONNREFUSED). A datagram socket gets another error from the first.
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
        probe.setblocking(False)
        error = probe.connect_ex(path)
    if error != errno.ECONNREFUSED:
        raise OSError(errno.EADDRINUSE, "another process has it open; --socket chooses another path")
    os.unlink(path)
