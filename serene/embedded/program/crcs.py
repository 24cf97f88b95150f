"""CRCs whose parameters are set while the program runs: HashAlgorithm.crc16_custom and crc32_custom of v1model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass

from serene.errors import SereneError

WIDTHS: Mapping[str, int] = {"crc8_custom": 8, "crc16_custom": 16, "crc32_custom": 32, "crc64_custom": 64}


@dataclass(frozen=True)
class Crc:
    """A CRC's parameters, with BMv2's names. The polynomial is written without its highest term, the highest power
    first."""

    polynomial: int
    initial_remainder: int = 0
    final_xor_value: int = 0
    data_reflected: bool = False
    remainder_reflected: bool = False

    def fits(self, bits: int) -> bool:
        return all(0 <= number < 1 << bits for number in astuple(self)[:3])


DEFAULTS: Mapping[str, Crc] = {  # BMv2's defaults
    "crc8_custom": Crc(0x07),
    "crc16_custom": Crc(0x8005, 0, 0, True, True),
    "crc32_custom": Crc(0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF, True, True),
    "crc64_custom": Crc(0x1B, 0, 0, True, True),
}


def _crc(polynomial: int, initial: int, final: int, data: int, remainder: int) -> Crc:
    return Crc(polynomial, initial, final, bool(data), bool(remainder))


USAGE = "NAME=POLYNOMIAL[,INITIAL,XOR,REFLECT_DATA,REFLECT_REMAINDER]"


class BadCrc(SereneError):
    """The text does not have the form of USAGE."""


def parse_crc(text: str) -> tuple[str, Crc | int]:
    """``calc_1=0x04c11db7`` or ``calc_1=0x04c11db7,0xffffffff,0xffffffff,1,1``: a calculation's name, and its CRC, or
    its polynomial alone. Raises BadCrc."""
    name, equals, values = text.partition("=")
    try:
        numbers = [int(value, 0) for value in values.split(",")]
        if not name or not equals or len(numbers) not in (1, 5) or not set(numbers[3:]) <= {0, 1} or min(numbers) < 0:
            raise ValueError
    except ValueError:
        raise BadCrc(f"{text!r} is no CRC; expected {USAGE}, the last two 0 or 1") from None
    return name, numbers[0] if len(numbers) == 1 else _crc(*numbers)
