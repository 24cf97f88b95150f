"""Where a controller listens: a TCP port, and a Unix socket, which processes in other network namespaces reach, too.

Neither is ever taken from a controller that lives.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from controller.settings import host_and_port
from serene.errors import SereneError

TURN_TIMEOUT_S = 5.0
LEAVING_S = 1.0  # what a controller that has stopped listening may take to end


class AddressInUse(SereneError):
    """Something else is where the interface should be, or nothing can be there."""


@contextmanager
def tcp_listener(http: str) -> Iterator[socket.socket]:
    """Bound to HOST:PORT, and not listening yet: nobody is to wait for answers until the switch is there.

    SO_REUSEADDR, without which a controller could not start for a minute after another one, lets two be bound to one
    address until either listens. So a controller claims it first, by a name that the kernel takes back when it ends.
    Raises AddressInUse.
    """
    host, port = host_and_port(http)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol spelt out, asyncio turns Nagle's algorithm off, which costs 40 ms an answer otherwise.
    with ExitStack() as held:
        listener = held.enter_context(socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            address = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)[0][4]
            held.enter_context(_claimed(http, f"\0serene-controller-{address[0]}:{port}"))
            listener.bind(address)
        except OSError as error:
            raise AddressInUse(
                f"cannot listen on {http}: {error.strerror}; --http HOST:PORT chooses another port"
            ) from None
        yield listener


@contextmanager
def _claimed(http: str, name: str) -> Iterator[None]:
    """A name that is nobody else's in this network namespace. Raises AddressInUse, which says whose it is."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as claim:
        until = time.monotonic() + LEAVING_S
        while True:
            with suppress(OSError):
                claim.bind(name)
                claim.listen()
                break
            if time.monotonic() > until:
                raise AddressInUse(
                    f"cannot listen on {http}: {_holder(name)} has it ('serenectl status'); "
                    "--http HOST:PORT chooses another port"
                )
            time.sleep(0.02)
        yield


def _holder(name: str) -> str:
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.setblocking(False)
        asking.connect(name)
        pid, _, _ = struct.unpack("3i", asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return f"the controller with process id {pid}"
    return "another controller"


@contextmanager
def unix_listener(path: str) -> Iterator[socket.socket]:
    """At ``path``, for its owner alone; the file goes at the end. What a process that was killed has left is replaced.

    Whether a file is such a leftover can only be told while nobody else is between bind and listen: so a controller
    does both, and looks, while it holds the folder's lock. Raises AddressInUse.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        try:
            with _turn(path):
                _remove_leftover(path)
                os.fchmod(listener.fileno(), 0o600)  # which bind gives the file: at no time is it anybody's
                listener.bind(path)
                listener.listen()
                made = os.lstat(path)
        except OSError as error:
            raise AddressInUse(f"cannot listen at {path}: {error.strerror or error}") from None
        try:
            yield listener
        finally:
            with suppress(OSError), _turn(path):
                if os.path.samestat(os.lstat(path), made):
                    os.unlink(path)


@contextmanager
def _turn(path: str) -> Iterator[None]:
    """The lock of the path's folder. Raises OSError."""
    folder = os.open(Path(path).parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        until = time.monotonic() + TURN_TIMEOUT_S
        while True:
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise OSError(
                        errno.EBUSY, f"another process has held the folder's lock for {TURN_TIMEOUT_S:g} s"
                    ) from None
                time.sleep(0.02)
        yield
    finally:
        os.close(folder)


def _remove_leftover(path: str) -> None:
    try:
        there = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(there.st_mode):
        raise OSError(errno.EEXIST, "there is something that is no socket")
    # A stream is refused (ECONNREFUSED) by a socket that is bound and does not listen yet as by a file that nobody has
    # open; a socket of another type is told which of them it met.
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
        probe.setblocking(False)
        said = probe.connect_ex(path)
    if said != errno.ECONNREFUSED:
        raise OSError(errno.EADDRINUSE, "another process has it open; --socket chooses another path")
    os.unlink(path)
