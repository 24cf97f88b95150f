"""Packets to try a switch with: valid ones, and ones changed in ways that break parsers. Numbers in packets."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

MOST_BYTES = 1500


def pack(numbers: Iterable[tuple[int, int]]) -> bytes:
    """(number, bits) pairs end to end, padded to whole bytes."""
    total = bits = 0
    for number, width in numbers:
        total, bits = total << width | number & ((1 << width) - 1), bits + width
    return (total << (-bits % 8)).to_bytes((bits + 7) // 8, "big")


def unpack(data: bytes, widths: Iterable[int]) -> list[int]:
    """The unsigned numbers of so many bits with which the data begin."""
    total, bits, numbers = int.from_bytes(data, "big"), 8 * len(data), list[int]()
    for width in widths:
        bits -= width
        numbers.append(total >> bits & ((1 << width) - 1))
    return numbers


def mutated(rng: random.Random, packet: bytes, most_bytes: int = MOST_BYTES) -> bytes:
    """A packet with one to three changes: of bits, bytes or fields, cut off, extended, or with another packet's end."""
    data = bytearray(packet)
    for _ in range(rng.randint(1, 3)):
        kind = rng.randrange(7)
        if not data or kind == 0:
            data += rng.randbytes(rng.randint(1, 40))
        elif kind == 1:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        elif kind == 2:
            data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif kind == 3:
            at, width = rng.randrange(len(data)), rng.choice((2, 4))
            data[at : at + width] = rng.choice((b"\0", b"\xff", rng.randbytes(1))) * len(data[at : at + width])
        elif kind == 4:
            del data[rng.randrange(len(data)) :]
        elif kind == 5:
            at = rng.randrange(len(data))
            del data[at : at + rng.randint(1, 4)]
        else:
            at = rng.randrange(len(data))
            data[at:at] = rng.randbytes(rng.randint(1, 4))
    return bytes(data[:most_bytes])


def trial(rng: random.Random, seeds: Sequence[tuple[int, bytes]], count: int) -> list[tuple[int, bytes]]:
    """``count`` pairs of (port, packet): seeds unchanged, mutated or on other ports, and noise. No packet is empty."""
    ports = sorted({port for port, _ in seeds}) or [1]
    packets: list[tuple[int, bytes]] = []
    while len(packets) < count:
        port, seed = rng.choice(seeds) if seeds else (rng.choice(ports), b"")
        kind = rng.random()
        if kind < 0.2:
            packet = seed
        elif kind < 0.9:
            packet = mutated(rng, seed)
        else:
            packet = rng.randbytes(rng.randint(1, 120))
        if rng.random() < 0.1:
            port = rng.choice(ports)
        if packet:
            packets.append((port, packet))
    return packets


def shapes() -> list[tuple[int, bytes]]:
    """Packets for programs/shapes.p4 that take each path of its parser."""
    rng = random.Random(1)
    packets = []
    for kind in (*range(16), 0x13, 0x22, 0x32, 0x87, 0x86):
        for tags in range(4):
            first = bytes([tags, rng.randrange(16) << 4 | rng.randrange(16), kind])
            body = bytes(2 * value + (place == tags - 1) for place, value in enumerate(rng.choices(range(128), k=tags)))
            packets.append((rng.randrange(4), first + body + rng.randbytes(rng.randrange(60))))
    return packets
