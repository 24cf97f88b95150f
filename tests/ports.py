"""Free ports of loopback for tests that run beside other tests."""

from __future__ import annotations

import errno
import random
import socket

from topologies.processes import free_ports


def some_ports(count: int, kind: socket.SocketKind = socket.SOCK_STREAM) -> list[int]:
    """Different free ports, from a random one up, below those that Linux gives to outgoing connections."""
    return free_ports(*[random.randrange(20000, 32000)] * count, kind=kind)


def some_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    return some_ports(1, kind)[0]


def bind_somewhere(here: socket.socket, port: int) -> str:
    """Binds to a loopback address at which a given port is free; the address. Other tests may have the port, too."""
    while True:
        address = f"127.{random.randrange(256)}.{random.randrange(256)}.{random.randrange(2, 255)}"
        try:
            here.bind((address, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            continue
        return address
