"""Action profiles and selectors over P4Runtime, on both switches: members, groups, and the packets that meet them."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest
from finsy.proto import p4r

from serene.switch import ControlError, Exact, Switch
from serene.switch.p4runtime.pipeline import Schema
from serene.switch.p4runtime.profiles import Profiles
from serene.switch.p4runtime.status import Failure
from tests.switch.conftest import Target
from tests.switch.p4rt_controller import Code, load_p4info, number
from tests.switch.profiled import P4INFO, PROGRAM, Profiled


@pytest.fixture
def profiled(target: Target) -> Iterator[Profiled]:
    controller = Profiled(target)
    yield controller
    controller.close()


def crc16(data: bytes) -> int:
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0xA001 if crc & 1 else crc >> 1
    return crc


def test_entries_share_a_member(profiled: Profiled) -> None:
    profiled.insert(profiled.member("members", 7, "first", 70))
    profiled.insert(profiled.indirect("by_member", 1, member=7), profiled.indirect("by_member", 2, member=7))
    assert [profiled.send(direct=key)[0] for key in (1, 2, 3)] == [70, 70, 0]
    profiled.modify(profiled.member("members", 7, "first", 71))  # for all its entries
    assert [profiled.send(direct=key)[0] for key in (1, 2, 3)] == [71, 71, 0]
    profiled.insert(profiled.member("members", 8, "nothing"))
    profiled.modify(profiled.indirect("by_member", 2, member=8))
    assert [profiled.send(direct=key)[0] for key in (1, 2)] == [71, 0]
    profiled.delete(profiled.indirect("by_member", 1, member=7))
    profiled.delete(profiled.member("members", 7))
    assert profiled.send(direct=1)[0] == 0


def test_a_group_spreads_flows_by_their_hash(profiled: Profiled) -> None:
    for id_ in (1, 2, 3):
        profiled.insert(profiled.member("spreader", id_, "second", 100 + id_))
    profiled.insert(profiled.group(5, (1, 1), (2, 1), (3, 1)))
    profiled.insert(profiled.indirect("by_group", 9, group=5))
    for flow in range(40):
        chosen = crc16(flow.to_bytes(2, "big")) % 3
        assert profiled.send(spread=9, flow=flow)[1] == 101 + chosen, flow
    profiled.modify(profiled.group(5, (2, 1)))
    assert {profiled.send(spread=9, flow=flow)[1] for flow in range(8)} == {102}
    profiled.insert(profiled.indirect("by_group", 10, member=3))  # a member alone will do as well
    assert {profiled.send(spread=10, flow=flow)[1] for flow in range(8)} == {103}


def test_what_is_read_is_what_was_written(profiled: Profiled) -> None:
    members = [profiled.member("spreader", id_, "second", id_) for id_ in (1, 2)]
    group, entry = profiled.group(5, (1, 1), (2, 1)), profiled.indirect("by_group", 9, group=5)
    profiled.insert(*members, profiled.member("members", 1, "first", 3))
    profiled.insert(group)
    profiled.insert(entry)
    spreader = profiled.id("action_profiles", "spreader")
    found = profiled.read(p4r.ActionProfileMember(action_profile_id=spreader))
    assert sorted(found, key=lambda one: one.member_id) == members
    assert profiled.read(p4r.ActionProfileMember(action_profile_id=spreader, member_id=2)) == members[1:]
    assert len(profiled.read(p4r.ActionProfileMember())) == 3
    (read,) = profiled.read(p4r.ActionProfileGroup(action_profile_id=spreader))
    assert sorted((one.member_id, one.weight) for one in read.members) == [(1, 1), (2, 1)]
    (read,) = profiled.read(p4r.TableEntry(table_id=entry.table_id))
    assert read.action.action_profile_group_id == 5


def test_what_is_used_stays(profiled: Profiled, target: Target) -> None:
    used = target.either(Code.FAILED_PRECONDITION, Code.UNKNOWN)
    profiled.insert(profiled.member("spreader", 1, "second", 1))
    profiled.insert(profiled.group(5, (1, 1)))
    profiled.insert(profiled.indirect("by_group", 9, group=5))
    assert profiled.refused("DELETE", profiled.member("spreader", 1)).codes == [used]
    assert profiled.refused("DELETE", profiled.group(5)).codes == [used]
    profiled.modify(profiled.indirect("by_group", 9, member=1))
    profiled.delete(profiled.group(5))
    assert profiled.refused("DELETE", profiled.member("spreader", 1)).codes == [used]
    profiled.delete(profiled.indirect("by_group", 9))
    profiled.delete(profiled.member("spreader", 1))


def test_a_group_in_one_shot(profiled: Profiled, target: Target) -> None:
    """Spread as a group's flows are; read as it was written; its places are free again when it goes."""
    entry = profiled.one_shot(9, ("second", 101, 1), ("second", 102, 2), ("second", 101, 1))
    profiled.insert(entry)
    members = [101, 102, 102, 101]
    for flow in range(40):
        assert profiled.send(spread=9, flow=flow)[1] == members[crc16(flow.to_bytes(2, "big")) % 4], flow
    (read,) = profiled.read(p4r.TableEntry(table_id=entry.table_id))
    assert read == entry
    if target.name == "embedded":  # BMv2 refuses to look for them
        assert profiled.read(p4r.ActionProfileMember()) == profiled.read(p4r.ActionProfileGroup()) == []
    profiled.modify(profiled.one_shot(9, ("second", 103, 1)))
    assert {profiled.send(spread=9, flow=flow)[1] for flow in range(8)} == {103}
    assert profiled.refused("INSERT", profiled.one_shot(9, ("second", 104, 1))).codes == [Code.ALREADY_EXISTS]
    refused = profiled.refused("INSERT", profiled.member("spreader", 1, "second", 1))
    assert refused.codes == [Code.INVALID_ARGUMENT], "one or the other"
    for _ in range(20):
        profiled.delete(profiled.indirect("by_group", 9))
        assert profiled.send(spread=9)[1] == 0
        profiled.insert(profiled.one_shot(9, ("second", 105, 1), ("second", 106, 1), ("second", 107, 1)))
    profiled.delete(profiled.indirect("by_group", 9))
    profiled.insert(profiled.member("spreader", 1, "second", 1))
    assert profiled.refused("INSERT", entry).codes == [Code.INVALID_ARGUMENT]


