"""Converts BMv2's JSON to a ``Program``: it resolves names and checks that all parts fit together.

If the embedded switch cannot run a program, an error names the reason here or during code generation, before any
packet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from serene.embedded.program.errors import NotBmv2Json, UnsupportedProgram, known, unique, where
from serene.embedded.program.format import checked
from serene.embedded.program.ir import (
    STANDARD_METADATA,
    YOUNGER_STANDARD_METADATA,
    Action,
    ActionProfile,
    Array,
    Field,
    Header,
    HeaderType,
    Program,
)
from serene.embedded.program.limits import MAX_HEADER_BYTES, MAX_JSON_BYTES, MAX_PACKET_BYTES
from serene.embedded.program.memory import check_state
from serene.embedded.program.table_loading import load_pipeline, profile_name, table_actions
from serene.errors import choices

Raw = Mapping[str, Any]


def load_program(source: str | Path | bytes) -> Program:
    """Reads a program from a path, or from the JSON's own bytes.

    Raises NotBmv2Json if it is not BMv2's JSON, and UnsupportedProgram if this switch does not support it. Both name
    the place.
    """
    return parse_program(*read_program(source))


def read_program(source: str | Path | bytes) -> tuple[str, bytes]:
    """The program's name for error messages, and its JSON, not yet checked. Raises NotBmv2Json."""
    label = "the program"
    if not isinstance(source, bytes):
        label = str(source)
        try:
            source = Path(source).read_bytes()
        except OSError as error:
            raise NotBmv2Json(f"cannot read {label}: {error.strerror}") from error
        except ValueError as error:  # the path contains a null character
            raise NotBmv2Json(f"cannot read {label!r}: {error}") from error
    if len(source) > MAX_JSON_BYTES:
        raise NotBmv2Json(f"{label} has {len(source)} bytes; the largest program has {MAX_JSON_BYTES}")
    return label, source


def parse_program(label: str, json: bytes) -> Program:
    """As load_program, for what read_program returned."""
    with where(label):
        return _build(checked(json))


def _build(raw: Raw) -> Program:
    raw = _in_standard_metadata(raw) if any(item["name"] == "intrinsic_metadata" for item in raw["headers"]) else raw
    for item in raw.get("extern_instances") or ():
        raise UnsupportedProgram(f"extern instance {item['name']!r} is not supported")
    unique([item["name"] for item in raw["header_types"]], "header type")
    header_types = {item["name"]: _header_type(item) for item in raw["header_types"]}
    _complete_standard_metadata(raw, header_types)
    headers, stacks, unions, union_stacks = _headers(raw, header_types)
    _check_standard_metadata(headers.get("standard_metadata"))

    actions = {
        item["id"]: Action(
            item["name"],
            item["id"],
            tuple(Field(p["name"], p["bitwidth"]) for p in item["runtime_data"]),
            tuple(item["primitives"]),
        )
        for item in raw["actions"]
    }
    if len(actions) < len(raw["actions"]):
        raise NotBmv2Json("two actions have the same id")
    for kind, what in (("learn_lists", "digest"), ("field_lists", "field list")):
        unique([str(item["id"]) for item in raw.get(kind) or ()], what)
    for kind in ("register_arrays", "parse_vsets", "calculations"):
        unique([item["name"] for item in raw.get(kind) or ()], kind.replace("_", " ").rstrip("s"))

    program = Program(
        header_types=header_types,
        headers=headers,
        stacks=stacks,
        unions=unions,
        union_stacks=union_stacks,
        actions=tuple(actions.values()),
        pipelines={},
        counters=_arrays(raw, "counter_arrays"),
        meters=_arrays(raw, "meter_arrays"),
        registers={
            item["name"]: Array(item["name"], index, item["size"], width=item["bitwidth"])
            for index, item in enumerate(raw.get("register_arrays") or ())
        },
        action_profiles=_action_profiles(raw["pipelines"], actions),
        digests={item["id"]: (item["name"], _digest_fields(item)) for item in raw.get("learn_lists") or ()},
        value_sets={item["name"]: item["compressed_bitwidth"] for item in raw.get("parse_vsets") or ()},
        json=raw,
    )
    unique([item["name"] for item in raw["pipelines"]], "pipeline")
    unique([table["name"] for item in raw["pipelines"] for table in item["tables"]], "table")
    tables = 0
    for item in raw["pipelines"]:
        with where(f"pipeline {item['name']!r}"):
            pipeline = load_pipeline(program, actions, item, tables)
        tables += len(pipeline.tables)
        program.pipelines[pipeline.name] = pipeline  # type: ignore[index]
    if sorted(program.pipelines) != ["egress", "ingress"]:
        names = choices(sorted(program.pipelines)) or "none"
        raise UnsupportedProgram(f"expected pipelines ingress and egress (v1model), not {names}")
    _check_direct(program)
    check_state(program)
    return program


