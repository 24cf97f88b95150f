"""Fast encoding of packets: headers and whole batches of packets as NumPy arrays.

The layout is that of p4src/include/headers.p4; a test compares them. ``serene.layers`` builds scapy's layers from the
same lists, so both have the same format. All numbers are big-endian.
"""

from __future__ import annotations

import ipaddress
import re
import struct
from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache

import numpy as np

from serene.errors import SereneError

SERENE_UDP_PORT = 24142
PROTOCOL_VERSION = 2
UNBOUNDED = 255  # the staleness bound that means: no worker waits
ROOT = 255  # the root's worker id at a leaf
PRECISIONS = (32, 16, 8)  # bits of a pool's values in packets, by their code
MEMBER_BITS = 6  # bits of a pool's field `members`; the two bits above them are the code of its precision
MOST_IN_POOL = (1 << MEMBER_BITS) - 1  # workers
SWITCH_IP = "10.0.0.254"
SWITCH_MAC = "02:00:00:00:fe:fe"


class Op(IntEnum):
    HELLO = 0x01
    PUSH = 0x02
    PULL = 0x03
    REPORT = 0x04
    LEAVE = 0x05
    UP = 0x06  # from a leaf to the root
    WELCOME = 0x81
    ANSWER = 0x82
    NUDGE = 0x83
    REFUSED = 0x84
    BYE = 0x85
    WAIT = 0x86
    DOWN = 0x87  # from the root to a leaf
    GRANT = 0x88


class ReadMode(IntEnum):
    LATEST = 0
    SNAPSHOT = 1


# (name, bytes)
SERENE_FIELDS = (
    ("version", 1),
    ("op", 1),
    ("job", 1),
    ("worker", 1),
    ("session", 4),
    ("epoch", 4),
    ("round", 4),
    ("seq", 4),
    ("slot", 4),
    ("total", 4),
    ("seen", 4),
    ("sync_mask", 4),
    ("staleness", 1),
    ("quorum", 1),
    ("read_mode", 1),
    ("members", 1),
)
MEMBERSHIP_FIELDS = (
    ("vector_length", 4),
    ("slots", 4),
    ("scale", 4),
    ("limit", 4),
    ("lanes", 2),
    ("workers", 1),
    ("lost_sessions", 1),
)


def _layout(fields: Sequence[tuple[str, int]]) -> np.dtype:
    return np.dtype([(name, f">u{size}") for name, size in fields])


def _with_alias(layout: np.dtype, alias: str, name: str) -> np.dtype:
    """The same type with a second name for some of its bytes."""
    assert layout.fields is not None and layout.names is not None
    fields = {field: layout.fields[field][:2] for field in layout.names}
    fields[alias] = fields[name]
    return np.dtype(
        {
            "names": list(fields),
            "formats": [kind for kind, _ in fields.values()],
            "offsets": [offset for _, offset in fields.values()],
            "itemsize": layout.itemsize,
        }
    )


# 40 bytes. A request has its worker's incarnation in the bytes in which an ANSWER has `seen`.
HEADER = _with_alias(_layout(SERENE_FIELDS), "incarnation", "seen")
MEMBERSHIP = _layout(MEMBERSHIP_FIELDS)  # 20 bytes
ENCAPSULATION_BYTES = 14 + 20 + 8  # Ethernet, IPv4, UDP


def push_payloads(values: np.ndarray, *, op: Op = Op.PUSH, **header: int | np.ndarray) -> np.ndarray:
    """UDP payloads that carry a whole vector, one row for each slot.

    values: int32[slots, lanes]. ``header`` sets fields of every packet (job, worker, session, epoch, round, seq).
    Returns uint8[slots, 40 + 4 * lanes].
    """
    slots, lanes = values.shape
    layout = np.dtype([("header", HEADER), ("values", ">i4", (lanes,))])
    packets = np.zeros(slots, layout)
    fields = packets["header"]
    fields["version"], fields["op"] = PROTOCOL_VERSION, op
    for name, value in header.items():
        fields[name] = value
    fields["slot"] = np.arange(slots)
    packets["values"] = values
    return packets.view(np.uint8).reshape(slots, layout.itemsize)


