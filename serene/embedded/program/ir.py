"""A P4 program as data: headers, actions, tables, and all other objects of the control plane. loading.py reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from serene.embedded.program.crcs import WIDTHS
from serene.embedded.program.errors import NotBmv2Json, known

MATCH_KINDS = ("exact", "lpm", "ternary", "range", "optional", "valid")
TABLE_TYPES = ("simple", "indirect", "indirect_ws")
STANDARD_METADATA = (  # the actions that every v1model program has
    "ingress_port",
    "egress_spec",
    "egress_port",
    "instance_type",
    "packet_length",
    "ingress_global_timestamp",
    "egress_global_timestamp",
    "mcast_grp",
    "egress_rid",
)
YOUNGER_STANDARD_METADATA = {  # bits of fields that the oldest v1model had in other places, or did not have
    "ingress_global_timestamp": 48,
    "egress_global_timestamp": 48,
    "mcast_grp": 16,
    "egress_rid": 16,
}
OTHER_STANDARD_METADATA = ("checksum_error", "parser_error")


def mask(bits: int) -> int:
    return (1 << bits) - 1


def limbs_of(bits: int) -> int:
    """The number of 64-bit words (limbs) for a number of this width."""
    return max((bits + 63) // 64, 1)


@dataclass(frozen=True)
class Field:
    name: str
    width: int  # bits; 0 for a varbit field
    signed: bool = False
    most_bytes: int = 0  # a varbit field's largest size


@dataclass(frozen=True)
class HeaderType:
    name: str
    fields: tuple[Field, ...]

    @property
    def bits(self) -> int:
        """The header's size without its varbit field."""
        return sum(field.width for field in self.fields)

    @property
    def most_bytes(self) -> int:
        return self.bits // 8 + sum(field.most_bytes for field in self.fields)

    @property
    def variable(self) -> Field | None:
        """The varbit field, if there is one; a header has at most one."""
        return next((field for field in self.fields if field.most_bytes), None)


@dataclass(frozen=True)
class Header:
    """A header or metadata instance. An element of a stack has the stack's name and its index in it.

    A union's members are headers of their own. Those of a stack of unions form a stack per member, ``stack.member``.
    """

    name: str
    type: HeaderType
    metadata: bool
    stack: str | None = None
    index: int = 0


@dataclass(frozen=True)
class Action:
    name: str
    id: int
    parameters: tuple[Field, ...]
    primitives: tuple[Mapping[str, Any], ...]

    @property
    def limbs(self) -> int:
        """Of its parameters."""
        return sum(limbs_of(parameter.width) for parameter in self.parameters)


@dataclass(frozen=True)
class Key:
    name: str
    match_type: str  # one of MATCH_KINDS
    width: int  # bits
    target: tuple[str, str]  # header, field
    mask: int | None


@dataclass(frozen=True)
class Entry:
    """A table entry that is part of the program."""

    match: tuple[Mapping[str, Any], ...]  # one for each key
    action: Action
    params: tuple[int, ...]
    priority: int  # the smaller number wins


@dataclass(frozen=True)
class Table:
    name: str
    id: int  # index among all tables of both pipelines
    keys: tuple[Key, ...]
    actions: Mapping[str, Action]
    size: int
    with_counters: bool
    direct_meter: str | None
    default_action: tuple[Action, tuple[int, ...]] | None
    const_default: bool
    next_tables: Mapping[str, str | None]
    base_default_next: str | None
    entries: tuple[Entry, ...]
    profile: str | None = None  # the action profile whose members and groups its entries name
    idle_timeouts: bool = False  # whether its entries record that they were hit

    @property
    def kind(self) -> str:
        """How the table is looked up: exact, lpm or ternary."""
        kinds = {key.match_type for key in self.keys}
        if kinds & {"ternary", "range", "optional"}:
            return "ternary"
        return "lpm" if "lpm" in kinds else "exact"

    @property
    def key_limbs(self) -> int:
        return sum(limbs_of(key.width) for key in self.keys)

    @property
    def data_limbs(self) -> int:
        """The size of an entry's data: its action's parameters, or the member or group that it names."""
        own = max((action.limbs for action in self.actions.values()), default=0)
        return max(own, 2) if self.profile is not None else own


