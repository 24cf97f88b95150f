"""A P4 program as p4c wrote it for BMv2: the JSON, checked, with its control-plane objects as values.

The format is BMv2's (docs/JSON_format.md of the behavioral model). What the embedded switch cannot run is refused
here or while code is generated, by name, before a packet is seen.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from serene.errors import SereneError, choices

MATCH_KINDS = ("exact", "lpm", "ternary", "range", "optional", "valid")
TABLE_TYPES = ("simple", "indirect", "indirect_ws")
STANDARD_METADATA = (
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


class NotBmv2Json(SereneError):
    """The file is not what p4c writes for BMv2."""


class UnsupportedProgram(SereneError):
    """A valid program that asks for what the embedded switch lacks; the message names it."""


@dataclass(frozen=True)
class Field:
    name: str
    width: int  # bits; 0 for a varbit field
    signed: bool = False
    most_bytes: int = 0  # of a varbit field


@dataclass(frozen=True)
class HeaderType:
    name: str
    fields: tuple[Field, ...]

    @property
    def bits(self) -> int:
        """Without what a varbit field holds."""
        return sum(field.width for field in self.fields)

    @property
    def most_bytes(self) -> int:
        return self.bits // 8 + sum(field.most_bytes for field in self.fields)

    @property
    def variable(self) -> Field | None:
        """Its varbit field; a header has at most one."""
        return next((field for field in self.fields if field.most_bytes), None)


@dataclass(frozen=True)
class Header:
    """A header or metadata instance; elements of a stack know the stack and their place in it.

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


@dataclass(frozen=True)
class Key:
    name: str
    match_type: str  # one of MATCH_KINDS
    width: int  # bits
    target: tuple[str, str]  # header, field
    mask: int | None


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
    entries: tuple[Mapping[str, Any], ...]
    profile: str | None = None  # the action profile that its entries name members and groups of

    @property
    def kind(self) -> str:
        """How it is looked up: exact, lpm or ternary."""
        kinds = {key.match_type for key in self.keys}
        if kinds & {"ternary", "range", "optional"}:
            return "ternary"
        return "lpm" if "lpm" in kinds else "exact"


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


@dataclass(frozen=True)
class ActionProfile:
    """Members (actions with their parameters) that entries of its tables share; groups of them, if it selects."""

    name: str
    id: int
    size: int  # members
    actions: Mapping[str, Action]
    selector: Mapping[str, Any] | None  # algorithm and input of the hash that takes a member of a group


@dataclass(frozen=True)
class Program:
    name: str
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
    json: Mapping[str, Any]  # the rest: parsers, deparsers, calculations, checksums, field lists

    @property
    def tables(self) -> dict[str, Table]:
        return {table.name: table for pipeline in self.pipelines.values() for table in pipeline.tables}

    def field(self, header: str, name: str) -> Field:
        if name == "$valid$":
            return Field(name, 1)
        for field in self.headers[header].type.fields:
            if field.name == name:
                return field
        raise NotBmv2Json(f"header {header!r} has no field {name!r}")


def _without_source_info(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_source_info(item) for key, item in value.items() if key != "source_info"}
    if isinstance(value, list):
        return [_without_source_info(item) for item in value]
    return value


def load_program(source: str | Path | bytes) -> Program:
    """Reads a program from a path, or from the JSON's own bytes.

    Raises NotBmv2Json for anything that is not BMv2's JSON and UnsupportedProgram for what this switch lacks.
    """
    label = "the program"
    if not isinstance(source, bytes):
        label = str(source)
        try:
            source = Path(source).read_bytes()
        except OSError as error:
            raise NotBmv2Json(f"cannot read {label}: {error.strerror}") from error
    try:
        raw = _without_source_info(json.loads(source))
    except (ValueError, RecursionError) as error:
        raise NotBmv2Json(f"{label} is not JSON ({error}); expected p4c's output for BMv2") from error
    needed = ("header_types", "headers", "parsers", "deparsers", "actions", "pipelines")
    missing = [key for key in needed if not isinstance(raw, dict) or not isinstance(raw.get(key), list)]
    if missing:
        raise NotBmv2Json(f"{label} is not BMv2's JSON: it lacks {choices(missing)}; compile with p4c-bm2-ss")
    try:
        return _build(raw)
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        raise NotBmv2Json(f"{label} is not BMv2's JSON: {type(error).__name__}: {error}") from error


