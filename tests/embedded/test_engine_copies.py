"""The ingress port in copies of a packet: as in BMv2, lost unless a field list keeps it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.embedded import bmv2, small
from tests.embedded.p4rt_controller import clone_session
from tests.embedded.p4rt_probe import PROGRAMS

SESSION, PORT, IN_INGRESS, IN_EGRESS, OTHER = 5, 3, 1, 2, 7
INGRESS_PORT = small.field("standard_metadata", "ingress_port")
DESTINATION = small.field("ethernet", "destination")
SHOW_PORT = small.primitive("assign", small.field("ethernet", "source"), INGRESS_PORT)


def program(*, again: str = "", kept: bool = False) -> dict[str, Any]:
    """programs/mirror.p4, whose copies do not vanish but carry their ingress port as the source address. ``again``: a
    packet goes round once by this primitive. ``kept``: the field lists have the ingress port."""
    made: dict[str, Any] = json.loads((PROGRAMS / "mirror.json").read_bytes())
    primitives = {action["name"]: action["primitives"] for action in made["actions"]}
    every = primitives["mirror35"]
    every[:] = [one for one in every if one["op"] != "log_msg"]
    primitives["MirrorEgress.drop_copy"][:] = [SHOW_PORT]
    if again:
        every[:] = [SHOW_PORT, *every]
        once = every if again == "resubmit" else primitives["MirrorEgress.drop_copy"]
        first = len(once) if again == "resubmit" else 0
        mark = small.field("standard_metadata", "instance_type") if again == "resubmit" else DESTINATION
        once[first:] = [
            small.primitive("_jump_if_zero", mark, small.constant(first + 2)),
            small.primitive("_jump", small.constant(first + 4)),
            small.primitive("assign", DESTINATION, small.constant(1)),
            small.primitive(again, small.constant(1)),
        ]
        made["pipelines"][1]["init_table"] = None if again == "resubmit" else "tbl_drop_copy"
    for item in made["field_lists"]:
        item["elements"] = [INGRESS_PORT] if kept else []
    return made


def frame(kind: int) -> bytes:
    return bytes(6) + b"\xff" * 6 + kind.to_bytes(2, "big") + bytes(46)


CASES = {
    "clone from ingress": (program(), IN_INGRESS, 0),
    "clone from egress": (program(), IN_EGRESS, 0),
    "clone that keeps the port": (program(kept=True), IN_INGRESS, PORT),
    "resubmitted": (program(again="resubmit"), OTHER, 0),
    "resubmitted, with the port": (program(again="resubmit", kept=True), OTHER, PORT),
    "recirculated": (program(again="recirculate"), OTHER, 0),
    "recirculated, with the port": (program(again="recirculate", kept=True), OTHER, PORT),
}


@pytest.mark.parametrize("case", CASES)
def test_ingress_port_in_copies_is_as_in_bmv2(case: str) -> None:
    made, kind, expected = CASES[case]
    with small.load(made) as switch:
        switch.clone_session_set(SESSION, [(4, 0)])
        ((_, packet),) = switch.process(PORT, frame(kind))
    assert int.from_bytes(packet[6:12], "big") == expected


@pytest.mark.bmv2
@pytest.mark.skipif(bool(bmv2.why_not()), reason=bmv2.why_not() or "there")
def test_bmv2_has_the_expected_ingress_port_in_copies(tmp_path: Path) -> None:
    p4info = tmp_path / "empty.txtpb"
    p4info.write_text("")
    with bmv2.running_bmv2(PROGRAMS / "mirror.json", p4info) as switch:
        for case, (made, kind, expected) in CASES.items():
            switch.controller.push(json.dumps(made).encode())
            switch.controller.insert(clone_session(SESSION, (4, 0)))
            ((_, packet),) = switch.process([(PORT, frame(kind))])
            switch.controller.delete(clone_session(SESSION))  # it would outlive the program
            assert int.from_bytes(packet[6:12], "big") == expected, case