@dataclass(frozen=True)
class Conditional:
    name: str
    expression: Mapping[str, Any]
    true_next: str | None
    false_next: str | None


@dataclass(frozen=True)
class Pipeline:
    name: str
    init: str | None
    tables: tuple[Table, ...]
    conditionals: tuple[Conditional, ...]


@dataclass(frozen=True)
class Array:
    """A counter, meter or register array. ``width`` is a register's bits, ``kind`` a meter's unit."""

    name: str
    id: int
    size: int
    width: int = 0
    kind: str = ""
    direct_table: str | None = None
    target: tuple[str, str] | None = None  # the field that a direct meter writes to


@dataclass(frozen=True)
class ActionProfile:
    """Members (actions with their parameters) that entries of its tables share; groups of them, if it selects."""

    name: str
    id: int
    size: int  # members
    actions: Mapping[str, Action]
    selector: Mapping[str, Any] | None  # algorithm and input of the hash that selects a member of a group


@dataclass(frozen=True)
class Program:
    header_types: Mapping[str, HeaderType]
    headers: Mapping[str, Header]
    stacks: Mapping[str, tuple[Header, ...]]
    unions: Mapping[str, tuple[Header, ...]]  # the members, of which at most one is valid
    union_stacks: Mapping[str, tuple[str, ...]]  # the members' names
    actions: tuple[Action, ...]
    pipelines: Mapping[str, Pipeline]
    counters: Mapping[str, Array]
    meters: Mapping[str, Array]
    registers: Mapping[str, Array]
    action_profiles: Mapping[str, ActionProfile]
    digests: Mapping[int, tuple[str, tuple[tuple[str, str], ...]]]  # list id -> name, fields
    value_sets: Mapping[str, int]  # name -> bits
    json: Mapping[str, Any]  # the whole JSON, for parsers, deparsers, calculations, checksums, field lists

    @property
    def tables(self) -> dict[str, Table]:
        return {table.name: table for pipeline in self.pipelines.values() for table in pipeline.tables}

    @property
    def crcs(self) -> dict[str, str]:
        """The algorithms of calculations and selectors whose CRC is set at run time, by name."""
        found = {item["name"]: item["algo"] for item in self.json.get("calculations") or ()}
        found |= {
            name: each.selector["algo"] for name, each in self.action_profiles.items() if each.selector is not None
        }
        return {name: algorithm for name, algorithm in found.items() if algorithm in WIDTHS}

    def digest_headers(self, list_id: int) -> tuple[tuple[int, str], ...]:
        """The headers that a digest has whole: the number of the first field, and the header's name."""
        fields, found = self.digests[list_id][1], []
        for at, (name, first) in enumerate(fields):
            header = self.header(name)
            whole = tuple((name, field.name) for field in header.type.fields)
            if not header.metadata and whole[:1] == ((name, first),) and fields[at : at + len(whole)] == whole:
                found.append((at, name))
        return tuple(found)

    def header(self, name: object) -> Header:
        return known(self.headers, name, "header")

    def field(self, header: str, name: str) -> Field:
        if name == "$valid$":
            self.header(header)
            return Field(name, 1)
        for field in self.header(header).type.fields:
            if field.name == name:
                return field
        raise NotBmv2Json(f"header {header!r} has no field {name!r}")


def messages(json: Mapping[str, Any]) -> list[str]:
    """The texts of the program's log_msg, each once."""
    found: dict[str, None] = {}

    def visit(node: Any) -> None:
        if isinstance(node, Mapping):
            if node.get("op") == "log_msg" and node.get("parameters"):
                first = node["parameters"][0]
                found[str(first.get("value")) if isinstance(first, Mapping) else ""] = None
            for item in node.values():
                visit(item)
        elif isinstance(node, list | tuple):
            for item in node:
                visit(item)

    visit([json.get("actions"), json.get("parsers")])
    return list(found)