# -- headers -----------------------------------------------------------------------------------------------------


def _header_type(raw: Raw) -> HeaderType:
    name = raw["name"]
    with where(f"header type {name!r}"):
        unique([field for field, *_ in raw["fields"]], "field")
        fixed = sum(width for _, width, *_ in raw["fields"] if width != "*")
        fields = []
        for field, width, *signed in raw["fields"]:
            if width == "*":
                if raw.get("max_length") is None:
                    raise UnsupportedProgram(f"varbit field {field!r} has no largest size")
                fields.append(Field(field, 0, most_bytes=max(raw["max_length"] - fixed // 8, 1)))
            else:
                fields.append(Field(field, width, bool(width and signed and signed[0])))
        result = HeaderType(name, tuple(fields))
        if sum(1 for field in fields if field.most_bytes) > 1:
            raise NotBmv2Json("two varbit fields")
        if result.most_bytes > MAX_HEADER_BYTES:
            raise UnsupportedProgram(f"{result.most_bytes} bytes; a header has {MAX_HEADER_BYTES} at most")
        return result


def _headers(
    raw: Raw, header_types: Mapping[str, HeaderType]
) -> tuple[dict[str, Header], dict[str, tuple[Header, ...]], dict[str, tuple[Header, ...]], dict[str, tuple[str, ...]]]:
    """Headers, stacks, unions and stacks of unions, by name."""
    for kind in ("header_union_types", "header_unions", "header_stacks", "header_union_stacks", "headers"):
        unique([item["name"] for item in raw.get(kind) or ()], kind.replace("_", " ").rstrip("s"))
    union_types = {item["name"]: item for item in raw.get("header_union_types") or ()}
    unions_by_id = {item["id"]: item for item in raw.get("header_unions") or ()}
    stack_ids: dict[str, Sequence[int]] = {item["name"]: item["header_ids"] for item in raw.get("header_stacks") or ()}
    union_stacks = {}
    for item in raw.get("header_union_stacks") or ():
        union_type = known(union_types, item["union_type"], "header union type")
        names = union_stacks[item["name"]] = tuple(name for name, _ in union_type["headers"])
        elements = [_of_id(unions_by_id, id_, "header union")["header_ids"] for id_ in item["header_union_ids"]]
        if any(len(ids) != len(names) for ids in elements) or not names:
            raise NotBmv2Json(f"header union stack {item['name']!r}: its unions do not have their type's members")
        unique([*names, *stack_ids, *union_stacks], "header stack or member of one")
        for at, name in enumerate(names):
            stack_ids[f"{item['name']}.{name}"] = [ids[at] for ids in elements]

    places = {id_: (stack, index) for stack, ids in stack_ids.items() for index, id_ in enumerate(ids)}
    if len(places) < sum(map(len, stack_ids.values())):
        raise NotBmv2Json("a header is in two stacks, or twice in one")
    headers: dict[str, Header] = {}
    by_id: dict[int, Header] = {}
    for item in raw["headers"]:
        stack, index = places.get(item["id"], (None, 0))
        if item["id"] in by_id:
            raise NotBmv2Json(f"header {item['name']!r}: its id {item['id']} is used twice")
        if item["metadata"] and stack is not None:
            raise NotBmv2Json(f"header {item['name']!r} is metadata in a stack")
        header_type = known(header_types, item["header_type"], "header type")
        header = Header(item["name"], header_type, item["metadata"], stack, index)
        headers[header.name] = by_id[item["id"]] = header
    stacks = {stack: tuple(_of_id(by_id, id_, "header") for id_ in ids) for stack, ids in stack_ids.items()}
    for stack, members in stacks.items():
        if any(header.type != members[0].type for header in members):
            raise NotBmv2Json(f"header stack {stack!r} has elements of several types")
    unions = {
        union["name"]: tuple(_of_id(by_id, id_, "header") for id_ in union["header_ids"])
        for union in unions_by_id.values()
    }
    if any(header.metadata for members in unions.values() for header in members):
        raise NotBmv2Json("a header union has a metadata member")
    size = sum(header.type.most_bytes + 16 for header in headers.values())
    if size > MAX_PACKET_BYTES:
        raise UnsupportedProgram(f"a packet's headers have {size} bytes; {MAX_PACKET_BYTES} at most")
    return headers, stacks, unions, union_stacks


def _of_id(items: Mapping[int, Any], id_: int, what: str) -> Any:
    if id_ not in items:
        raise NotBmv2Json(f"there is no {what} with id {id_}")
    return items[id_]


def _in_standard_metadata(node: Any) -> Any:
    """The JSON with the fields of P4_14's intrinsic_metadata moved to v1model's places."""
    if isinstance(node, Mapping):
        return {key: _in_standard_metadata(item) for key, item in node.items()}
    if isinstance(node, tuple) and len(node) == 2 and node[0] == "intrinsic_metadata":
        return ("standard_metadata", node[1]) if node[1] in YOUNGER_STANDARD_METADATA else node
    return type(node)(map(_in_standard_metadata, node)) if isinstance(node, list | tuple) else node


def _complete_standard_metadata(raw: Raw, header_types: dict[str, HeaderType]) -> None:
    """Adds the fields to standard_metadata that programs of the oldest p4c do not have in it."""
    for item in raw["headers"]:
        held = header_types.get(item["header_type"])
        if item["name"] == "standard_metadata" and held is not None:
            names = {field.name for field in held.fields}
            more = (Field(name, bits) for name, bits in YOUNGER_STANDARD_METADATA.items() if name not in names)
            header_types[held.name] = HeaderType(held.name, (*held.fields, *more))


def _check_standard_metadata(header: Header | None) -> None:
    fields = {field.name: field for field in header.type.fields} if header and header.metadata else {}
    lacking = [name for name in STANDARD_METADATA if name not in fields]
    if lacking:
        raise UnsupportedProgram(f"standard_metadata lacks {choices(lacking)}: only v1model programs are supported")
    odd = [name for name, field in fields.items() if field.most_bytes or field.width > 64]
    if odd:
        raise NotBmv2Json(f"standard_metadata: {choices(odd)} has more than 64 bits")


# -- state -------------------------------------------------------------------------------------------------------


def _arrays(raw: Raw, kind: str) -> dict[str, Array]:
    items = raw.get(kind) or ()
    unique([item["name"] for item in items], kind.replace("_arrays", ""))
    return {
        item["name"]: Array(
            item["name"],
            index,
            0 if item.get("is_direct") else item.get("size") or 0,
            kind=item.get("type", ""),
            direct_table=item.get("binding") if item.get("is_direct") else None,
            target=item.get("result_target"),
        )
        for index, item in enumerate(items)
    }


def _digest_fields(item: Raw) -> tuple[tuple[str, str], ...]:
    for element in item["elements"]:
        if element["type"] != "field":
            raise UnsupportedProgram(f"digest {item['name']!r}: a {element['type']!r} in it is not supported")
    return tuple(element["value"] for element in item["elements"])


def _action_profiles(pipelines: Sequence[Raw], actions: Mapping[int, Action]) -> dict[str, ActionProfile]:
    profiles: dict[str, ActionProfile] = {}
    tables = [table for pipeline in pipelines for table in pipeline["tables"]]
    items = [item for pipeline in pipelines for item in pipeline.get("action_profiles") or ()]
    items += [{**table, "name": profile_name(table)} for table in tables if "act_prof_name" in table]
    unique([item["name"] for item in items], "action profile")
    for item in items:
        users = [table for table in tables if profile_name(table) == item["name"]]
        used = [action for table in users for action in table_actions(table, actions)]
        offered = {action.name: action for action in used}
        profiles[item["name"]] = ActionProfile(
            item["name"], len(profiles), item["max_size"], offered, item.get("selector")
        )
    return profiles


def _check_direct(program: Program) -> None:
    """Checks direct counters and meters: each has a cell for each entry of its table, and no other table uses it."""
    tables = program.tables
    for what, arrays in (("counter", program.counters), ("meter", program.meters)):
        for array in arrays.values():
            if array.direct_table is not None:
                known(tables, array.direct_table, f"table (of direct {what} {array.name!r})")
    for table in tables.values():
        if table.direct_meter is not None:
            with where(f"table {table.name!r}"):
                meter = known(program.meters, table.direct_meter, "meter")
                if meter.direct_table != table.name or meter.target is None:
                    raise NotBmv2Json(f"meter {meter.name!r} is not a direct meter of this table, with a result")
