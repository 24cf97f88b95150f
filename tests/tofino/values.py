"""The state of a program on the machine: values and their types, headers, packets, tables and registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.tofino.p4text import Node

Type = tuple[Any, ...]  # ("bit", 8), ("int", 32), ("bool",), ("record", name)
Value = tuple[Any, Type | None]
BOOL: Type = ("bool",)


class Record:
    """A header or a struct."""

    __slots__ = ("fields", "name", "types", "valid")

    def __init__(self, name: str, types: dict[str, Type], fields: dict[str, Any], valid: bool) -> None:
        self.name, self.types, self.fields, self.valid = name, types, fields, valid

    def set_valid(self, valid: bool) -> None:
        self.valid = valid

    def copy(self) -> Record:
        return Record(self.name, self.types, dict(self.fields), self.valid)


@dataclass
class Table:
    """functions: of the actions, with the types of their parameters, by the names that the control plane knows. added:
    by their keys, an action's function and its arguments."""

    name: str
    keys: int
    functions: dict[str, tuple[Callable[..., None], list[Type]]]
    added: dict[tuple[int, ...], tuple[Callable[..., None], list[int]]] = field(default_factory=dict)


@dataclass
class RegisterArray:
    name: str
    cell: Type
    size: int
    cells: dict[int, Any] = field(default_factory=dict)


@dataclass
class Instance:
    """A control or a parser: what it declares, and its functions."""

    block: Node
    scope: dict[str, Any]
    functions: dict[str, Any]


class Bits:
    """A packet, bit by bit, that is being parsed or assembled."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.out, self.out_bits = data, 0, 0, 0

    def take(self, width: int) -> int:
        if self.at + width > 8 * len(self.data):
            raise EOFError
        first, last = self.at // 8, (self.at + width + 7) // 8
        chunk = int.from_bytes(self.data[first:last], "big") >> (8 * last - self.at - width)
        self.at += width
        return chunk & ((1 << width) - 1)

    advance = take

    def extract(self, header: Record) -> None:
        whole = sum(kind[1] for kind in header.types.values())
        value = self.take(whole)
        for name, kind in header.types.items():
            whole -= kind[1]
            header.fields[name] = value >> whole & ((1 << kind[1]) - 1)
        header.valid = True

    def put(self, value: int, width: int) -> None:
        self.out, self.out_bits = self.out << width | value, self.out_bits + width

    def emit(self, header: Record) -> None:
        if header.valid:
            for name, kind in header.types.items():
                self.put(header.fields[name], kind[1])


def wrap(value: int, kind: Type | None) -> int:
    if kind is None or kind == BOOL:
        return value
    value &= (1 << kind[1]) - 1
    return value - (1 << kind[1]) if kind[0] == "int" and value >> (kind[1] - 1) else value


def signed(value: int, width: int) -> int:
    return wrap(value, ("int", width))


def predicate(*answers: bool) -> int:
    """What a register action puts out of its comparisons: a bit of four for each combination."""
    return 1 << sum(bool(answer) << place for place, answer in enumerate(answers))


def bytes_of(record: Record) -> bytes:
    bits = Bits(b"")
    for name, kind in record.types.items():
        bits.put(record.fields[name], kind[1])
    return bits.out.to_bytes(bits.out_bits // 8, "big")


def pack(values: Sequence[Value]) -> tuple[int, int]:
    """The values concatenated, and the number of bits of the result."""
    packed = width = 0
    for value, kind in values:
        assert kind
        packed, width = packed << kind[1] | value, width + kind[1]
    return packed, width


def internet_checksum(data: bytes) -> int:
    """The Internet checksum of RFC 1071."""
    total = sum(int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
