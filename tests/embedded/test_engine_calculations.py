"""Hashes and checksums: their input, byte by byte, and their algorithms, with CRCs that are set at run time."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from typing import Any

import pytest

from serene.embedded import Switch
from serene.embedded.control.types import ControlError
from serene.embedded.program.crcs import Crc, parse_crc
from tests.embedded import small
from tests.embedded.crc import by_the_book

A, B = (small.field("h", name) for name in "ab")
WHOLE = (1 << 64) - 1  # what a hash is taken modulo, to see all its bits


def hashed(target: str, calculation: str, base: int = 0, modulo: int = WHOLE) -> small.Node:
    """The primitive for ``hash`` with a result in header h."""
    of = {"type": "calculation", "value": calculation}
    return small.primitive("modify_field_with_hash_based_offset", small.field("h", target), small.constant(base), of,
                           small.constant(modulo))  # fmt: skip


WIDTHS = (8, 16, 32, 64)


@pytest.fixture(scope="module")
def hashing() -> Iterator[Switch]:
    """Header h is 32 bits of data, and 64 bits for their hash by the CRC of each width, crc8 to crc64."""
    made = small.program([*(hashed(f"hash{bits}", f"crc{bits}") for bits in WIDTHS), small.send_to(1)])
    made["header_types"][1]["fields"] = [["data", 32, False], *([f"hash{bits}", 64, False] for bits in WIDTHS)]
    made["calculations"] = [
        {"name": f"crc{bits}", "id": bits, "algo": f"crc{bits}_custom", "input": [small.field("h", "data")]}
        for bits in WIDTHS
    ]
    with small.load(made) as switch:
        yield switch


def hash_of(switch: Switch, bits: int, data: bytes) -> int:
    ((_, packet),) = switch.process(0, data + bytes(8 * len(WIDTHS)))
    at = 4 + 8 * WIDTHS.index(bits)
    return int.from_bytes(packet[at : at + 8], "big")


OPTION: list[list[Any]] = [["kind", 8, False], ["data", "*"], ["end", 8, False]]


@pytest.mark.parametrize("elements", [
    [{"type": "header", "value": "option"}], [small.field("option", str(name)) for name, *_ in OPTION],
], ids=["header", "fields"])  # fmt: skip
@pytest.mark.parametrize("valid", [True, False])
def test_calculation_leaves_out_an_invalid_header_as_bmv2_does(elements: list[small.Node], valid: bool) -> None:
    """Such as an IP option that a packet lacks, or the ports of another protocol."""
    made = small.program([hashed("hash", "crc"), small.send_to(1)])
    made["header_types"][1]["fields"] += [["hash", 32, False]]
    small.with_header(made, "option", OPTION, max_length=40)
    made["calculations"] = [{"name": "crc", "id": 0, "algo": "crc32", "input": [A, *elements, A]}]
    if valid:
        option = [{"type": "regular", "value": "option"}, {"type": "expression", "value": small.constant(24)}]
        made["parsers"][0]["parse_states"][0]["parser_ops"].append({"op": "extract_VL", "parameters": option})
    with small.load(made) as switch:
        ((_, packet),) = switch.process(0, b"A" + bytes(4) + b"kDATe")
    assert int.from_bytes(packet[1:5], "big") == zlib.crc32(b"AkDATeA" if valid else b"AA")


def bits_of(data: bytes) -> str:
    return "".join(f"{byte:08b}" for byte in data)


@pytest.mark.parametrize("valid", [True, False])
@pytest.mark.parametrize("names", [["x"], ["data"], ["data", "x"]], ids="+".join)
def test_calculation_s_fields_may_begin_inside_a_byte(names: list[str], valid: bool) -> None:
    """After 4 bits come fields that the packet may lack, 3 bits, a bool, and the payload, which begins with a byte."""
    made = small.program([hashed("hash", "crc"), small.send_to(1)])
    made["header_types"][1]["fields"] += [["hash", 32, False], ["true", 1, False], ["_", 7, False]]
    small.with_header(made, "part", [["x", 4, False], ["y", 4, False], ["data", "*"]], max_length=4)
    five, three = ({"type": "hexstr", "value": hex(value), "bitwidth": bits} for value, bits in ((5, 4), (3, 3)))
    fields = [small.field("part", name) for name in names]
    true = small.operation("d2b", None, small.field("h", "true"))  # as p4c writes a bool
    elements = [A, five, *fields, three, true, {"type": "payload"}]
    made["calculations"] = [{"name": "crc", "id": 0, "algo": "crc32", "input": elements}]
    if valid:
        part = [{"type": "regular", "value": "part"}, {"type": "expression", "value": small.constant(16)}]
        made["parsers"][0]["parse_states"][0]["parser_ops"].append({"op": "extract_VL", "parameters": part})
    with small.load(made) as switch:
        ((_, packet),) = switch.process(0, b"A" + bytes(4) + b"\x80" + (b"\x78DA" if valid else b"") + b"tail")
    held = {"x": "0111", "data": bits_of(b"DA")}
    bits = bits_of(b"A") + "0101" + "".join(held[name] for name in names if valid) + "0111"
    whole = bytes(int(bits[at : at + 8].ljust(8, "0"), 2) for at in range(0, len(bits), 8))
    assert int.from_bytes(packet[1:5], "big") == zlib.crc32(whole + b"tail")


def test_hash_algorithms_match_known_values() -> None:
    """The CRCs' values are those that catalogues give for this text."""
    text = b"123456789"
    known = {"crc16": 0xBB3D, "crc32": 0xCBF43926, "crcCCITT": 0x29B1, "identity": int.from_bytes(text[:8], "big"),
             "xor16": 0x3132 ^ 0x3334 ^ 0x3536 ^ 0x3738 ^ 0x3900,
             "csum16": ~(0x3132 + 0x3334 + 0x3536 + 0x3738 + 0x3900 - 0xFFFF) & 0xFFFF}  # fmt: skip
    made = small.program([*(hashed(name, name) for name in known), small.send_to(1)])
    made["header_types"][1]["fields"] = [["text", 72, False], *([name, 64, False] for name in known)]
    made["calculations"] = [
        {"name": name, "id": at, "algo": name, "input": [small.field("h", "text")]} for at, name in enumerate(known)
    ]
    with small.load(made) as switch:
        ((_, packet),) = switch.process(0, text + bytes(8 * len(known)))
    found = {name: int.from_bytes(packet[9 + 8 * at : 17 + 8 * at], "big") for at, name in enumerate(known)}
    assert found == known


