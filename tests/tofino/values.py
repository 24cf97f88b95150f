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

    def copy(self) -> Record:
        return Record(self.name, self.types, dict(self.fields), self.valid)


@dataclass
class Table:
    name: str
    keys: list[Node]
    kinds: list[str]
    actions: dict[str, str]  # the control plane's name of an action -> the program's
    entries: list[tuple[list[Node], Node]]
    default: Node | None
    added: dict[tuple[int, ...], tuple[str, Sequence[int]]] = field(default_factory=dict)


@dataclass
class RegisterArray:
    name: str
    cell: Type
    size: int
    cells: dict[int, Any] = field(default_factory=dict)


@dataclass
class Instance:
    """A control or a parser, with its state."""

    block: Node
    scope: dict[str, Any]


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

    def put(self, value: int, width: int) -> None:
        self.out, self.out_bits = self.out << width | value, self.out_bits + width


def wrap(value: int, kind: Type | None) -> int:
    if kind is None or kind == BOOL:
        return value
    value &= (1 << kind[1]) - 1
    return value - (1 << kind[1]) if kind[0] == "int" and value >> (kind[1] - 1) else value


def operate(op: str, of_left: Value, of_right: Value) -> Value:
    """The result of a binary operator other than && and ||."""
    (left, left_type), (right, right_type) = of_left, of_right
    if op == "++":
        assert left_type and right_type
        return left << right_type[1] | right, ("bit", left_type[1] + right_type[1])
    if op in ("<<", ">>"):
        return wrap(left << right if op == "<<" else left >> right, left_type), left_type
    kind = left_type or right_type
    left, right = wrap(left, kind), wrap(right, kind)
    if op in ("==", "!=", "<", ">", "<=", ">="):
        compared = {
            "==": left == right, "!=": left != right, "<": left < right, ">": left > right, "<=": left <= right,
            ">=": left >= right,
        }  # fmt: skip
        return compared[op], BOOL
    if op == "|-|":
        return max(left - right, 0), kind
    if op == "|+|":
        assert kind
        return min(left + right, (1 << kind[1]) - 1), kind
    arithmetic: dict[str, Callable[[], int]] = {
        "+": lambda: left + right, "-": lambda: left - right, "*": lambda: left * right,
        "/": lambda: left // right, "%": lambda: left % right,
        "&": lambda: left & right, "|": lambda: left | right, "^": lambda: left ^ right,
    }  # fmt: skip
    return wrap(arithmetic[op](), kind), kind


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


def matches(kind: str, numbers: Sequence[int], value: int) -> bool:
    """Whether a key's value matches a keyset. numbers: of a mask the value and the mask; of a range both ends; of any
    other kind but "any" the value."""
    if kind == "any":
        return True
    if kind == "mask":
        return (value ^ numbers[0]) & numbers[1] == 0
    if kind == "range":
        return numbers[0] <= value <= numbers[1]
    return numbers[0] == value
