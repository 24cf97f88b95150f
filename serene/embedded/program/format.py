"""A schema of BMv2's JSON (docs/JSON_format.md of the behavioral model): the keys that are read, their types and sizes.

JSON that passes these checks has every key that is later read unconditionally, with the right type and within bounds.
Names are checked where they are looked up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import Discriminator, Field, Tag, TypeAdapter, ValidationError
from typing_extensions import NotRequired, TypedDict

from serene.embedded.program.errors import NotBmv2Json
from serene.embedded.program.limits import (
    MAX_CELLS,
    MAX_FIELD_BITS,
    MAX_HEADER_BYTES,
    MAX_NAME,
    MAX_OBJECTS,
    MAX_REGISTER_CELLS,
    MAX_STACK_ELEMENTS,
    MAX_STEPS,
)

Name = Annotated[str, Field(max_length=MAX_NAME)]
Id = Annotated[int, Field(ge=0, lt=1 << 31)]
Bits = Annotated[int, Field(ge=0, le=MAX_FIELD_BITS)]  # P4 has bit<0>, too
Cells = Annotated[int, Field(ge=0, le=MAX_CELLS)]
Hex = Annotated[str, Field(pattern=r"^-?(0x)?[0-9a-fA-F]+$", max_length=MAX_FIELD_BITS // 4 + 8)]
FieldName = tuple[Name, Name]  # header, field
Few = Field(max_length=MAX_OBJECTS)
Many = Field(max_length=MAX_STEPS)


# -- operands ----------------------------------------------------------------------------------------------------

NAMED = Literal[
    "header", "header_stack", "header_union", "header_union_stack", "register_array", "counter_array", "meter_array",
    "calculation", "regular", "stack",
]  # fmt: skip
PAIRS = Literal["field", "stack_field", "union_stack"]
TRIPLES = Literal["union_stack_field"]
NUMBERS = Literal["hexstr"]
INDICES = Literal["local", "runtime_data"]
BOOLS = Literal["bool"]
LOOKAHEADS = Literal["lookahead"]
EXPRESSIONS = Literal["expression"]


class Named(TypedDict):
    type: NAMED
    value: Name


class Pair(TypedDict):
    type: PAIRS
    value: FieldName


class Triple(TypedDict):
    type: TRIPLES
    value: tuple[Name, Name, Name]


class Number(TypedDict):
    type: NUMBERS
    value: Hex
    bitwidth: NotRequired[Bits]


class Index(TypedDict):
    type: INDICES
    value: Annotated[int, Field(ge=0, lt=MAX_OBJECTS)]


class Bool(TypedDict):
    type: BOOLS
    value: bool


class Lookahead(TypedDict):
    type: LOOKAHEADS
    value: tuple[Annotated[int, Field(ge=0, le=8 * MAX_HEADER_BYTES)], Bits]


class Operation(TypedDict):
    op: Name
    left: NotRequired[Operand | int | None]
    right: NotRequired[Operand | int | None]
    cond: NotRequired[Operand | None]


class Expression(TypedDict):
    type: EXPRESSIONS
    value: Annotated[
        Annotated[Operation, Tag("operation")] | Annotated[Operand, Tag("operand")],
        Discriminator(lambda value: "operation" if isinstance(value, dict) and "op" in value else "operand"),
    ]


class Other(TypedDict):
    """An operand that no primitive here reads (a log message's text), or that none supports."""

    type: Name
    value: NotRequired[Any]


_KINDS = {
    kind: name
    for name, kinds in (
        ("Named", NAMED), ("Pair", PAIRS), ("Triple", TRIPLES), ("Number", NUMBERS), ("Index", INDICES),
        ("Bool", BOOLS), ("Lookahead", LOOKAHEADS), ("Expression", EXPRESSIONS),
    )
    for kind in get_args(kinds)
}  # fmt: skip


def _kind(operand: Any) -> str:
    kind = operand.get("type") if isinstance(operand, dict) else None
    return _KINDS.get(kind, "Other") if isinstance(kind, str) else "Other"


Operand = Annotated[
    Annotated[Named, Tag("Named")]
    | Annotated[Pair, Tag("Pair")]
    | Annotated[Triple, Tag("Triple")]
    | Annotated[Number, Tag("Number")]
    | Annotated[Index, Tag("Index")]
    | Annotated[Bool, Tag("Bool")]
    | Annotated[Lookahead, Tag("Lookahead")]
    | Annotated[Expression, Tag("Expression")]
    | Annotated[Other, Tag("Other")],
    Discriminator(_kind),
]
Operands = Annotated[list[Operand], Few]


# -- what a packet consists of -----------------------------------------------------------------------------------

Width = Bits | Literal["*"]  # "*": a varbit field


class HeaderType(TypedDict):
    name: Name
    fields: Annotated[list[tuple[Name, Width] | tuple[Name, Width, bool | Literal[0, 1]]], Few]
    max_length: NotRequired[Annotated[int, Field(ge=0, le=MAX_HEADER_BYTES)] | None]


class Header(TypedDict):
    name: Name
    id: Id
    header_type: Name
    metadata: bool


class HeaderStack(TypedDict):
    name: Name
    header_ids: Annotated[list[Id], Field(min_length=1, max_length=MAX_STACK_ELEMENTS)]


class UnionType(TypedDict):
    name: Name
    headers: Annotated[list[tuple[Name, Name]], Few]


class Union(TypedDict):
    id: Id
    name: Name
    header_ids: Annotated[list[Id], Few]


class UnionStack(TypedDict):
    name: Name
    union_type: Name
    header_union_ids: Annotated[list[Id], Field(min_length=1, max_length=MAX_STACK_ELEMENTS)]


# -- actions and the parser --------------------------------------------------------------------------------------


class Primitive(TypedDict):
    op: Name
    parameters: Operands


class Parameter(TypedDict):
    name: Name
    bitwidth: Bits


class Action(TypedDict):
    name: Name
    id: Id
    runtime_data: Annotated[list[Parameter], Few]
    primitives: Annotated[list[Primitive], Many]


class ParserOperation(TypedDict):
    op: Name
    parameters: Annotated[
        list[
            Annotated[
                Annotated[Primitive, Tag("primitive")] | Annotated[Operand, Tag("operand")],
                Discriminator(lambda value: "primitive" if isinstance(value, dict) and "op" in value else "operand"),
            ]
        ],
        Few,
    ]


class Transition(TypedDict):
    type: NotRequired[Name]  # the oldest p4c wrote no type for the default transition
    value: NotRequired[Annotated[str, Field(max_length=MAX_FIELD_BITS)] | None]
    mask: NotRequired[Hex | None]
    next_state: Name | None


class ParserState(TypedDict):
    name: Name
    parser_ops: Annotated[list[ParserOperation], Many]
    transition_key: Operands
    transitions: Annotated[list[Transition], Few]


class Parser(TypedDict):
    init_state: NotRequired[Name | None]
    parse_states: Annotated[list[ParserState], Few]


class Deparser(TypedDict):
    order: Annotated[list[Name], Few]


class ValueSet(TypedDict):
    name: Name
    compressed_bitwidth: Bits


# -- pipelines ---------------------------------------------------------------------------------------------------


class Key(TypedDict):
    match_type: Name
    name: NotRequired[Name | None]
    target: Name | FieldName
    mask: NotRequired[Hex | None]


class DefaultEntry(TypedDict):
    action_id: Id
    action_const: NotRequired[bool]
    action_data: NotRequired[Annotated[list[Hex], Few] | None]


class EntryAction(TypedDict):
    action_id: Id
    action_data: Annotated[list[Hex], Few]


class EntryKey(TypedDict):
    match_type: Name
    key: NotRequired[Hex | bool]
    mask: NotRequired[Hex | None]
    prefix_length: NotRequired[Annotated[int, Field(ge=0, le=MAX_FIELD_BITS)]]
    start: NotRequired[Hex]
    end: NotRequired[Hex]


class Entry(TypedDict):
    match_key: Annotated[list[EntryKey], Few]
    action_entry: EntryAction
    priority: NotRequired[Annotated[int, Field(ge=-(1 << 31), lt=1 << 31)]]


class Selector(TypedDict):
    algo: Name
    input: Operands


class Table(TypedDict):
    name: Name
    type: Name
    key: Annotated[list[Key], Few]
    action_ids: NotRequired[Annotated[list[Id], Few]]  # the oldest p4c wrote only names
    actions: NotRequired[Annotated[list[Name], Few]]
    max_size: Cells
    with_counters: NotRequired[bool | None]
    support_timeout: NotRequired[bool | None]
    direct_meters: NotRequired[Name | None]
    default_entry: NotRequired[DefaultEntry | None]
    next_tables: dict[Name, Name | None]
    base_default_next: NotRequired[Name | None]
    entries: NotRequired[Annotated[list[Entry], Many] | None]
    action_profile: NotRequired[Name | None]
    act_prof_name: NotRequired[Name | None]  # the oldest p4c wrote a profile inside its table
    selector: NotRequired[Selector | None]


class SourceInfo(TypedDict):
    source_fragment: NotRequired[str]


class Conditional(TypedDict):
    source_info: NotRequired[SourceInfo | None]
    name: Name
    expression: Operand
    true_next: Name | None
    false_next: Name | None


class ActionProfile(TypedDict):
    name: Name
    max_size: Cells
    selector: NotRequired[Selector | None]


class Pipeline(TypedDict):
    name: Name
    init_table: Name | None
    tables: Annotated[list[Table], Few]
    conditionals: Annotated[list[Conditional], Few]
    action_profiles: NotRequired[Annotated[list[ActionProfile], Few] | None]


# -- state, checksums, digests -----------------------------------------------------------------------------------


class Counter(TypedDict):
    name: Name
    size: NotRequired[Cells | None]
    is_direct: NotRequired[bool]
    binding: NotRequired[Name | None]


class Meter(Counter):
    type: NotRequired[Name]
    result_target: NotRequired[FieldName | None]


class Register(TypedDict):
    name: Name
    size: Annotated[int, Field(ge=0, le=MAX_REGISTER_CELLS)]
    bitwidth: Bits


class Calculation(TypedDict):
    name: Name
    algo: Name
    input: Operands


class Checksum(TypedDict):
    calculation: Name
    target: FieldName
    if_cond: NotRequired[Operand | None]
    verify: NotRequired[bool | None]
    update: NotRequired[bool | None]


class FieldList(TypedDict):
    name: Name
    id: Id
    elements: Operands


class Extern(TypedDict):
    name: Name


class Bmv2Json(TypedDict):
    program: NotRequired[Any]
    header_types: Annotated[list[HeaderType], Few]
    headers: Annotated[list[Header], Few]
    header_stacks: NotRequired[Annotated[list[HeaderStack], Few] | None]
    header_union_types: NotRequired[Annotated[list[UnionType], Few] | None]
    header_unions: NotRequired[Annotated[list[Union], Few] | None]
    header_union_stacks: NotRequired[Annotated[list[UnionStack], Few] | None]
    parsers: Annotated[list[Parser], Field(min_length=1, max_length=MAX_OBJECTS)]
    parse_vsets: NotRequired[Annotated[list[ValueSet], Few] | None]
    deparsers: Annotated[list[Deparser], Field(min_length=1, max_length=MAX_OBJECTS)]
    actions: Annotated[list[Action], Many]
    pipelines: Annotated[list[Pipeline], Few]
    counter_arrays: NotRequired[Annotated[list[Counter], Few] | None]
    meter_arrays: NotRequired[Annotated[list[Meter], Few] | None]
    register_arrays: NotRequired[Annotated[list[Register], Few] | None]
    calculations: NotRequired[Annotated[list[Calculation], Few] | None]
    checksums: NotRequired[Annotated[list[Checksum], Few] | None]
    field_lists: NotRequired[Annotated[list[FieldList], Few] | None]
    learn_lists: NotRequired[Annotated[list[FieldList], Few] | None]
    extern_instances: NotRequired[Annotated[list[Extern], Few] | None]
    errors: NotRequired[Annotated[list[tuple[Name, Id]], Few] | None]


_ADAPTER = TypeAdapter(Bmv2Json)


def checked(data: bytes) -> Mapping[str, Any]:
    """The JSON as dicts, lists, tuples (pairs), strings and numbers, without keys that are not read.

    Raises NotBmv2Json, which names the first wrong place.
    """
    try:
        return _ADAPTER.validate_json(data, strict=True)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_context=False, include_input=False)
        # If a value may have several types, each is tried. The error of the attempt that got furthest is the most
        # useful.
        first = max((each for each in errors if each["loc"][:2] == errors[0]["loc"][:2]), key=lambda e: len(e["loc"]))
    if first["type"] == "json_invalid":
        raise NotBmv2Json(f"not JSON ({first['msg']}); expected p4c's output for BMv2")
    raise NotBmv2Json(f"not BMv2's JSON: {_path(first['loc'])}: {first['msg']}; compile with p4c-bm2-ss")


def _path(location: tuple[int | str, ...]) -> str:
    """A place as text, ``actions[3].primitives[0].op``, without the names of our own types."""
    text = ""
    for part in location:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part.isidentifier() and part not in _OURS:
            text += f".{part}"
    return text.lstrip(".") or "the whole"


_OURS = {"operation", "operand", "primitive", "number", *_KINDS.values(), "Other"}
