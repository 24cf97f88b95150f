"""Builds and dissects Serene's frames for tests, including wrong ones."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from serene.sim.hosts import Host
from serene.wire import (
    ENCAPSULATION_BYTES,
    HEADER,
    SERENE_UDP_PORT,
    SWITCH_IP,
    SWITCH_MAC,
    Op,
    control_payload,
    encapsulation,
    membership,
)

UDP_PORT = 40000


def mac(worker: int) -> str:
    return Host.of(worker).mac


def ip(worker: int) -> str:
    return Host.of(worker).ip


def frame(payload: bytes, sender: int, *, source_mac: str = "", source_ip: str = "", udp_port: int = UDP_PORT) -> bytes:
    """The frame of a worker's UDP payload."""
    head = encapsulation(
        len(payload),
        source=(source_mac or mac(sender), source_ip or ip(sender), udp_port),
        destination=(SWITCH_MAC, SWITCH_IP, SERENE_UDP_PORT),
    )
    return head + payload


def request(
    op: Op,
    worker: int,
    *,
    values: np.ndarray | None = None,
    lanes: int = 320,
    job: int = 0,
    session: int = 7,
    epoch: int = 1,
    round: int = 0,
    seq: int = 1,
    slot: int = 0,
    total: int = 0,
    incarnation: int = 1,
) -> bytes:
    """The UDP payload of a HELLO, PUSH, PULL, REPORT or LEAVE."""
    body = b""
    if op in (Op.PUSH, Op.PULL):
        body = (np.zeros(lanes) if values is None else values).astype(">i4").tobytes()
    elif op is Op.HELLO:
        body = membership(vector_length=lanes * 4)
    return control_payload(
        op, body, job=job, worker=worker, session=session, epoch=epoch, round=round, seq=seq, slot=slot, total=total,
        incarnation=incarnation,
    )  # fmt: skip


@dataclass(frozen=True)
class Packet:
    """A frame that the switch sent to a port, without the addresses. values: int32 of an ANSWER; else empty."""

    port: int
    op: Op
    worker: int
    session: int
    epoch: int
    base: int
    seq: int
    slot: int
    total: int
    values: tuple[int, ...]


def dissect(port: int, data: bytes) -> Packet:
    """Dissects a frame."""
    payload = data[ENCAPSULATION_BYTES:]
    header = np.frombuffer(payload, HEADER, 1)[0]
    op = Op(int(header["op"]))
    values = np.frombuffer(payload[HEADER.itemsize :], ">i4") if op is Op.ANSWER else np.zeros(0)
    number = {name: int(header[name]) for name in ("worker", "session", "epoch", "round", "seq", "slot", "total")}
    return Packet(
        port, op, number["worker"], number["session"], number["epoch"], number["round"], number["seq"], number["slot"],
        number["total"], tuple(int(value) for value in values),
    )  # fmt: skip


def altered(data: bytes, at: int, value: bytes) -> bytes:
    """The data with other bytes at a place."""
    return data[:at] + value + data[at + len(value) :]


def with_ip_checksum(data: bytes) -> bytes:
    """The frame with a correct IPv4 checksum."""
    header = altered(data[14:34], 10, b"\0\0")
    total = sum(struct.unpack("!10H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return altered(data, 24, struct.pack("!H", ~total & 0xFFFF))