def test_hash_is_taken_modulo_its_maximum_or_is_the_base() -> None:
    """v1model: a maximum of 0 gives the base."""
    steps = [hashed("low", "crc", 7, 1000), hashed("none", "crc", 7, 0)]
    made = small.program([*steps, small.send_to(1)])
    made["header_types"][1]["fields"] += [["low", 32, False], ["none", 32, False]]
    made["calculations"] = [{"name": "crc", "id": 0, "algo": "crc32", "input": [A]}]
    with small.load(made) as switch:
        ((_, packet),) = switch.process(0, b"A" + bytes(8))
    assert [int.from_bytes(packet[at : at + 4], "big") for at in (1, 5)] == [7 + zlib.crc32(b"A") % 1000, 7]


@pytest.mark.parametrize(("algorithm", "packet", "error"), [
    ("identity", b"\x07\0\x07", 0), ("identity", b"\x07\0\x08", 1), ("identity", b"\x01\0", 0),
    ("csum16", b"\x07\0\xff", 1),
])  # fmt: skip
def test_checksum_is_verified_in_full_while_its_header_is_valid(algorithm: str, packet: bytes, error: int) -> None:
    """As on BMv2: the checksum of a header that the packet lacks is not wrong, and a checksum of 16 bits does not equal
    its low 8 bits."""
    result = small.primitive("assign", B, small.field("standard_metadata", "checksum_error"))
    made = small.with_header(small.program([result, small.send_to(1)]), "more", [["sum", 8, False]])
    made["header_types"][1]["fields"] = [["a", 8, False], ["b", 8, False]]
    small.with_more_after_seven(made, small.extract("more"))
    made["calculations"] = [{"name": "sum", "id": 0, "algo": algorithm, "input": [A]}]
    made["checksums"] = [
        {"name": "c", "id": 0, "target": ["more", "sum"], "type": "generic", "calculation": "sum", "verify": True,
         "update": False}
    ]  # fmt: skip
    with small.load(made) as switch:
        ((_, sent),) = switch.process(0, packet)
    assert sent[1] == error


def test_default_crc_and_polynomial_alone_match_known_values(hashing: Switch) -> None:
    assert hash_of(hashing, 32, b"abcd") == zlib.crc32(b"abcd")
    hashing.crc_set("crc32", 0x1EDC6F41)
    assert hash_of(hashing, 32, b"abcd") == 0x92C80A31  # CRC-32C (Castagnoli)
    with pytest.raises(ControlError, match="have 32 bits"):
        hashing.crc_set("crc32", 1 << 32)
    with pytest.raises(ControlError, match="no calculation with a CRC of its own 'other'; it has crc"):
        hashing.crc_set("other", 7)


@pytest.mark.parametrize("bits", WIDTHS)
def test_crc_parameters_can_be_set_at_run_time(hashing: Switch, bits: int) -> None:
    rng = random.Random(bits)
    for _ in range(100):
        polynomial, initial, final = (rng.getrandbits(bits) for _ in range(3))
        crc = Crc(polynomial, initial, final, rng.random() < 0.5, rng.random() < 0.5)
        data = rng.randbytes(4)
        hashing.crc_set(f"crc{bits}", crc)
        assert hash_of(hashing, bits, data) == by_the_book(crc, bits, data), (crc, data)


def test_crc_option_may_have_two_or_five_parts() -> None:
    assert parse_crc("calc=0x07") == ("calc", 7)
    assert parse_crc("calc=1,2,3,0,1") == ("calc", Crc(1, 2, 3, False, True))