def control_payload(op: Op, body: bytes = b"", **header: int) -> bytes:
    """One packet's UDP payload: a header, and its body (a membership, JSON, or a text)."""
    packet = np.zeros((), HEADER)
    packet["version"], packet["op"] = PROTOCOL_VERSION, op
    for name, value in header.items():
        packet[name] = value
    return packet.tobytes() + body


def membership(**fields: int) -> bytes:
    """The body of a HELLO or WELCOME."""
    body = np.zeros((), MEMBERSHIP)
    for name, value in fields.items():
        body[name] = value
    return body.tobytes()


def members_field(members: int, precision: int) -> int:
    """A policy's field `members`: the number of members (0 means 256). A pool has fewer than 64 members, and its field
    also has the precision of its values. The switch only copies the field to answers."""
    return members & 0xFF | PRECISIONS.index(precision) << MEMBER_BITS


def members_in(field: int) -> int:
    return field & (1 << MEMBER_BITS) - 1


def precision_in(field: int) -> int | None:
    """The bits of a pool's values that the field names; None if its code is not valid."""
    code = field >> MEMBER_BITS
    return PRECISIONS[code] if code < len(PRECISIONS) else None


def headers_of(payloads: np.ndarray) -> np.ndarray:
    """The headers of equally wide rows: uint8[n, >= 40] to HEADER[n]."""
    return np.ascontiguousarray(payloads[:, : HEADER.itemsize]).view(HEADER).reshape(len(payloads))


def values_of(payloads: np.ndarray, lanes: int) -> np.ndarray:
    """The values of equally wide rows: uint8[n, >= 40 + 4 * lanes] to big-endian int32[n, lanes]."""
    start = HEADER.itemsize
    return np.ascontiguousarray(payloads[:, start : start + 4 * lanes]).view(">i4")


# -- whole frames, for ports that carry Ethernet in UDP ------------------------------------------------------


def ipv4_checksum(header: bytes) -> int:
    total: int = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def mac_bytes(mac: str) -> bytes:
    return bytes.fromhex(mac.replace(":", ""))


@lru_cache(4096)
def _ip_bytes(ip: str) -> bytes:
    return ipaddress.IPv4Address(ip).packed


def check_addresses(ip: str, mac: str) -> None:
    """Raises SereneError unless these are an IPv4 and a MAC address."""
    try:
        _ip_bytes(str(ip))
    except ValueError:
        raise SereneError(f"IP address {ip!r}: expected one like {SWITCH_IP}") from None
    if not re.fullmatch("([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}", str(mac)):
        raise SereneError(f"MAC address {mac!r}: expected one like {SWITCH_MAC}")


def encapsulation(payload_bytes: int, *, source: tuple[str, str, int], destination: tuple[str, str, int]) -> bytes:
    """Ethernet, IPv4 and UDP headers for a payload of that size; an end is (mac, ip, UDP port)."""
    udp = struct.pack("!HHHH", source[2], destination[2], 8 + payload_bytes, 0)
    addresses = _ip_bytes(source[1]) + _ip_bytes(destination[1])
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 28 + payload_bytes, 0, 0, 64, 17, 0) + addresses
    ip = ip[:10] + struct.pack("!H", ipv4_checksum(ip)) + ip[12:]
    return mac_bytes(destination[0]) + mac_bytes(source[0]) + b"\x08\x00" + ip + udp


def in_header(what: str, value: int, low: int, high: int) -> int:
    """The value if it fits the header's field; otherwise raises SereneError. The controller checks whether the job has
    it."""
    if not hasattr(value, "__index__") or not low <= value <= high:
        raise SereneError(f"{what} {value!r}: expected a whole number from {low} to {high}")
    return int(value)
