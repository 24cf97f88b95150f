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
    width: int  # bits
    signed: bool = False


@dataclass(frozen=True)
class HeaderType:
    name: str
    fields: tuple[Field, ...]

    @property
    def bits(self) -> int:
        return sum(field.width for field in self.fields)


@dataclass(frozen=True)
class Header:
    """A header or metadata instance; elements of a stack know the stack and their place in it."""

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
class Program:
    name: str
    header_types: Mapping[str, HeaderType]
    headers: Mapping[str, Header]
    stacks: Mapping[str, tuple[Header, ...]]
    actions: tuple[Action, ...]
    pipelines: Mapping[str, Pipeline]
    counters: Mapping[str, Array]
    meters: Mapping[str, Array]
    registers: Mapping[str, Array]
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
    for feature in ("header_union_types", "extern_instances"):
        for item in raw.get(feature) or ():
            raise UnsupportedProgram(f"{feature.replace('_', ' ').rstrip('s')} {item['name']!r} is not supported")

    header_types = {}
    for item in raw["header_types"]:
        fields = []
        for name, width, *signed in item["fields"]:
            if width == "*":
                raise UnsupportedProgram(f"header type {item['name']!r}: varbit field {name!r} is not supported")
            fields.append(Field(name, width, bool(signed and signed[0])))
        header_types[item["name"]] = HeaderType(item["name"], tuple(fields))

    headers, by_id = {}, {}
    places = {
        id_: (stack["name"], index)
        for stack in raw.get("header_stacks") or ()
        for index, id_ in enumerate(stack["header_ids"])
    }
    for item in raw["headers"]:
        stack, index = places.get(item["id"], (None, 0)) if not item["metadata"] else (None, 0)
        header = Header(item["name"], header_types[item["header_type"]], item["metadata"], stack, index)
        headers[header.name] = by_id[item["id"]] = header
    stacks = {
        stack["name"]: tuple(by_id[id_] for id_ in stack["header_ids"]) for stack in raw.get("header_stacks") or ()
    }
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
        actions=tuple(actions.values()),
        pipelines={},
        counters=_arrays(raw.get("counter_arrays"), "is_direct", "binding"),
        meters=_arrays(raw.get("meter_arrays"), "is_direct", "binding"),
        registers={
            item["name"]: Array(item["name"], index, item["size"], width=item["bitwidth"])
            for index, item in enumerate(raw.get("register_arrays") or ())
        },
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


def _pipeline(program: Program, actions: Mapping[int, Action], raw: Mapping[str, Any], first: int) -> Pipeline:
    tables = []
    for place, item in enumerate(raw["tables"]):
        name = item["name"]
        if item["type"] != "simple":
            raise UnsupportedProgram(f"table {name!r}: type {item['type']!r} is not supported (supported: simple)")
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
            )
        )
    conditionals = tuple(
        Conditional(item["name"], item["expression"], item["true_next"], item["false_next"])
        for item in raw["conditionals"]
    )
    if raw.get("action_profiles"):
        raise UnsupportedProgram(f"action profile {raw['action_profiles'][0]['name']!r} is not supported")
    return Pipeline(raw["name"], raw["init_table"], tuple(tables), conditionals)
