"""Numbers as P4Runtime writes them: big-endian byte strings without leading zeros."""

from __future__ import annotations

from collections.abc import Sequence

from finsy.proto import p4r

from serene.switch.p4runtime.status import invalid


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


def pack_metadata(fields: Sequence[tuple[int, str, int]], metadata: Sequence[p4r.PacketMetadata]) -> bytes:
    """Packs packet-out metadata into its header's bytes; fields are (id, name, bits), in the header's order."""
    given = {item.metadata_id: item.value for item in metadata}
    names = ", ".join(f"{id_} ({name})" for id_, name, _ in fields) or "none"
    if set(given) != {id_ for id_, _, _ in fields} or len(given) != len(metadata):
        ids = [item.metadata_id for item in metadata]
        raise invalid(f"packet-out metadata {ids}; expected each of {names} once")
    total, bits = 0, 0
    for id_, name, width in fields:
        total = total << width | decode(given[id_], width, f"packet-out metadata {name!r}")
        bits += width
    return total.to_bytes((bits + 7) // 8, "big")


def unpack_metadata(fields: Sequence[tuple[int, str, int]], header: bytes) -> list[p4r.PacketMetadata]:
    """The inverse of ``pack_metadata``, for packet-in."""
    total = int.from_bytes(header, "big")
    items = []
    for id_, _, width in reversed(fields):
        items.append(p4r.PacketMetadata(metadata_id=id_, value=encode(total & ((1 << width) - 1))))
        total >>= width
    return items[::-1]
