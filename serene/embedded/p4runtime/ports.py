"""The kinds of ports: a network interface, UDP on loopback, or memory shared with a process."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

from serene.embedded.control.types import PortError
from serene.embedded.engine import Switch
from serene.errors import choices


@dataclass(frozen=True)
class InterfacePort:
    number: int
    interface: str
    join_udp: bool = False

    def check(self) -> None:
        """Raises PortError if the interface is missing or may not be opened."""
        try:
            with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as probe:
                probe.bind((self.interface, 0))
        except PermissionError:
            raise PortError(f"no permission to open {self.interface!r}: run as root, or use udp: ports") from None
        except OSError as error:
            names = choices(name for _, name in socket.if_nameindex())
            raise PortError(f"cannot open interface {self.interface!r}: {error.strerror}; there are {names}") from None

    def attach(self, switch: Switch) -> None:
        switch.add_interface(self.number, self.interface, join_udp=self.join_udp)

    @property
    def label(self) -> str:
        """The port's name in file names."""
        return self.interface

    def __str__(self) -> str:
        return f"{self.number}@{self.interface}"


@dataclass(frozen=True)
class UdpPort:
    """Frames in UDP datagrams on loopback. Without a peer, the first sender becomes the peer."""

    number: int
    local: int
    peer: int | None = None

    def check(self) -> None:
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                probe.bind(("127.0.0.1", self.local))
        except OSError as error:
            raise PortError(f"cannot open UDP port {self.local}: {error.strerror}; choose another one") from None

    def attach(self, switch: Switch) -> None:
        switch.add_udp(self.number, ("127.0.0.1", self.local), ("127.0.0.1", self.peer) if self.peer else None)

    @property
    def label(self) -> str:
        return f"udp{self.local}"

    def __str__(self) -> str:
        return f"{self.number}@udp:{self.local}" + (f":{self.peer}" if self.peer else "")


@dataclass(frozen=True)
class ShmPort:
    """Memory shared with one process at a time, which connects to a UNIX socket at this path."""

    number: int
    path: Path

    def check(self) -> None:
        folder = self.path.parent
        if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
            raise PortError(f"cannot open shared-memory port {self.path}: expected a path in a folder to write to")
        if self.path.exists() and not self.path.is_socket():
            raise PortError(f"cannot open shared-memory port {self.path}: there is something else, not a socket")

    def attach(self, switch: Switch) -> None:
        switch.add_shm(self.number, self.path)

    @property
    def label(self) -> str:
        return f"port{self.number}"

    def __str__(self) -> str:
        return f"{self.number}@shm:{self.path}"


Port = InterfacePort | UdpPort | ShmPort
