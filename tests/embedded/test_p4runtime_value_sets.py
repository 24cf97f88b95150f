"""Parser value sets over P4Runtime; simple_switch_grpc does not implement them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from finsy.proto import p4r

from serene.embedded import ControlError, Switch
from tests.embedded.conftest import Target
from tests.embedded.p4rt_programs import VALUE_SETS, Selecting


@pytest.fixture
def selecting(embedded: Target) -> Iterator[Selecting]:
    with Selecting(embedded) as controller:
        yield controller


def test_parser_matches_value_set_members(selecting: Selecting) -> None:
    kinds = (0x800, 0x801, 0x86DD)
    for members, found in (
        ((), [0, 0, 0]),
        (((0x800,), (0x86DD,)), [1, 0, 1]),
        (((0x801,),), [0, 1, 0]),  # in place of what it had
        ((), [0, 0, 0]),
    ):
        written = selecting.members("kinds", *members)
        selecting.modify(written)
        assert [selecting.found(kind=kind) for kind in kinds] == found
        assert selecting.read_one(p4r.ValueSetEntry(value_set_id=written.value_set_id)) == written
    assert len(selecting.read(p4r.ValueSetEntry())) == 2


def test_value_set_member_may_have_several_fields(selecting: Selecting) -> None:
    selecting.modify(selecting.members("pairs", (7, 0x9AB), (8, 0)))
    tried = ((7, 0x9AB), (7, 0x9AA), (6, 0x9AB), (8, 0), (0, 8))
    assert [selecting.found(low=low, high=high) for low, high in tried] == [2, 0, 0, 2, 0]


def test_value_sets_work_in_process() -> None:
    with Switch.load(VALUE_SETS) as switch:
        switch.value_set_write("SetsParser.kinds", [0x800, 0x800])
        ((_, out),), trace = switch.process(1, bytes.fromhex("0800000000"), trace=True)
        assert out[4] == 1 and [step.name for step in trace.all("state")] == ["start", "first"]
        for values, words in (([1 << 16], "65536 does not fit 16 bits"), (range(1025), "at most 1024")):
            with pytest.raises(ControlError, match=words):
                switch.value_set_write("SetsParser.kinds", values)
