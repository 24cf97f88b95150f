"""Programs with constructs that p4c rarely writes and BMv2 loads: fields of zero bits, stacks, digests of headers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from finsy.proto import p4d, p4t
from google.protobuf import text_format

from serene.embedded import Exact, Switch, load_program
from serene.embedded.control.types import ControlError
from serene.embedded.p4runtime.pipeline import Schema
from serene.embedded.p4runtime.status import Failure
from serene.embedded.program.errors import NotBmv2Json
from tests.embedded import small
from tests.embedded.p4rt_controller import load_p4info
from tests.embedded.p4rt_probe import PROGRAMS

A, B, EMPTY = (small.field("h", name) for name in ("a", "b", "empty"))


def with_no_bits() -> small.Node:
    """Header h is a (8 bits), empty (0), b (8): h.empty = h.a; h.b = h.empty + 5, parameters and keys of 0 bits."""
    steps = [
        small.primitive("assign", EMPTY, A),
        small.primitive("assign", B, small.operation("+", EMPTY, small.constant(5))),
        small.send_to(1),
    ]
    made = small.program(steps)
    made["header_types"][1]["fields"] = [["a", 8, False], ["empty", 0, False], ["b", 8, False], ["end", 0, False]]
    made["actions"][0]["runtime_data"] = [{"name": "nothing", "bitwidth": 0}]
    made["pipelines"][0]["tables"][0]["default_entry"]["action_data"] = ["0x0"]
    made["pipelines"][0]["tables"][0]["key"] = [
        {"match_type": "exact", "target": ["h", "empty"], "name": "k", "mask": None}
    ]
    (start,) = made["parsers"][0]["parse_states"]
    start["transition_key"] = [EMPTY, {"type": "lookahead", "value": [0, 0]}, A]
    go = {"type": "hexstr", "value": "0x07", "mask": None, "next_state": None}
    start["transitions"] = [go, {"type": "default", "value": None, "mask": None, "next_state": "more"}]
    made["parsers"][0]["parse_states"].append(small.state("more", small.extract("h")))
    return made


def test_fields_of_zero_bits_are_loaded() -> None:
    with small.load(with_no_bits()) as switch:
        assert switch.process(0, b"\x07\xff") == [(1, b"\x07\x05")]
        assert switch.process(0, b"\x08\xff\x09\xff") == [(1, b"\x09\x05")]  # 7 alone ends the parser


def test_json_of_old_p4c_versions_is_loaded() -> None:
    """No type for a default transition, tables that name actions without ids, no timestamps or multicast group in
    standard_metadata, and primitives that change fields."""
    steps = [
        small.primitive("modify_field", B, A),
        small.primitive("add_to_field", A, small.constant(250)),
        small.primitive("subtract_from_field", B, small.constant(9)),
        small.send_to(1),
    ]
    made = small.program(steps)
    made["header_types"][1]["fields"] = [["a", 8, False], ["b", 8, False]]
    standard = made["header_types"][0]
    lacking = ("ingress_global_timestamp", "egress_global_timestamp", "mcast_grp", "egress_rid")
    standard["fields"] = [one for one in standard["fields"] if one[0] not in lacking]
    del made["pipelines"][0]["tables"][0]["action_ids"]
    transition = made["parsers"][0]["parse_states"][0]["transitions"][0]
    del transition["type"]
    transition["value"] = "default"
    with small.load(made) as switch:
        assert switch.process(0, b"\x08\x00tail") == [(1, b"\x02\xfftail")]


def test_multicast_group_in_intrinsic_metadata_is_loaded() -> None:
    """As p4c wrote P4_14 programs before 2019, with that time's form of a condition on a header's validity."""
    group = small.field("intrinsic_metadata", "mcast_grp")
    made = small.program([small.primitive("assign", group, small.constant(3))])
    made = small.with_header(made, "intrinsic_metadata", [["mcast_grp", 16], ["egress_rid", 16], ["more", 8]])
    made["headers"][-1]["metadata"] = True
    standard = made["header_types"][0]
    standard["fields"] = [one for one in standard["fields"] if one[0] not in ("mcast_grp", "egress_rid")]
    ingress, egress = made["pipelines"]
    is_valid = small.operation("valid", None, {"type": "header", "value": "h"})
    ingress["conditionals"] = [{"name": "c", "id": 0, "expression": is_valid, "true_next": "t", "false_next": None}]
    ingress["init_table"] = "c"
    assignment = small.primitive("assign", A, small.field("intrinsic_metadata", "egress_rid"))
    made["actions"].append({"name": "tell", "id": 1, "runtime_data": [], "primitives": [assignment]})
    egress["tables"] = [small.table("u", 1, actions=["tell"], next_tables={"tell": None})]
    egress["init_table"] = "u"
    with small.load(made) as switch:
        switch.multicast_set(3, [(1, 7), (2, 9)])
        assert switch.process(0, b"\x08") == [(1, b"\x07"), (2, b"\x09")]
        assert switch.process(5, b"") == [(0, b"")]  # no header, so no group


@pytest.fixture(scope="module")
def stacked() -> Iterator[Switch]:
    """A packet is h (an index), t, and the two elements of stack s, all of type h_t. An action has the steps of each of
    INDEXED, and sends all."""
    made = small.program([])
    made["actions"] = [
        {"name": f"run{number}", "id": number, "runtime_data": [], "primitives": [*steps, small.send_to(1)]}
        for number, (steps, _, _) in enumerate(INDEXED)
    ]
    table, numbers = made["pipelines"][0]["tables"][0], range(len(INDEXED))
    table.update(action_ids=[*numbers], actions=[f"run{number}" for number in numbers], next_tables={
        f"run{number}": None for number in numbers
    })  # fmt: skip
    table["default_entry"]["action_const"] = False
    for number, name in enumerate(("t", "s[0]", "s[1]"), 2):
        made["headers"].append({"name": name, "id": number, "header_type": "h_t", "metadata": False})
    made["header_stacks"] = [{"name": "s", "id": 0, "header_type": "h_t", "size": 2, "header_ids": [3, 4]}]
    element = {"op": "extract", "parameters": [{"type": "stack", "value": "s"}]}
    start = small.state("start", small.extract("h"), small.extract("t"), element, element)
    made["parsers"][0]["parse_states"] = [start]
    made["deparsers"][0]["order"] = ["h", "t", "s[0]", "s[1]"]
    with small.load(made) as switch:
        yield switch


AT_H = {"op": "dereference_header_stack", "left": {"type": "header_stack", "value": "s"}, "right": A}
ELEMENT, T = {"type": "expression", "value": AT_H}, {"type": "header", "value": "t"}
NESTED = {"type": "expression", "value": ELEMENT}  # as p4c writes it where it is read
FIRST_FIELD = {"type": "expression", "value": {"op": "access_field", "left": ELEMENT, "right": 0}}
INSIDE, OUTSIDE = b"\x01\x10\x20\x30", b"\x02\x10\x20\x30"


INDEXED = [  # steps, and what comes out if the index is inside the stack, and outside
    ([small.primitive("assign_header", T, NESTED)], b"\x01\x30\x20\x30", b"\x02\x20\x30"),
    ([small.primitive("assign_header", ELEMENT, T)], b"\x01\x10\x20\x10", OUTSIDE),
    ([small.primitive("remove_header", NESTED)], b"\x01\x10\x20", OUTSIDE),
    ([small.primitive("remove_header", ELEMENT), small.primitive("add_header", NESTED)],
     b"\x01\x10\x20\x00", OUTSIDE),
    ([small.primitive("assign", FIRST_FIELD, small.constant(9))], b"\x01\x10\x20\x09", OUTSIDE),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(INDEXED)))
def test_header_stack_is_indexed_by_a_packet_field(stacked: Switch, number: int) -> None:
    """An element outside the stack is an invalid header, and writes to it change nothing (P4_16, 8.25)."""
    stacked.table_set_default("t", f"run{number}", [])
    _, inside, outside = INDEXED[number]
    assert stacked.process(0, INSIDE) == [(1, inside)]
    assert stacked.process(0, OUTSIDE) == [(1, outside)]


def test_metadata_struct_is_copied() -> None:
    """p4c writes ``log_msg("{}", {standard_metadata})`` like this."""
    copied = small.primitive(
        "assign_header", {"type": "header", "value": "kept"}, {"type": "header", "value": "standard_metadata"}
    )
    made = small.program([copied, small.primitive("assign", A, small.field("kept", "ingress_port")), small.send_to(1)])
    made["headers"].append({"name": "kept", "id": 2, "header_type": "standard", "metadata": True})
    with small.load(made) as switch:
        assert switch.process(7, b"\x00") == [(1, b"\x07")]
    made["headers"][2]["metadata"] = False
    made["headers"][2]["header_type"] = "h_t"
    with pytest.raises(NotBmv2Json, match="headers 'kept' and 'standard_metadata' are of different types"):
        small.load(made)


def test_last_stack_element_is_copied_in_the_parser() -> None:
    """p4c writes ``h = stack.last`` like this; before anything is extracted, there is no last element."""
    made = small.program([small.send_to(1)])
    for index in range(2):
        made["headers"].append({"name": f"s[{index}]", "id": 2 + index, "header_type": "h_t", "metadata": False})
    made["header_stacks"] = [{"name": "s", "id": 0, "header_type": "h_t", "size": 2, "header_ids": [2, 3]}]
    last = {"type": "expression", "value": {"type": "stack_field", "value": ["s", "last"]}}
    copy = {"op": "primitive", "parameters": [small.primitive("assign_header", {"type": "header", "value": "h"}, last)]}
    extract = {"op": "extract", "parameters": [{"type": "stack", "value": "s"}]}
    for operations in [extract, extract, copy], [small.extract("h"), copy]:
        made["parsers"][0]["parse_states"] = [small.state("start", *operations)]
        with small.load(made) as switch:
            assert switch.process(0, b"\x08\x09tail") == [(1, b"\x09tail")]  # the 9 is the copy, or follows no header


def test_selector_within_a_table_spreads_packets() -> None:
    """p4c wrote action profiles like this in 2016. The table's group uses the CRC-16 of a packet's first byte."""
    made = small.program([small.primitive("assign", B, {"type": "runtime_data", "value": 0}), small.send_to(1)])
    made["header_types"][1]["fields"] = [["a", 8, False], ["b", 8, False]]
    made["actions"][0]["runtime_data"] = [{"name": "chosen", "bitwidth": 8}]
    key = {"match_type": "exact", "target": ["standard_metadata", "ingress_port"], "name": "port", "mask": None}
    table = small.table("t", key=[key], type="indirect_ws", act_prof_name="spread")
    del table["default_entry"]
    made["pipelines"][0]["tables"] = [table | {"selector": {"algo": "crc16", "input": [A]}}]
    with small.load(made) as switch:
        for member in range(2):
            switch.member_set("spread", member, "run", [member])
        switch.group_set("spread", 0, [0, 1])
        switch.table_add_chosen("t", [Exact(7)], 0, group=True)
        for first, chosen in {1: 1, 2: 1, 3: 0, 4: 1}.items():  # the CRC-16's last bit is the parity of the byte
            sent, trace = switch.process(7, bytes([first, 0xFF]), trace=True)
            assert sent == [(1, bytes([first, chosen]))]
            assert [(step.name, step.values["group"]) for step in trace.all("action profile")] == [("spread", 0)]
        switch.member_delete("spread", 1)
        assert switch.process(7, b"\1\xff") == [(0, b"\1\xff")]  # what was deleted does nothing, not even send
        with pytest.raises(ControlError, match="the places 0 to"):
            switch.member_set("spread", 1 << 20, "run", [5])


# -- digests -----------------------------------------------------------------------------------------------------

BAG = PROGRAMS / "bag.p4info.txtpb"  # nested structs, a header, enums, an error, a signed number, a bool, and new types


def with_bag() -> small.Node:
    """The program of that P4Info. The header x is there if a packet's first byte is 7."""
    values = {"flag": 1, "kind": 1, "error": 1, "serial": 0x2A, "signed": 0xFE, "new": 5, "sdn": 9, "width": 17}
    widths = {"flag": 1, "kind": 32, "error": 32, "new": 7}
    fields = [[name, widths.get(name, 8)] for name in values]
    made = small.with_header(small.program([]), "m", fields)
    made["headers"][-1]["metadata"] = True
    made = small.with_header(made, "x", [["p", 8], ["q", 80]])
    made["errors"] = [["NoError", 0], ["PacketTooShort", 1]]
    elements = [small.field("x", "p"), small.field("x", "q"), *(small.field("m", name) for name in values)]
    made["learn_lists"] = [{"id": 1, "name": "bag", "elements": elements}]
    made["actions"][0]["primitives"] = [
        *(small.primitive("assign", small.field("m", name), small.constant(value)) for name, value in values.items()),
        small.primitive("generate_digest", small.constant(0), small.constant(1)),
        small.send_to(1),
    ]
    return small.with_more_after_seven(made, small.extract("x"))


