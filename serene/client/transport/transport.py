"""Transports of a worker's packets: the kernel's UDP, or whole frames to the embedded switch's UDP ports."""

from __future__ import annotations

import errno
import os
import select
import socket
import time
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from serene.client.compiled.fastpath import Link
from serene.errors import SereneError
from serene.wire import (
    ENCAPSULATION_BYTES,
    SERENE_UDP_PORT,
    SWITCH_IP,
    SWITCH_MAC,
    check_addresses,
    encapsulation,
    in_header,
)

LARGEST_PAYLOAD = 9216  # bytes
BATCH = 128  # packets that one call receives
MOST_HOSTS = 256  # virtual hosts
SOCKET_BUFFER = 8 << 20  # bytes
# <linux/in.h>; the socket module has no names for them. PROBE: the interface decides how large packets may be, not an
# ICMP message, which any host could send.
_IP_MTU_DISCOVER, _IP_PMTUDISC_PROBE = 10, 3


# Errors of a network that may be down for a moment. The protocol treats them as lost packets. Any other is a
# programming error.
TRANSIENT = frozenset(
    getattr(errno, name)
    for name in (
        "EAGAIN", "ENOBUFS", "ENOMEM", "ECONNREFUSED", "ENETUNREACH", "EHOSTUNREACH", "ENETDOWN", "EHOSTDOWN", "ENODEV",
        "ENETRESET", "EMSGSIZE", "EPERM", "EACCES", "EADDRNOTAVAIL", "ENOPROTOOPT", "EPROTO", "ETIMEDOUT", "EIO",
        "ENXIO",
    )
)  # fmt: skip
_NOT_WORTH_TELLING = frozenset((errno.EAGAIN, errno.ENOBUFS, errno.ECONNREFUSED))


class TransportError(SereneError):
    """The socket could not be opened or used."""


class PortTaken(TransportError):
    """Another process has the port."""


@dataclass(frozen=True)
class Trouble:
    """The network refuses packets. errno: the reason; payload_bytes: their size; since: the time since which it has
    accepted none of that size, in seconds on the monotonic clock."""

    errno: int
    payload_bytes: int
    since: float

    @property
    def lasts_s(self) -> float:
        return time.monotonic() - self.since

    def __str__(self) -> str:
        if self.errno == errno.EMSGSIZE:
            return f"packets of {self.payload_bytes} bytes exceed the MTU of the path to the switch"
        return os.strerror(self.errno)


def next_trouble(before: Trouble | None, refused: int, size: int) -> Trouble | None:
    """The trouble after packets of ``size`` bytes were sent. before: the trouble until then; refused: their errno, or 0
    if they were accepted."""
    if not refused:
        return None if before is not None and size >= before.payload_bytes else before
    if refused not in _NOT_WORTH_TELLING and (before is None or before.errno != refused):
        return Trouble(refused, size, time.monotonic())
    return before


class Transport(Protocol):
    """Sends and receives UDP payloads of Serene's packets."""

    def send(self, payloads: np.ndarray) -> None:
        """payloads: uint8[n, bytes]. Payloads that do not fit the socket's queue are lost, as on any network. Raises
        TransportError if the socket cannot be used any more."""

    def receive(self, timeout_s: float) -> tuple[np.ndarray, np.ndarray]:
        """The arrived packets, after waiting up to ``timeout_s`` for the first one: uint8[n, bytes], and the lengths
        int64[n].

        The rows are valid until the next call. Raises as ``send``.
        """

    def link(self, payload_bytes: int) -> Link | None:
        """The socket itself, for the fast path, or None."""

    def trouble(self) -> Trouble | None:
        """The reason why packets cannot be sent at present, or None."""

    def route(self) -> str:
        """From where to where packets go, for messages: ``UDP from 10.0.0.1:40000 to 10.0.0.254:24142``."""

    def note(self, refused: int, payload_bytes: int) -> None:
        """Records the fast path's result for packets of this size. refused: an errno, or 0 if they were sent."""

    def close(self) -> None:
        """Closes the socket."""