def test_one_shots_that_make_no_sense(embedded: Target) -> None:
    """Each is refused whole: at the end all eight places are free."""
    profiled = Profiled(embedded)
    foreign, wide, watched, modes, sizes, newer = (profiled.one_shot(1, ("second", 1, 1), ("second", 2, 1))
                                                   for _ in range(6))  # fmt: skip
    parts = [each.action.action_profile_action_set for each in (foreign, wide, watched, modes, sizes, newer)]
    parts[0].action_profile_actions[1].action.action_id = 99
    parts[1].action_profile_actions[1].action.params[0].value = number(1 << 16)
    parts[2].action_profile_actions[1].watch_port = b"\1"
    parts[3].action_selection_mode = p4r.ActionProfileActionSet.RANDOM
    parts[4].size_semantics = p4r.ActionProfileActionSet.SUM_OF_MEMBERS
    parts[5].MergeFromString(b"\x22\x00")  # field 4, an empty message
    many = [("second", 1, 1)] * 9
    for code, entry in (
        (Code.INVALID_ARGUMENT, foreign),
        (Code.INVALID_ARGUMENT, wide),
        (Code.UNIMPLEMENTED, watched),
        (Code.UNIMPLEMENTED, modes),
        (Code.UNIMPLEMENTED, sizes),
        (Code.UNIMPLEMENTED, newer),
        (Code.INVALID_ARGUMENT, profiled.one_shot(1, ("second", 1, 0))),
        (Code.INVALID_ARGUMENT, profiled.one_shot(1, ("second", 1, -1))),
        (Code.INVALID_ARGUMENT, profiled.one_shot(1, ("first", 1, 1), table="by_member")),
        (Code.RESOURCE_EXHAUSTED, profiled.one_shot(1, *many)),
        (Code.RESOURCE_EXHAUSTED, profiled.one_shot(1, ("second", 1, 2**31 - 1))),
    ):
        assert profiled.refused("INSERT", entry).codes == [code], entry
    for key in range(1, 9):
        profiled.insert(profiled.one_shot(key, ("second", key, 1)))
    assert profiled.refused("INSERT", profiled.one_shot(9, ("second", 9, 1))).codes == [Code.RESOURCE_EXHAUSTED]
    profiled.delete(profiled.indirect("by_group", 3))
    profiled.modify(profiled.one_shot(4, ("second", 40, 1)))
    assert [profiled.send(spread=key)[1] for key in range(1, 9)] == [1, 2, 0, 40, 5, 6, 7, 8]
    named = profiled.indirect("by_group", 3, member=1)
    assert profiled.refused("INSERT", named).codes == [Code.INVALID_ARGUMENT]
    profiled.close()


