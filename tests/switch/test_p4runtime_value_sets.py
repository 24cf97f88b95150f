"""Parser value sets over P4Runtime; simple_switch_grpc does not implement them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from finsy.proto import p4r

from serene.switch import ControlError, Switch
from tests.switch.conftest import Target
from tests.switch.p4rt_controller import Code, Controller, load_p4info, number

PROGRAM = Path(__file__).with_name("programs") / "value_sets.json"


class Selecting(Controller):
    """A controller of programs/value_sets.p4."""

    def __init__(self, target: Target) -> None:
        super().__init__(target.address, target.device_id, load_p4info(PROGRAM.with_suffix(".p4info.txtpb")))
        self.own = self.become_primary()
        self.set_pipeline("VERIFY_AND_COMMIT", PROGRAM.read_bytes())

    def members(self, value_set: str, *members: tuple[int, ...]) -> p4r.ValueSetEntry:
        entry = p4r.ValueSetEntry(value_set_id=self.id("value_sets", value_set))
        for fields in members:
            member = entry.members.add()
            for id_, value in enumerate(fields, 1):
                member.match.add(field_id=id_).exact.value = number(value)
        return entry

    def found(self, kind: int = 0, low: int = 0, high: int = 0) -> int:
        """Which set the parser found the packet in."""
        data = (kind << 24 | low << 16 | high << 4).to_bytes(5, "big")
        self.own.send(packet=p4r.PacketOut(payload=data))
        return int(self.own.receive("packet").payload[4] & 15)


@pytest.fixture
def selecting(embedded: Target) -> Iterator[Selecting]:
    controller = Selecting(embedded)
    yield controller
    controller.close()


def test_the_parser_goes_by_what_is_in_the_set(selecting: Selecting) -> None:
    assert selecting.found(kind=0x800) == 0
    selecting.modify(selecting.members("kinds", (0x800,), (0x86DD,)))
    assert [selecting.found(kind=kind) for kind in (0x800, 0x801, 0x86DD)] == [1, 0, 1]
    selecting.modify(selecting.members("kinds", (0x801,)))  # in place of what it had
    assert [selecting.found(kind=kind) for kind in (0x800, 0x801, 0x86DD)] == [0, 1, 0]
    selecting.modify(selecting.members("kinds"))
    assert selecting.found(kind=0x801) == 0


def test_a_member_may_have_several_fields(selecting: Selecting) -> None:
    selecting.modify(selecting.members("pairs", (7, 0x9AB), (8, 0)))
    tried = ((7, 0x9AB), (7, 0x9AA), (6, 0x9AB), (8, 0), (0, 8))
    assert [selecting.found(low=low, high=high) for low, high in tried] == [2, 0, 0, 2, 0]


def test_what_was_written_is_read(selecting: Selecting) -> None:
    kinds = selecting.members("kinds", (1,), (2,))
    selecting.modify(kinds)
    assert selecting.read_one(p4r.ValueSetEntry(value_set_id=kinds.value_set_id)) == kinds
    assert len(selecting.read(p4r.ValueSetEntry())) == 2


def test_what_makes_no_sense_is_refused(selecting: Selecting) -> None:
    ternary = selecting.members("kinds", (1,))
    ternary.members[0].match[0].ternary.mask = b"\1"
    for code, kind, entry in (
        (Code.INVALID_ARGUMENT, "INSERT", selecting.members("kinds", (1,))),
        (Code.INVALID_ARGUMENT, "DELETE", selecting.members("kinds")),
        (Code.INVALID_ARGUMENT, "MODIFY", selecting.members("kinds", (1 << 16,))),
        (Code.INVALID_ARGUMENT, "MODIFY", selecting.members("kinds", (1, 2))),
        (Code.ALREADY_EXISTS, "MODIFY", selecting.members("kinds", (1,), (1,))),
        (Code.INVALID_ARGUMENT, "MODIFY", p4r.ValueSetEntry(value_set_id=9)),
        (Code.RESOURCE_EXHAUSTED, "MODIFY", selecting.members("kinds", *((kind,) for kind in range(5)))),
        (Code.UNIMPLEMENTED, "MODIFY", ternary),
    ):
        assert selecting.refused(kind, entry).codes == [code], (kind, entry)
    assert selecting.found(kind=1) == 0


def test_in_process() -> None:
    with Switch.load(PROGRAM) as switch:
        packet = bytes.fromhex("0800000000")
        assert switch.process(1, packet)[0][1][4] == 0
        switch.value_set_write("SetsParser.kinds", [0x800, 0x800])
        ((_, out),), trace = switch.process(1, packet, trace=True)
        assert out[4] == 1 and [step.name for step in trace.all("state")] == ["start", "first"]
        with pytest.raises(ControlError, match="65536 does not fit 16 bits"):
            switch.value_set_write("SetsParser.kinds", [1 << 16])
        with pytest.raises(ControlError, match="at most 1024"):
            switch.value_set_write("SetsParser.kinds", range(1025))