def _build(raw: Mapping[str, Any]) -> Program:
    for item in raw.get("extern_instances") or ():
        raise UnsupportedProgram(f"extern instance {item['name']!r} is not supported")
    header_types = {item["name"]: _header_type(item) for item in raw["header_types"]}
    headers, stacks, unions, union_stacks = _headers(raw, header_types)
    standard = headers.get("standard_metadata")
    known = {field.name for field in standard.type.fields} if standard else set()
    lacking = [name for name in STANDARD_METADATA if name not in known]
    if lacking:
        raise UnsupportedProgram(f"standard_metadata lacks {choices(lacking)}: only v1model programs are supported")

    actions = {
        item["id"]: Action(
            item["name"],
            item["id"],
            tuple(Field(p["name"], p["bitwidth"]) for p in item["runtime_data"]),
            tuple(item["primitives"]),
        )
        for item in raw["actions"]
    }

    program = Program(
        name=str(raw.get("program", "")),
        header_types=header_types,
        headers=headers,
        stacks=stacks,
        unions=unions,
        union_stacks=union_stacks,
        actions=tuple(actions.values()),
        pipelines={},
        counters=_arrays(raw.get("counter_arrays"), "is_direct", "binding"),
        meters=_arrays(raw.get("meter_arrays"), "is_direct", "binding"),
        registers={
            item["name"]: Array(item["name"], index, item["size"], width=item["bitwidth"])
            for index, item in enumerate(raw.get("register_arrays") or ())
        },
        action_profiles=_action_profiles(raw["pipelines"], actions),
        digests={
            item["id"]: (item["name"], tuple(tuple(element["value"]) for element in item["elements"]))
            for item in raw.get("learn_lists") or ()
        },
        value_sets={item["name"]: item["compressed_bitwidth"] for item in raw.get("parse_vsets") or ()},
        json=raw,
    )
    tables = 0
    for item in raw["pipelines"]:
        pipeline = _pipeline(program, actions, item, tables)
        tables += len(pipeline.tables)
        program.pipelines[pipeline.name] = pipeline  # type: ignore[index]
    for name in ("ingress", "egress"):
        if name not in program.pipelines:
            raise UnsupportedProgram(f"there is no pipeline {name!r}: only v1model programs are supported")
    return program


