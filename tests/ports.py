"""Free ports on loopback, for tests that run at the same time as others."""

from __future__ import annotations

import errno
import random
import socket

from serene.topologies.processes import free_ports


def some_ports(count: int, kind: socket.SocketKind = socket.SOCK_STREAM) -> list[int]:
    """``count`` different free ports, from a random one upwards, below the range that Linux uses for outgoing
    connections."""
    return free_ports(*[random.randrange(20000, 32000)] * count, kind=kind)


def some_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    return some_ports(1, kind)[0]


def bind_somewhere(here: socket.socket, port: int) -> str:
    """Binds the socket to a loopback address at which ``port`` is free, and returns the address. Other tests may have
    the same port at other addresses."""
    while True:
        address = f"127.{random.randrange(256)}.{random.randrange(256)}.{random.randrange(2, 255)}"
        try:
            here.bind((address, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            continue
        return address
