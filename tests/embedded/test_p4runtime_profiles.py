"""Action profiles and selectors over P4Runtime, on both switches: members, groups, and the packets that meet them; and
parser value sets."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest
from finsy.proto import p4r

from serene.embedded import ControlError, Switch
from serene.embedded.p4runtime.pipeline import Schema
from serene.embedded.p4runtime.profiles import Profiles
from serene.embedded.p4runtime.status import Failure
from serene.embedded.program.crcs import Crc
from tests.embedded import small
from tests.embedded.conftest import Target
from tests.embedded.crc import by_the_book
from tests.embedded.p4rt_controller import Code, load_p4info, ordered
from tests.embedded.p4rt_programs import PROFILES, Profiled, Selecting

P4INFO = PROFILES.with_suffix(".p4info.txtpb")


@pytest.fixture
def profiled(target: Target) -> Iterator[Profiled]:
    with Profiled(target) as controller:
        yield controller


@pytest.fixture
def own(embedded: Target) -> Iterator[Profiled]:
    with Profiled(embedded) as controller:
        yield controller


def places(count: int, flows: int = 40) -> list[int]:
    """Which of ``count`` members each flow is given: by its CRC-16."""
    crc = Crc(0x8005, 0, 0, True, True)
    return [by_the_book(crc, 16, flow.to_bytes(2, "big")) % count for flow in range(flows)]


def test_entries_share_a_profile_member(profiled: Profiled) -> None:
    def found() -> list[int]:
        return [profiled.send(direct=key)[0] for key in (1, 2, 3)]

    profiled.insert(profiled.member("members", 7, "first", 70))
    profiled.insert(profiled.indirect("by_member", 1, member=7), profiled.indirect("by_member", 2, member=7))
    assert found() == [70, 70, 0]
    profiled.modify(profiled.member("members", 7, "first", 71))  # for all its entries
    assert found() == [71, 71, 0]
    profiled.insert(profiled.member("members", 8, "nothing"))
    profiled.modify(profiled.indirect("by_member", 2, member=8))
    assert found() == [71, 0, 0]
    profiled.delete(profiled.indirect("by_member", 1, member=7))
    profiled.delete(profiled.member("members", 7))
    assert found() == [0, 0, 0]


def test_group_spreads_flows_by_their_hash(profiled: Profiled) -> None:
    members = [profiled.member("spreader", id_, "second", 100 + id_) for id_ in (1, 2, 3)]
    group, entry = profiled.group(5, (1, 1), (2, 1), (3, 1)), profiled.indirect("by_group", 9, group=5)
    for entity in (*members, group, entry):
        profiled.insert(entity)
    assert profiled.spread(9, 40) == [101 + place for place in places(3)]
    # What is read is what was written.
    spreader = profiled.id("action_profiles", "spreader")
    assert ordered(profiled.read(p4r.ActionProfileMember(action_profile_id=spreader))) == ordered(members)
    assert profiled.read(p4r.ActionProfileMember(action_profile_id=spreader, member_id=2)) == members[1:2]
    profiled.insert(profiled.member("members", 1, "first", 3))
    assert len(profiled.read(p4r.ActionProfileMember())) == 4
    (read,) = profiled.read(p4r.ActionProfileGroup(action_profile_id=spreader))
    assert sorted((one.member_id, one.weight) for one in read.members) == [(1, 1), (2, 1), (3, 1)]
    (read,) = profiled.read(p4r.TableEntry(table_id=entry.table_id))
    assert read.action.action_profile_group_id == 5
    profiled.modify(profiled.group(5, (2, 1)))
    assert set(profiled.spread(9)) == {102}
    profiled.insert(profiled.indirect("by_group", 10, member=3))  # a member alone will do as well
    assert set(profiled.spread(10)) == {103}


def test_profile_member_or_group_in_use_cannot_be_deleted(profiled: Profiled, target: Target) -> None:
    used = Code.FAILED_PRECONDITION if target.name == "embedded" else Code.UNKNOWN
    member, group = profiled.member("spreader", 1, "second", 1), profiled.group(5, (1, 1))
    for entity in (member, group, profiled.indirect("by_group", 9, group=5)):
        profiled.insert(entity)
    assert profiled.code("DELETE", member) is profiled.code("DELETE", group) is used
    profiled.modify(profiled.indirect("by_group", 9, member=1))
    profiled.delete(group)
    assert profiled.code("DELETE", member) is used
    profiled.delete(profiled.indirect("by_group", 9))
    profiled.delete(member)


def test_one_shot_action_set_works_as_a_group(profiled: Profiled, target: Target) -> None:
    """It spreads flows, is read as it was written, and frees its places when it is deleted."""
    entry = profiled.one_shot(9, ("second", 101, 1), ("second", 102, 2), ("second", 101, 1))
    member = profiled.member("spreader", 1, "second", 1)
    profiled.insert(entry)
    assert profiled.spread(9, 40) == [(101, 102, 102, 101)[place] for place in places(4)]
    (read,) = profiled.read(p4r.TableEntry(table_id=entry.table_id))
    assert read == entry
    if target.name == "embedded":  # BMv2 refuses to look for them
        assert profiled.read(p4r.ActionProfileMember()) == profiled.read(p4r.ActionProfileGroup()) == []
    profiled.modify(profiled.one_shot(9, ("second", 103, 1)))
    assert set(profiled.spread(9)) == {103}
    assert profiled.code("INSERT", profiled.one_shot(9, ("second", 104, 1))) is Code.ALREADY_EXISTS
    assert profiled.code("INSERT", member) is Code.INVALID_ARGUMENT, "one or the other"
    for _ in range(20):
        profiled.delete(profiled.indirect("by_group", 9))
        assert profiled.spread(9, 1) == [0]
        profiled.insert(profiled.one_shot(9, ("second", 105, 1), ("second", 106, 1), ("second", 107, 1)))
    profiled.delete(profiled.indirect("by_group", 9))
    profiled.insert(member)
    assert profiled.code("INSERT", entry) is Code.INVALID_ARGUMENT


def test_member_weight_repeats_it_in_a_group(own: Profiled) -> None:
    for entity in (
        *(own.member("spreader", id_, "second", id_) for id_ in (1, 2)),
        own.group(5, (1, 3), (2, 1)),
        own.indirect("by_group", 9, group=5),
    ):
        own.insert(entity)
    assert own.spread(9, 40) == [2 if place == 3 else 1 for place in places(4)]


def test_group_size_may_be_limited_by_sum_of_members(own: Profiled) -> None:
    """The same rule holds for one-shot action sets."""
    info = load_p4info(P4INFO)
    spreader = next(one for one in info.action_profiles if one.preamble.alias == "spreader")
    spreader.sum_of_members.max_member_weight = 3
    spreader.max_group_size = 8
    own.push(None, info)
    heavy = (Code.INVALID_ARGUMENT, "a weight of 4; at most 3")
    two = own.group(6, (1, 1), (2, 1), (3, 1))
    two.max_size = 2

    own.insert(own.one_shot(9, *(("second", id_, 3) for id_ in (1, 2, 3))))
    code, message = own.outcome("INSERT", own.one_shot(8, ("second", 1, 4)))
    assert code is heavy[0] and heavy[1] in message
    own.delete(own.indirect("by_group", 9))
    own.insert(*(own.member("spreader", id_, "second", id_) for id_ in (1, 2, 3)))
    own.insert(own.group(5, (1, 3), (2, 3), (3, 3)))  # three members, weights of 9
    for group, code, words in (
        (own.group(6, (1, 4)), *heavy),
        (two, Code.RESOURCE_EXHAUSTED, "members of 3; at most 2"),
    ):
        found, message = own.outcome("INSERT", group)
        assert found is code and words in message


def test_failed_modify_frees_its_places(own: Profiled, monkeypatch: pytest.MonkeyPatch) -> None:
    own.insert(own.one_shot(1, ("second", 1, 1)))

    def full(*_: Any, **__: Any) -> None:
        raise ControlError("no room")

    with monkeypatch.context() as patched:
        patched.setattr(Switch, "table_modify_chosen", full)
        code, message = own.outcome("MODIFY", own.one_shot(1, ("second", 10, 1)))
        assert code is Code.INTERNAL and "no room" in message
    own.insert(*(own.one_shot(key, ("second", key, 1)) for key in range(2, 9)))  # eight places
    assert [own.send(spread=key)[1] for key in range(1, 9)] == list(range(1, 9))


def test_profile_write_cost_does_not_depend_on_member_count() -> None:
    """The lock is held meanwhile. Counts lines that run, which no other process changes."""
    size = 4096
    program, p4info = json.loads(PROFILES.read_bytes()), load_p4info(P4INFO)
    for pipeline in program["pipelines"]:
        for profile in pipeline["action_profiles"]:
            profile["max_size"] = size
    for info in p4info.action_profiles:
        info.size = size
    with small.load(program) as switch:
        profiles = Profiles(Schema(p4info, switch.program), switch)
        (spreader,) = [one for one in p4info.action_profiles if one.with_selector]
        (action,) = [one for one in p4info.actions if one.preamble.alias == "nothing"]
        entry = p4r.ActionProfileMember(action_profile_id=spreader.preamble.id)
        entry.action.action_id = action.preamble.id

        def write(kind: int, id_: int) -> None:
            entry.member_id = id_
            profiles.write_member(kind, entry)

        def lines(kind: int, id_: int) -> int:
            count = 0

            def each(frame: FrameType, event: str, _: object) -> Any:
                nonlocal count
                count += event == "line"
                return each if frame.f_globals["__name__"].startswith("serene.") else None

            before = sys.gettrace()
            gc.disable()  # what it would clear up, of other tests, has lines, too
            sys.settrace(each)
            try:
                write(kind, id_)
            finally:
                sys.settrace(before)
                gc.enable()
            return count

        write(p4r.Update.INSERT, 1)
        early = lines(p4r.Update.INSERT, 2)
        for id_ in range(3, size):
            write(p4r.Update.INSERT, id_)
        assert 5 < lines(p4r.Update.INSERT, size) < 2 * early < 500  # a cache may or may not be warm
        for id_ in range(1, 100):  # each has a place of its own, which the next one gets
            group = p4r.ActionProfileGroup(action_profile_id=spreader.preamble.id, group_id=id_)
            group.members.add(member_id=id_, weight=1)
            profiles.write_group(p4r.Update.INSERT, group)
        assert lines(p4r.Update.DELETE, size) == lines(p4r.Update.DELETE, size - 1) < 50
        write(p4r.Update.INSERT, size - 1)
        write(p4r.Update.INSERT, size)
        with pytest.raises(Failure, match=f"there is room for {size}"):
            write(p4r.Update.INSERT, size + 1)


# -- parser value sets; simple_switch_grpc does not implement them ----------------------------------------------------


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