def _header_type(raw: Mapping[str, Any]) -> HeaderType:
    fixed = sum(width for _, width, *_ in raw["fields"] if width != "*")
    fields = []
    for name, width, *signed in raw["fields"]:
        if width == "*":
            if raw.get("max_length") is None:
                raise UnsupportedProgram(f"header type {raw['name']!r}: varbit field {name!r} has no largest size")
            fields.append(Field(name, 0, most_bytes=max(raw["max_length"] - fixed // 8, 1)))
        else:
            fields.append(Field(name, width, bool(signed and signed[0])))
    return HeaderType(raw["name"], tuple(fields))


def _headers(
    raw: Mapping[str, Any], header_types: Mapping[str, HeaderType]
) -> tuple[dict[str, Header], dict[str, tuple[Header, ...]], dict[str, tuple[Header, ...]], dict[str, tuple[str, ...]]]:
    """Headers, stacks, unions and stacks of unions, by name."""
    members = {item["name"]: [name for name, _ in item["headers"]] for item in raw.get("header_union_types") or ()}
    unions_by_id = {item["id"]: item for item in raw.get("header_unions") or ()}
    stack_ids = {item["name"]: item["header_ids"] for item in raw.get("header_stacks") or ()}
    union_stacks = {}
    for item in raw.get("header_union_stacks") or ():
        names = union_stacks[item["name"]] = tuple(members[item["union_type"]])
        elements = [unions_by_id[id_]["header_ids"] for id_ in item["header_union_ids"]]
        for place, name in enumerate(names):
            stack_ids[f"{item['name']}.{name}"] = [ids[place] for ids in elements]

    places = {id_: (stack, index) for stack, ids in stack_ids.items() for index, id_ in enumerate(ids)}
    headers, by_id = {}, {}
    for item in raw["headers"]:
        stack, index = (None, 0) if item["metadata"] else places.get(item["id"], (None, 0))
        header = Header(item["name"], header_types[item["header_type"]], item["metadata"], stack, index)
        headers[header.name] = by_id[item["id"]] = header
    stacks = {stack: tuple(by_id[id_] for id_ in ids) for stack, ids in stack_ids.items()}
    unions = {item["name"]: tuple(by_id[id_] for id_ in item["header_ids"]) for item in unions_by_id.values()}
    return headers, stacks, unions, union_stacks


def _arrays(items: list[Mapping[str, Any]] | None, direct: str, binding: str) -> dict[str, Array]:
    return {
        item["name"]: Array(
            item["name"],
            index,
            item.get("size") or 0,
            kind=item.get("type", ""),
            direct_table=item.get(binding) if item.get(direct) else None,
        )
        for index, item in enumerate(items or ())
    }


def _action_profiles(pipelines: list[Mapping[str, Any]], actions: Mapping[int, Action]) -> dict[str, ActionProfile]:
    profiles: dict[str, ActionProfile] = {}
    for item in (item for pipeline in pipelines for item in pipeline.get("action_profiles") or ()):
        users = [t for p in pipelines for t in p["tables"] if t.get("action_profile") == item["name"]]
        offered = {actions[id_].name: actions[id_] for table in users for id_ in table["action_ids"]}
        profiles[item["name"]] = ActionProfile(
            item["name"], len(profiles), item["max_size"], offered, item.get("selector")
        )
    return profiles


def _pipeline(program: Program, actions: Mapping[int, Action], raw: Mapping[str, Any], first: int) -> Pipeline:
    tables = []
    for place, item in enumerate(raw["tables"]):
        name = item["name"]
        if item["type"] not in TABLE_TYPES:
            raise UnsupportedProgram(
                f"table {name!r}: type {item['type']!r} is not supported (supported: {choices(TABLE_TYPES)})"
            )
        keys = []
        for key in item["key"]:
            if key["match_type"] not in MATCH_KINDS:
                raise UnsupportedProgram(
                    f"table {name!r}: match kind {key['match_type']!r} is not supported "
                    f"(supported: {choices(MATCH_KINDS)})"
                )
            target = key["target"] if isinstance(key["target"], list) else [key["target"], "$valid$"]
            field = program.field(*target)
            mask = int(key["mask"], 16) if key.get("mask") else None
            label = key.get("name") or ".".join(target)
            keys.append(Key(label, key["match_type"], field.width, (target[0], target[1]), mask))
        default = item.get("default_entry")
        tables.append(
            Table(
                name=name,
                id=first + place,
                keys=tuple(keys),
                actions={actions[id_].name: actions[id_] for id_ in item["action_ids"]},
                size=item["max_size"],
                with_counters=bool(item.get("with_counters")),
                direct_meter=item.get("direct_meters"),
                default_action=(
                    actions[default["action_id"]],
                    tuple(int(value, 16) for value in default.get("action_data") or ()),
                )
                if default
                else None,
                const_default=bool(default and default.get("action_const")),
                next_tables=item["next_tables"],
                base_default_next=item.get("base_default_next"),
                entries=tuple(item.get("entries") or ()),
                profile=item["action_profile"] if item["type"] != "simple" else None,
            )
        )
    conditionals = tuple(
        Conditional(item["name"], item["expression"], item["true_next"], item["false_next"])
        for item in raw["conditionals"]
    )
    return Pipeline(raw["name"], raw["init_table"], tuple(tables), conditionals)