def test_weights_repeat_a_member(embedded: Target) -> None:
    profiled = Profiled(embedded)
    for id_ in (1, 2):
        profiled.insert(profiled.member("spreader", id_, "second", id_))
    profiled.insert(profiled.group(5, (1, 3), (2, 1)))
    profiled.insert(profiled.indirect("by_group", 9, group=5))
    for flow in range(40):
        assert profiled.send(spread=9, flow=flow)[1] == (2 if crc16(flow.to_bytes(2, "big")) % 4 == 3 else 1)
    profiled.close()


def test_a_group_s_size_may_be_its_members(embedded: Target) -> None:
    """As an action set's may: one rule for both."""
    profiled = Profiled(embedded)
    info = load_p4info(P4INFO)
    spreader = next(one for one in info.action_profiles if one.preamble.alias == "spreader")
    spreader.sum_of_members.max_member_weight = 3
    spreader.max_group_size = 8
    profiled.set_pipeline("VERIFY_AND_COMMIT", PROGRAM.read_bytes(), info)
    profiled.insert(profiled.one_shot(9, *(("second", id_, 3) for id_ in (1, 2, 3))))
    heavy = profiled.refused("INSERT", profiled.one_shot(8, ("second", 1, 4)))
    assert heavy.codes == [Code.INVALID_ARGUMENT] and "a weight of 4; at most 3" in heavy.messages[0]
    profiled.delete(profiled.indirect("by_group", 9))
    profiled.insert(*(profiled.member("spreader", id_, "second", id_) for id_ in (1, 2, 3)))
    profiled.insert(profiled.group(5, (1, 3), (2, 3), (3, 3)))  # three members, weights of 9
    heavy = profiled.refused("INSERT", profiled.group(6, (1, 4)))
    assert heavy.codes == [Code.INVALID_ARGUMENT] and "a weight of 4; at most 3" in heavy.messages[0]
    two = profiled.group(6, (1, 1), (2, 1), (3, 1))
    two.max_size = 2
    many = profiled.refused("INSERT", two)
    assert many.codes == [Code.RESOURCE_EXHAUSTED] and "members of 3; at most 2" in many.messages[0]
    profiled.close()


