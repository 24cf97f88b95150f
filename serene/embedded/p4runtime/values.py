"""P4Runtime's encoding of numbers: big-endian byte strings without leading zeros."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from finsy.proto import p4r

from serene.embedded.p4runtime.status import invalid
from serene.embedded.p4runtime.strings import StringType

METADATA_BITS = 8192  # of a packet-in or packet-out header


def decode(data: bytes, width: int, what: str) -> int:
    """The number in a byte string of at most ``width`` bits; leading zeros are accepted."""
    if not data:
        raise invalid(f"{what}: an empty byte string; expected a number of {width} bits")
    value = int.from_bytes(data, "big")
    if value.bit_length() > width:
        raise invalid(f"{what}: {value:#x} does not fit {width} bits")
    return value


def encode(value: int) -> bytes:
    return value.to_bytes(max((value.bit_length() + 7) // 8, 1), "big")


@dataclass(frozen=True)
class HeaderField:
    id: int
    name: str
    bits: int
    strings: StringType | None = None  # the type, if controllers write strings for the number


class ControllerHeader:
    """The header before packets to the controller (packet_in) or from it (packet_out).

    ``bits``: its whole size, if the program's header has more fields than the P4Info's. These fields are 0 in
    packet-outs.
    """

    def __init__(self, name: str, fields: Sequence[HeaderField], bits: int | None = None) -> None:
        used = sum(field.bits for field in fields)
        if any(field.bits < 0 for field in fields) or used > METADATA_BITS:
            raise invalid(f"the P4Info's {name} has fields of less than 0 bits, or more than {METADATA_BITS}")
        if len({field.id for field in fields}) < len(fields):
            raise invalid(f"the P4Info's {name} has two fields with one id")
        self.name, self.fields = name, tuple(fields)
        self._filling = 0 if bits is None else bits - used
        self.bytes = (used + self._filling + 7) // 8

    def pack(self, metadata: Sequence[p4r.PacketMetadata]) -> bytes:
        """Packs metadata into the header's bytes."""
        given = {item.metadata_id: item.value for item in metadata}
        names = ", ".join(f"{field.id} ({field.name})" for field in self.fields)
        if set(given) != {field.id for field in self.fields} or len(given) != len(metadata):
            ids = [item.metadata_id for item in metadata]
            raise invalid(f"packet-out metadata {ids}; expected {f'each of {names} once' if names else 'none'}")
        total = 0
        for field in self.fields:
            what, data = f"packet-out metadata {field.name!r}", given[field.id]
            number = decode(data, field.bits, what) if field.strings is None else field.strings.number(data, what)
            total = total << field.bits | number
        return (total << self._filling).to_bytes(self.bytes, "big")

    def unpack(self, header: bytes) -> list[p4r.PacketMetadata]:
        """The inverse of ``pack``."""
        total = int.from_bytes(header, "big") >> self._filling
        items = []
        for field in reversed(self.fields):
            number = total & ((1 << field.bits) - 1)
            value = encode(number) if field.strings is None else field.strings.string(number)
            items.append(p4r.PacketMetadata(metadata_id=field.id, value=value))
            total >>= field.bits
        return items[::-1]
