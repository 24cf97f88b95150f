"""CRCs by their definition."""

from __future__ import annotations

from serene.embedded.program.crcs import Crc


def reverse(number: int, size: int) -> int:
    return int(f"{number:0{size}b}"[::-1], 2)


def by_the_book(crc: Crc, bits: int, data: bytes) -> int:
    """Polynomial division of the message followed by zeros, on bits in a list."""
    message = b"".join((reverse(byte, 8) if crc.data_reflected else byte).to_bytes(1, "big") for byte in data)
    number = int.from_bytes(message, "big") << bits
    number ^= crc.initial_remainder << 8 * len(data)  # what it holds at first meets the first bits
    for bit in reversed(range(bits, bits + 8 * len(data))):
        if number >> bit & 1:
            number ^= (1 << bits | crc.polynomial) << (bit - bits)
    return (reverse(number, bits) if crc.remainder_reflected else number) ^ crc.final_xor_value
