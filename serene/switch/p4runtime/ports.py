"""What a port of the switch leads to: a network interface, or UDP datagrams on loopback."""

from __future__ import annotations

import socket
from dataclasses import dataclass

from serene.errors import choices
from serene.switch.control import PortError
from serene.switch.engine import Switch


@dataclass(frozen=True)
class InterfacePort:
    number: int
    interface: str
    join_udp: bool = False

    def check(self) -> None:
        """PortError where the interface is missing or may not be opened."""
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

    def __str__(self) -> str:
        return f"{self.number}@{self.interface}"


@dataclass(frozen=True)
class UdpPort:
    """Frames in UDP datagrams on loopback; without a peer, the first sender becomes it."""

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

    def __str__(self) -> str:
        return f"{self.number}@udp:{self.local}" + (f":{self.peer}" if self.peer else "")


Port = InterfacePort | UdpPort
