"""Values and errors of the control plane: matches, counters, meters, digests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from serene.embedded.program.ir import Key, Table, mask
from serene.errors import SereneError


class ControlError(SereneError):
    """A control-plane call is not valid for the program: an unknown name, or a value that is too wide."""


class NoSuchName(ControlError):
    """The program has no object of that name."""


class DuplicateEntry(ControlError):
    """The table has an entry with this match already."""


class TableFull(ControlError):
    """The table has as many entries as its size allows."""


class NoSuchEntry(ControlError):
    """The handle, group or session does not exist."""


class PortError(SereneError):
    """An interface or socket could not be opened."""


@dataclass(frozen=True)
class Exact:
    value: int


@dataclass(frozen=True)
class Lpm:
    value: int
    prefix_len: int


@dataclass(frozen=True)
class Ternary:
    value: int
    mask: int


@dataclass(frozen=True)
class Range:
    low: int
    high: int


@dataclass(frozen=True)
class Optional:
    value: int | None  # None matches everything


Match = Exact | Lpm | Ternary | Range | Optional


@dataclass(frozen=True)
class InitialEntry:
    """A table entry that is part of the P4 program."""

    handle: int
    match: tuple[Match, ...]
    action: str
    params: tuple[int, ...]
    priority: int  # 0 if the table has no priorities


@dataclass(frozen=True)
class CounterValue:
    packets: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class MeterRates:
    """Units (packets or bytes) a second, and bursts in units."""

    committed_rate: float
    committed_burst: float
    peak_rate: float
    peak_burst: float


@dataclass(frozen=True)
class Digest:
    name: str
    list_id: int
    values: tuple[int, ...]
    valid: Mapping[int, bool] = field(default_factory=dict)  # of whole headers, by the number of the first value


@dataclass(frozen=True)
class Events:
    cpu_packets: tuple[bytes, ...]
    digests: tuple[Digest, ...]


@dataclass(frozen=True)
class PortCounts:
    received: int
    sent: int
    dropped: int


def match_from_json(key: Key, item: Mapping[str, object]) -> Match:
    """One key of a table entry that is part of the P4 program."""

    def number(name: str) -> int:
        return int(str(item[name]), 16)

    kind = item["match_type"]
    if kind == "exact":
        return Exact(number("key"))
    if kind == "lpm":
        return Lpm(number("key"), int(str(item["prefix_length"])))
    if kind == "range":
        return Range(number("start"), number("end"))
    if kind == "valid":
        return Exact(int(bool(item["key"])))
    if kind == "optional" and item.get("mask") is None:
        return Optional(None if "mask" in item else number("key"))
    return Ternary(number("key"), number("mask"))


def encode_field(table: Table, key: Key, field: Match) -> tuple[int, int, int]:
    """(value, mask, prefix length); for ranges (low, high, 0)."""
    full = mask(key.width)
    if isinstance(field, Exact) and key.match_type in ("exact", "valid"):
        numbers = (field.value, full, 0)
    elif isinstance(field, Lpm) and key.match_type == "lpm":
        if not 0 <= field.prefix_len <= key.width:
            raise ControlError(f"table {table.name!r}: a prefix of {key.name} has 0 to {key.width} bits")
        keep = full ^ mask(key.width - field.prefix_len)
        numbers = (field.value & keep, keep, field.prefix_len)
    elif isinstance(field, Ternary) and key.match_type in ("ternary", "optional"):
        numbers = (field.value & field.mask, field.mask, 0)
    elif isinstance(field, Optional) and key.match_type in ("optional", "ternary"):  # p4c writes both as ternary
        numbers = (0, 0, 0) if field.value is None else (field.value, full, 0)
    elif isinstance(field, Range) and key.match_type == "range":
        numbers = (field.low, field.high, 0)
    else:
        raise ControlError(f"table {table.name!r}: {key.name} is matched as {key.match_type}, not as {field!r}")
    if min(numbers) < 0 or max(numbers[:2]) > full:
        raise ControlError(f"table {table.name!r}: {field!r} does not fit {key.name}, {key.width} bits")
    return numbers
