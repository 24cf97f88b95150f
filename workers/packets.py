"""A worker's packet encoders: ``PACKETS=compiled``, ``numpy`` or ``scapy``.

The packets on the wire are identical bit for bit. The C code and NumPy are fast. scapy's layers (serene/layers.py) are
the readable definition: with ``scapy`` they build and dissect every packet of the worker, field by field. The
transport, UDP sockets or whole frames in UDP, is the same for all three.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from serene.client import Transport
from serene.client.transport.transport import LARGEST_PAYLOAD, Trouble
from serene.errors import SereneError, choices
from serene.wire import HEADER, MEMBERSHIP, MEMBERSHIP_FIELDS, SERENE_FIELDS, Op

_WITH_MEMBERSHIP, _WITH_VALUES = (Op.HELLO, Op.WELCOME), (Op.PUSH, Op.PULL, Op.ANSWER)


class NumpyPackets:
    """A transport without the C fast path: the protocol runs in Python on NumPy arrays."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def send(self, payloads: np.ndarray) -> None:
        self._transport.send(payloads)

    def receive(self, timeout_s: float) -> tuple[np.ndarray, np.ndarray]:
        return self._transport.receive(timeout_s)

    def link(self, payload_bytes: int) -> None:
        return None

    def trouble(self) -> Trouble | None:
        return self._transport.trouble()

    def route(self) -> str:
        return self._transport.route()

    def note(self, refused: int, payload_bytes: int) -> None:
        self._transport.note(refused, payload_bytes)

    def close(self) -> None:
        self._transport.close()


class ScapyPackets(NumpyPackets):
    """Each packet is built by scapy's layers before it is sent, and dissected by them when it arrives. Raises
    SereneError where scapy is not installed."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        try:
            from serene import layers
        except ImportError as error:
            raise SereneError(f"PACKETS=scapy needs scapy: pip install scapy ({error})") from None
        self._layers = layers
        self._rows = np.zeros((0, LARGEST_PAYLOAD), np.uint8)

    def send(self, payloads: np.ndarray) -> None:
        built = [np.frombuffer(self.build(payload), np.uint8) for payload in payloads]
        if built:
            self._transport.send(np.stack(built))

    def receive(self, timeout_s: float) -> tuple[np.ndarray, np.ndarray]:
        rows, lengths = self._transport.receive(timeout_s)
        if len(self._rows) < len(rows):
            self._rows = np.zeros((len(rows), LARGEST_PAYLOAD), np.uint8)
        for number, (row, length) in enumerate(zip(rows, lengths, strict=True)):
            payload = self.dissect(row[:length].tobytes())
            self._rows[number, : len(payload)] = np.frombuffer(payload, np.uint8)
        return self._rows[: len(rows)], lengths

    def build(self, payload: np.ndarray) -> bytes:
        """A packet's bytes as scapy builds them. payload: the same packet as the protocol built it, uint8[bytes]."""
        layers, size = self._layers, HEADER.itemsize
        header, rest = payload[:size].view(HEADER)[0], payload[size:]
        packet = layers.Serene(**{name: int(header[name]) for name, _ in SERENE_FIELDS})
        if header["op"] in _WITH_MEMBERSHIP and len(rest) == MEMBERSHIP.itemsize:
            membership = rest.view(MEMBERSHIP)[0]
            packet /= layers.Membership(**{name: int(membership[name]) for name, _ in MEMBERSHIP_FIELDS})
        elif header["op"] in _WITH_VALUES:
            packet /= layers.Values(values=rest.view(">i4").tolist())
        elif len(rest):
            packet /= rest.tobytes()  # a REPORT's text
        return bytes(packet)

    def dissect(self, payload: bytes) -> bytes:
        """A packet's bytes, assembled from the fields that scapy dissected, for the protocol to read. A packet that is
        too short for one of Serene's is returned unchanged."""
        layers = self._layers
        if len(payload) < HEADER.itemsize:
            return payload
        packet = layers.Serene(payload)
        header = np.zeros(1, HEADER)
        for name, _ in SERENE_FIELDS:
            header[name] = packet.getfieldval(name)
        if layers.Values in packet:
            rest = np.array(packet[layers.Values].values, ">i4").tobytes()
        elif layers.Membership in packet:
            body = np.zeros(1, MEMBERSHIP)
            for name, _ in MEMBERSHIP_FIELDS:
                body[name] = packet[layers.Membership].getfieldval(name)
            rest = body.tobytes()
        else:
            rest = b""
        whole = header.tobytes() + rest
        return whole + payload[len(whole) :]


def _compiled(transport: Transport) -> Transport:
    return transport


PACKETS: Mapping[str, Callable[[Transport], Transport]] = {
    "compiled": _compiled,  # C where it can be compiled, else NumPy
    "numpy": NumpyPackets,
    "scapy": ScapyPackets,
}


def check_packets(name: str) -> None:
    """Checks a value of PACKETS. Raises SereneError, which names the valid choices."""
    if name not in PACKETS:
        raise SereneError(f"PACKETS={name}: expected {choices(PACKETS)}")