def readable(descriptor: int, timeout_s: float) -> bool:
    """Waits for data to read, at most for the timeout. Returns whether there is any. `select.select` only supports
    descriptors below 1024, and a training may have more files open."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(max(timeout_s, 0) * 1e3))


def _reason(error: Exception) -> str:
    """The error of an address or a descriptor, as a text."""
    if isinstance(error, OSError):
        return str(error.strerror)
    example = f"expected (HOST, PORT), for example ('127.0.0.1', {SERENE_UDP_PORT}), or a socket's descriptor"
    return f"{str(error).rstrip('.')}; {example}"


class _Socket:
    """A non-blocking socket with a batch of receive buffers. local: the address of a UDP socket, or the descriptor of a
    bound socket. remote: the address to connect to; None for a descriptor that needs no address to send. whole: refuses
    packets that would have to be fragmented. Raises TransportError; PortTaken if another process has the address."""

    def __init__(self, local: tuple[str, int] | int, remote: tuple[str, int] | None, *, whole: bool) -> None:
        try:
            given = local if isinstance(local, int) else None
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, fileno=given)
        except (OSError, ValueError) as error:
            raise TransportError(f"descriptor {local} is no socket: {_reason(error)}") from error
        try:
            for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
                self._socket.setsockopt(socket.SOL_SOCKET, option, SOCKET_BUFFER)
            if whole:
                self._socket.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _IP_PMTUDISC_PROBE)
            if not isinstance(local, int):
                self._socket.bind(local)
            if remote is not None:
                self._socket.connect(remote)
        except (OSError, TypeError, ValueError, OverflowError) as error:
            self._socket.close()
            kind = PortTaken if isinstance(error, OSError) and error.errno == errno.EADDRINUSE else TransportError
            raise kind(f"cannot send from {local!r} to {remote!r}: {_reason(error)}") from error
        self._remote = remote
        self._socket.setblocking(False)
        self.trouble: Trouble | None = None
        self._rows = np.zeros((BATCH, LARGEST_PAYLOAD + ENCAPSULATION_BYTES), np.uint8)
        self._views = [memoryview(row) for row in self._rows]  # type: ignore[arg-type]

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    @property
    def descriptor(self) -> int:
        return self._socket.fileno()

    def route(self) -> str:
        if self._socket.family != socket.AF_INET:
            return "a socket"
        source, destination = self._socket.getsockname(), self._remote
        to = "" if destination is None else f" to {destination[0]}:{destination[1]}"
        return f"UDP from {source[0]}:{source[1]}{to}"

    def send_rows(self, rows: np.ndarray) -> None:
        for row in rows:
            try:
                self._socket.send(row)
            except OSError as error:
                if error.errno is None or error.errno not in TRANSIENT:
                    raise TransportError(f"cannot send to the switch: {error.strerror}") from error
                self.note(error.errno, len(row))
            else:
                self.note(0, len(row))

    def note(self, refused: int, size: int) -> None:
        self.trouble = next_trouble(self.trouble, refused, size)

    def receive_rows(self, timeout_s: float) -> tuple[np.ndarray, np.ndarray]:
        lengths: list[int] = []
        if readable(self.descriptor, timeout_s):
            for view in self._views:
                try:
                    lengths.append(self._socket.recv_into(view))
                except BlockingIOError:
                    break
                except OSError as error:  # of an earlier send
                    if error.errno not in TRANSIENT:
                        raise TransportError(f"cannot receive from the switch: {error.strerror}") from error
        return self._rows[: len(lengths)], np.array(lengths, np.int64)

    def close(self) -> None:
        self._socket.close()


class UdpTransport:
    """UDP by the host's network stack: for workers on machines or Mininet hosts.

    switch_ip: the switch's address. bind_ip, port: the source; by default the kernel chooses. Raises TransportError,
    PortTaken if another process has the port.
    """

    def __init__(self, switch_ip: str = SWITCH_IP, *, bind_ip: str = "0.0.0.0", port: int = 0) -> None:
        # The switch adds up whole packets; it would only forward fragments.
        if not switch_ip or not bind_ip:  # to the kernel, "" is any address of this host
            raise TransportError(f"switch_ip {switch_ip!r}, bind_ip {bind_ip!r}: expected the addresses of hosts")
        self._socket = _Socket((bind_ip, port), (switch_ip, SERENE_UDP_PORT), whole=True)

    def send(self, payloads: np.ndarray) -> None:
        self._socket.send_rows(payloads)

    def receive(self, timeout_s: float) -> tuple[np.ndarray, np.ndarray]:
        return self._socket.receive_rows(timeout_s)

    def link(self, payload_bytes: int) -> Link:
        nothing = np.zeros(0, np.uint8)
        return Link(self._socket.descriptor, nothing, nothing, cuts=True)

    def trouble(self) -> Trouble | None:
        return self._socket.trouble

    def route(self) -> str:
        return self._socket.route()

    def note(self, refused: int, payload_bytes: int) -> None:
        self._socket.note(refused, payload_bytes)

    def close(self) -> None:
        self._socket.close()


class Frames(Protocol):
    """A carrier of whole Ethernet frames, uint8[n, bytes]; the methods as of `Transport`."""

    trouble: Trouble | None

    def route(self) -> str: ...

    def send_rows(self, rows: np.ndarray) -> None: ...

    def receive_rows(self, timeout_s: float) -> tuple[np.ndarray, np.ndarray]: ...

    def note(self, refused: int, size: int) -> None: ...

    def close(self) -> None: ...


class Framed:
    """Payloads in Ethernet frames, which this process writes itself, with the addresses of a virtual host: worker w is
    10.0.0.(w + 1), or 10.0.1.x and so on beyond 127 workers. Raises TransportError for other numbers and addresses."""

    def __init__(self, frames: Frames, worker: int, switch_ip: str, switch_mac: str, udp_port: int) -> None:
        self._frames = frames
        try:
            in_header("worker", worker, 0, MOST_HOSTS - 1)
            in_header("udp_port", udp_port, 1, 65535)
            check_addresses(switch_ip, switch_mac)
        except SereneError as error:
            frames.close()
            raise TransportError(str(error)) from None
        net, host = divmod(worker + 1, 128)
        self._source = (f"02:00:00:00:{net:02x}:{host:02x}", f"10.0.{net}.{host}", udp_port)
        self._destination = (switch_mac, switch_ip, SERENE_UDP_PORT)
        self._heads: dict[int, np.ndarray] = {}
        # A switch port also carries ordinary frames. Serene's are IPv4 and UDP, from the switch's address and port, to
        # this worker's port.
        self._expected = {
            12: b"\x08\x00",
            23: b"\x11",
            26: socket.inet_aton(switch_ip),
            34: SERENE_UDP_PORT.to_bytes(2, "big"),
            36: udp_port.to_bytes(2, "big"),
        }

    def _head(self, size: int) -> np.ndarray:
        if size not in self._heads:
            head = encapsulation(size, source=self._source, destination=self._destination)
            self._heads[size] = np.frombuffer(head, np.uint8)
        return self._heads[size]

    def send(self, payloads: np.ndarray) -> None:
        size = payloads.shape[1]
        frames = np.empty((len(payloads), ENCAPSULATION_BYTES + size), np.uint8)
        frames[:, :ENCAPSULATION_BYTES] = self._head(size)
        frames[:, ENCAPSULATION_BYTES:] = payloads
        self._frames.send_rows(frames)

    def receive(self, timeout_s: float) -> tuple[np.ndarray, np.ndarray]:
        frames, lengths = self._frames.receive_rows(timeout_s)
        ours = lengths >= ENCAPSULATION_BYTES
        for at, value in self._expected.items():
            ours &= (frames[:, at : at + len(value)] == np.frombuffer(value, np.uint8)).all(axis=1)
        return frames[ours][:, ENCAPSULATION_BYTES:], lengths[ours] - ENCAPSULATION_BYTES

    def _link(self, payload_bytes: int, *, descriptor: int = -1, shm: int = 0) -> Link:
        expected = np.zeros(ENCAPSULATION_BYTES, np.uint8)
        for at, value in self._expected.items():
            expected[at : at + len(value)] = np.frombuffer(value, np.uint8)
        return Link(descriptor, self._head(payload_bytes), expected, shm=shm)

    def trouble(self) -> Trouble | None:
        return self._frames.trouble

    def route(self) -> str:
        return f"frames to {self._destination[1]} in {self._frames.route()}"

    def note(self, refused: int, payload_bytes: int) -> None:
        self._frames.note(refused, ENCAPSULATION_BYTES + payload_bytes)

    def close(self) -> None:
        self._frames.close()


class FrameTransport(Framed):
    """Ethernet frames in UDP datagrams, for the embedded switch's ``udp:`` ports, without root or interfaces. Or in the
    packets of a given socket, such as a packet socket at an interface, for any switch.

    worker: the virtual host's number, from 0, which determines its addresses (`Framed`). local: the source address, or
    the descriptor of a bound socket; switch: the address of the switch's port, None for a descriptor that needs none.
    switch_ip, switch_mac, udp_port: the frames' addresses. Raises TransportError, PortTaken if another process has the
    address.
    """

    def __init__(
        self,
        worker: int,
        *,
        local: tuple[str, int] | int,
        switch: tuple[str, int] | None = None,
        switch_ip: str = SWITCH_IP,
        switch_mac: str = SWITCH_MAC,
        udp_port: int = 40000,
    ) -> None:
        if switch is None and not isinstance(local, int):
            raise TransportError(f"a socket at {local} needs switch=, the address of the switch's port")
        self._socket = _Socket(local, switch, whole=False)
        super().__init__(self._socket, worker, switch_ip, switch_mac, udp_port)

    def link(self, payload_bytes: int) -> Link:
        return self._link(payload_bytes, descriptor=self._socket.descriptor)