def members(*items: p4d.P4Data) -> p4d.P4StructLike:
    return p4d.P4StructLike(members=items)


@pytest.mark.parametrize("is_valid", [True, False])
def test_digest_of_nested_types_is_structured(is_valid: bool) -> None:
    info = load_p4info(BAG)
    with small.load(with_bag()) as switch:
        schema = Schema(info, switch.program)
        switch.process(0, b"\x07\x0a" + bytes(9) + b"\x0b" if is_valid else b"\x01")
        (digest,) = switch.poll_digests()
        assert digest.values[2:] == (1, 1, 1, 0x2A, 0xFE, 5, 9, 17) and digest.valid == {0: is_valid}
        data = schema.types.structured(info.digests[0].type_spec, digest.values, digest.valid)
    header = p4d.P4Header(is_valid=is_valid, bitstrings=[b"\x0a", b"\x0b"] if is_valid else [])
    inner = members(
        p4d.P4Data(bool=True), p4d.P4Data(enum="Second"), p4d.P4Data(error="PacketTooShort"),
        p4d.P4Data(enum_value=b"\x2a"), p4d.P4Data(bitstring=b"\xfe"),
    )  # fmt: skip
    pair = members(p4d.P4Data(bitstring=b"\x05"), p4d.P4Data(bitstring=b"9"))
    whole = members(
        p4d.P4Data(header=header), p4d.P4Data(struct=inner), p4d.P4Data(tuple=pair), p4d.P4Data(bitstring=b"\x11")
    )
    assert data == p4d.P4Data(struct=whole)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("bitstring { varbit { max_bitwidth: 8 } }", "varbit is not supported"),
        ('header_union { name: "u" }', "header_union is not supported"),
        ("bitstring { bit { bitwidth: 9 } }", r"has \(8, 80, 1, 32, 32, 8, 8, 7, any, 9\) bits"),
        ('struct { name: "bag" }', "nested more than 16 deep"),
    ],
)
def test_digest_that_does_not_fit_its_p4info_is_refused(spec: str, words: str) -> None:
    info = load_p4info(BAG)
    info.type_info.structs["bag"].members[-1].type_spec.CopyFrom(text_format.Parse(spec, p4t.P4DataTypeSpec()))
    with pytest.raises(Failure, match=words):
        Schema(info, load_program(small.encoded(with_bag())))