def test_a_modify_that_fails_gives_its_places_back(embedded: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    profiled = Profiled(embedded)
    profiled.insert(profiled.one_shot(1, ("second", 1, 1)))

    def full(*_: Any, **__: Any) -> None:
        raise ControlError("no room")

    with monkeypatch.context() as patched:
        patched.setattr(Switch, "table_modify_chosen", full)
        refused = profiled.refused("MODIFY", profiled.one_shot(1, ("second", 10, 1)))
        assert refused.codes == [Code.INTERNAL] and "no room" in refused.messages[0]
    for key in range(2, 9):  # eight places
        profiled.insert(profiled.one_shot(key, ("second", key, 1)))
    assert [profiled.send(spread=key)[1] for key in range(1, 9)] == list(range(1, 9))
    profiled.close()


def test_what_makes_no_sense_is_refused(embedded: Target) -> None:
    profiled = Profiled(embedded)
    profiled.insert(profiled.member("spreader", 1, "second", 1))
    twice = profiled.member("spreader", 1, "second", 2)
    over = profiled.group(9, (1, 1))
    over.max_size = -1
    wrong_action = profiled.member("members", 2, "second", 1)
    too_wide = profiled.member("members", 2, "first", 1)
    too_wide.action.params[0].value = number(1 << 16)
    watched = profiled.group(9, (1, 1))
    watched.members[0].watch = 3
    plain = profiled.indirect("by_member", 1)
    plain.action.CopyFrom(profiled.action("first", 1))
    for code, kind, entity in (
        (Code.ALREADY_EXISTS, "INSERT", twice),
        (Code.NOT_FOUND, "MODIFY", profiled.member("spreader", 2, "second", 2)),
        (Code.NOT_FOUND, "DELETE", profiled.member("spreader", 2)),
        (Code.INVALID_ARGUMENT, "INSERT", profiled.member("spreader", 0, "second", 2)),
        (Code.INVALID_ARGUMENT, "INSERT", profiled.member("spreader", 3)),
        (Code.INVALID_ARGUMENT, "INSERT", wrong_action),
        (Code.INVALID_ARGUMENT, "INSERT", too_wide),
        (Code.INVALID_ARGUMENT, "INSERT", p4r.ActionProfileMember(action_profile_id=99, member_id=1)),
        (Code.INVALID_ARGUMENT, "INSERT", profiled.group(1, (1, 1), profile="members")),
        (Code.INVALID_ARGUMENT, "INSERT", profiled.group(1, (1, 1), (1, 1))),
        (Code.INVALID_ARGUMENT, "INSERT", profiled.group(1, (1, 0))),
        (Code.INVALID_ARGUMENT, "INSERT", over),
        (Code.RESOURCE_EXHAUSTED, "INSERT", profiled.group(1, (1, 2**31 - 1))),
        (Code.NOT_FOUND, "INSERT", profiled.group(1, (8, 1))),
        (Code.UNIMPLEMENTED, "INSERT", watched),
        (Code.NOT_FOUND, "INSERT", profiled.indirect("by_group", 1, member=8)),
        (Code.NOT_FOUND, "INSERT", profiled.indirect("by_group", 1, group=8)),
        (Code.INVALID_ARGUMENT, "INSERT", profiled.one_shot(1, ("second", 5, 1))),  # not beside members
        (Code.INVALID_ARGUMENT, "INSERT", plain),
    ):
        assert profiled.refused(kind, entity).codes == [code], (kind, entity)
    profiled.insert(*(profiled.member("members", id_, "nothing") for id_ in (1, 2, 3, 4)))
    assert profiled.refused("INSERT", profiled.member("members", 5, "nothing")).codes == [Code.RESOURCE_EXHAUSTED]
    profiled.close()


def test_a_write_costs_the_same_however_many_members_there_are() -> None:
    """The lock is held for it. Counted in lines that run, which no other process changes."""
    size = 4096
    program, p4info = json.loads(PROGRAM.read_bytes()), load_p4info(P4INFO)
    for pipeline in program["pipelines"]:
        for profile in pipeline["action_profiles"]:
            profile["max_size"] = size
    for info in p4info.action_profiles:
        info.size = size
    with Switch.load(json.dumps(program).encode()) as switch:
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


def test_in_process() -> None:
    """With a trace of what was chosen, and after a member has gone."""
    with Switch.load(PROGRAM) as switch:
        spreader, table = "ProfilesIngress.spreader", "ProfilesIngress.by_group"
        switch.member_set(spreader, 0, "ProfilesIngress.second", [5])
        switch.group_set(spreader, 0, [0])
        handle = switch.table_add_chosen(table, [Exact(1)], 0, group=True)
        packet = bytes([0, 1, 0, 0, 0, 0, 0, 0])
        ((_, out),), trace = switch.process(1, packet, trace=True)
        assert out[6:8] == b"\0\5"
        (chosen,) = trace.all("action profile")
        assert (chosen.name, chosen.values["group"]) == (spreader, 0)
        assert "ProfilesIngress.second" in [action.name for action in trace.all("action")]
        switch.table_modify_chosen(table, handle, 0, group=False)
        switch.group_delete(spreader, 0)
        assert switch.process(1, packet)[0][1][6:8] == b"\0\5"
        switch.member_delete(spreader, 0)
        assert switch.process(1, packet)[0][1][6:8] == b"\0\0"
        with pytest.raises(ControlError, match="the places 0 to 7, not 8"):
            switch.member_set(spreader, 8, "ProfilesIngress.second", [5])
        with pytest.raises(ControlError, match="has no selector"):
            switch.group_set("ProfilesIngress.members", 0, [0])
        with pytest.raises(ControlError, match="the places 0 to 7, not 9"):
            switch.group_set(spreader, 0, [9])
