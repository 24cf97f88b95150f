"""Table entries: what is there already, default and constant entries, reads with filters."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from finsy.proto import p4r

from serene.switch import Exact, Switch
from serene.switch.p4runtime.idle import IdleTimeouts
from serene.switch.p4runtime.parts import MESSAGE_ITEMS
from serene.switch.p4runtime.tables import MAX_METADATA_BYTES
from tests.switch.conftest import Target, embedded_target
from tests.switch.p4rt_controller import Code, Controller, Stream, WriteFailed, same, until, update
from tests.switch.p4rt_probe import JSON, Probe, send

# -- what is there already, what is not, and what does not fit ------------------------------------------------


def test_inserting_twice(primary: Controller, stream: Stream) -> None:
    primary.insert(primary.entry("by_exact", {"a": 1, "b": 2}, "found_exact", 3))
    failed = primary.refused("INSERT", primary.entry("by_exact", {"a": 1, "b": 2}, "found_exact", 4))
    assert failed.codes == [Code.ALREADY_EXISTS]
    assert send(primary, stream, Probe(a=1, b=2)).by_exact == 3


def test_what_is_not_there(primary: Controller) -> None:
    for type_ in ("MODIFY", "DELETE"):
        failed = primary.refused(type_, primary.entry("by_exact", {"a": 1, "b": 2}, "found_exact", 3))
        assert failed.codes == [Code.NOT_FOUND]
    failed = primary.refused("DELETE", primary.key("by_ternary", {"b": (1, 1)}, priority=3))
    assert failed.codes == [Code.NOT_FOUND]


def test_a_full_table(target: Target, primary: Controller) -> None:
    entries = [primary.entry("by_exact", {"a": 1, "b": b}, "found_exact", b) for b in range(4)]
    primary.insert(*entries)
    failed = primary.refused("INSERT", primary.entry("by_exact", {"a": 1, "b": 4}, "found_exact", 4))
    assert failed.codes == [target.either(Code.RESOURCE_EXHAUSTED, Code.UNKNOWN)]
    assert same(primary.read(primary.key("by_exact")), entries)
    primary.delete(entries[0])
    primary.insert(primary.entry("by_exact", {"a": 1, "b": 4}, "found_exact", 4))


def test_one_bad_update_does_not_stop_the_others(primary: Controller) -> None:
    good = [primary.entry("by_scoped", {"a": a}, "found_scoped", a) for a in range(3)]
    with pytest.raises(WriteFailed) as caught:
        primary.insert(good[0], good[0], good[1], primary.key("by_scoped", {"a": 7}), good[2])
    failed = caught.value
    assert failed.code is Code.UNKNOWN
    assert failed.codes == [Code.OK, Code.ALREADY_EXISTS, Code.OK, Code.INVALID_ARGUMENT, Code.OK]
    assert (failed.status.code, failed.status.message) == (Code.UNKNOWN.value[0], failed.message)
    assert failed.messages[0] == failed.messages[2] == ""
    assert same(primary.read(primary.key("by_scoped")), good)


def test_many_failures_fit_into_the_status(embedded_primary: Controller) -> None:
    """gRPC clients lose a status that is larger than their limit on metadata, by default 8 KiB."""
    bad = [embedded_primary.key("by_exact", {"a": 1, "b": b}) for b in range(100)]
    with pytest.raises(WriteFailed) as failed:
        embedded_primary.insert(*bad)
    assert failed.value.code is Code.UNKNOWN
    assert failed.value.codes == [Code.INVALID_ARGUMENT] * 100
    assert "100 of 100" in failed.value.message


@pytest.mark.parametrize("atomicity", ["ROLLBACK_ON_ERROR", "DATAPLANE_ATOMIC"])
def test_other_atomicities_are_not_implemented(primary: Controller, atomicity: str) -> None:
    with pytest.raises(WriteFailed) as failed:
        primary.write(atomicity=p4r.WriteRequest.Atomicity.Value(atomicity))
    assert failed.value.code is Code.UNIMPLEMENTED


@pytest.mark.parametrize("type_", ["UNSPECIFIED"])
def test_an_update_has_a_type(primary: Controller, type_: str) -> None:
    failed = primary.refused(type_, primary.entry("by_exact", {"a": 1, "b": 2}, "found_exact", 3))
    assert failed.codes == [Code.INVALID_ARGUMENT]


def test_an_update_has_an_entity(target: Target, primary: Controller) -> None:
    failed = primary.refused("INSERT", p4r.Entity())
    assert failed.codes == [target.either(Code.INVALID_ARGUMENT, Code.UNKNOWN)]
    with pytest.raises(grpc.RpcError) as refused:
        primary.read(p4r.Entity())
    assert refused.value.code() is target.either(Code.INVALID_ARGUMENT, Code.UNKNOWN)


@pytest.mark.parametrize("kind", ["extern_entry"])
def test_entities_that_this_switch_lacks(embedded_primary: Controller, kind: str) -> None:
    entity = p4r.Entity()
    getattr(entity, kind).SetInParent()
    failed = embedded_primary.refused("INSERT", entity)
    assert failed.codes == [Code.UNIMPLEMENTED] and kind in failed.messages[0]


def test_reading_the_entities_that_no_program_has(embedded_primary: Controller) -> None:
    """All of them are none, so that a controller can ask for everything; one of them is an error."""
    everything = (p4r.ActionProfileMember(), p4r.ActionProfileGroup(), p4r.ValueSetEntry(), p4r.ExternEntry())
    assert embedded_primary.read(*everything) == []
    for wanted in (
        p4r.ActionProfileMember(action_profile_id=1),
        p4r.ActionProfileGroup(action_profile_id=1),
        p4r.ValueSetEntry(value_set_id=1),
    ):
        with pytest.raises(grpc.RpcError) as refused:
            embedded_primary.read(wanted)
        assert refused.value.code() is Code.INVALID_ARGUMENT


# -- modifying and deleting -----------------------------------------------------------------------------------


def test_only_the_key_matters_for_deleting(primary: Controller) -> None:
    primary.insert(primary.entry("by_exact", {"a": 1, "b": 2}, "found_exact", 3))
    nonsense = primary.key("by_exact", {"a": 1, "b": 2})
    nonsense.action.action.action_id = 0x01ABCDEF
    nonsense.idle_timeout_ns = 5
    primary.delete(nonsense)
    assert primary.read(primary.key("by_exact")) == []


def test_modifying_without_an_action_keeps_it(embedded_primary: Controller) -> None:
    """simple_switch_grpc refuses it."""
    entry = embedded_primary.entry("by_exact", {"a": 1, "b": 2}, "found_exact", 3)
    embedded_primary.insert(entry)
    embedded_primary.modify(embedded_primary.key("by_exact", {"a": 1, "b": 2}))
    assert embedded_primary.read(embedded_primary.key("by_exact")) == [entry]


def test_metadata_is_kept_and_replaced(primary: Controller) -> None:
    def make(**fields: Any) -> p4r.TableEntry:
        return primary.entry("by_exact", {"a": 1, "b": 2}, "found_exact", 3, **fields)

    primary.insert(make(controller_metadata=0xC0FFEE, metadata=b"mine"))
    assert primary.read(primary.key("by_exact")) == [make(controller_metadata=0xC0FFEE, metadata=b"mine")]
    primary.modify(make(controller_metadata=5))
    assert primary.read(primary.key("by_exact")) == [make(controller_metadata=5)]


def test_a_failed_modification_changes_nothing(embedded_primary: Controller) -> None:
    primary = embedded_primary
    entry = primary.entry("by_lpm", {"address": (0x0A000000, 8)}, "found_lpm", 3)
    primary.insert(entry)
    bad = primary.entry("by_lpm", {"address": (0x0A000000, 8)}, "found_lpm", 4)
    bad.counter_data.packet_count = 1  # this table has no counter
    assert primary.refused("MODIFY", bad).codes == [Code.INVALID_ARGUMENT]
    assert primary.read(primary.key("by_lpm")) == [entry]
    new = primary.entry("by_lpm", {"address": (0x0B000000, 8)}, "found_lpm", 4)
    new.counter_data.packet_count = 1
    assert primary.refused("INSERT", new).codes == [Code.INVALID_ARGUMENT]
    assert primary.read(primary.key("by_lpm")) == [entry]


def test_clients_make_no_constant_entries(embedded_primary: Controller) -> None:
    entry = embedded_primary.entry("by_exact", {"a": 1, "b": 2}, "found_exact", 3, is_const=True)
    for type_ in ("INSERT", "MODIFY", "DELETE"):
        assert embedded_primary.refused(type_, entry).codes == [Code.INVALID_ARGUMENT]


# -- default entries ------------------------------------------------------------------------------------------


def test_default_entries_are_modified_and_reset(primary: Controller, stream: Stream) -> None:
    original = primary.default("by_exact", "found_exact", 9)
    assert primary.read(primary.default("by_exact")) == [original]
    changed = primary.default("by_exact", "found_exact_twice", 20, 1)
    primary.modify(changed)
    assert primary.read(primary.default("by_exact")) == [changed]
    assert send(primary, stream, Probe(a=9)).by_exact == 21
    primary.modify(primary.default("by_exact"))
    assert primary.read(primary.default("by_exact")) == [original]
    assert send(primary, stream, Probe(a=9)).by_exact == 9


def test_tables_without_a_key_have_a_default_entry_only(target: Target, primary: Controller, stream: Stream) -> None:
    assert send(primary, stream, Probe()).by_keyless == 31
    primary.modify(primary.default("by_keyless", "found_keyless", 32))
    assert send(primary, stream, Probe()).by_keyless == 32
    if target.name == "embedded":  # BMv2 takes it, to no effect
        failed = primary.refused("INSERT", primary.entry("by_keyless", {}, "found_keyless", 33))
        assert failed.codes == [Code.INVALID_ARGUMENT] and "ProbeIngress.by_keyless" in failed.messages[0]


@pytest.mark.parametrize("type_", ["INSERT", "DELETE"])
def test_default_entries_can_only_be_modified(primary: Controller, type_: str) -> None:
    assert primary.refused(type_, primary.default("by_exact", "found_exact", 1)).codes == [Code.INVALID_ARGUMENT]


def test_default_entries_have_no_key(primary: Controller) -> None:
    with_match = primary.default("by_exact", "found_exact", 1)
    with_match.match.extend(primary.key("by_exact", {"a": 1, "b": 2}).match)
    with_priority = primary.default("by_ternary", "found_ternary", 1)
    with_priority.priority = 1
    for entry in (with_match, with_priority):
        assert primary.refused("MODIFY", entry).codes == [Code.INVALID_ARGUMENT]


def test_constant_default_actions_stay(primary: Controller) -> None:
    failed = primary.refused("MODIFY", primary.default("by_lpm", "found_lpm", 1))
    assert failed.codes == [Code.PERMISSION_DENIED]
    assert primary.refused("MODIFY", primary.default("by_lpm")).codes == [Code.PERMISSION_DENIED]


def test_actions_keep_to_their_scope(primary: Controller) -> None:
    failed = primary.refused("MODIFY", primary.default("by_scoped", "found_scoped", 1))
    assert failed.codes == [Code.PERMISSION_DENIED]
    failed = primary.refused("INSERT", primary.entry("by_scoped", {"a": 1}, "no_scoped"))
    assert failed.codes == [Code.PERMISSION_DENIED]


# -- entries of the program's own -----------------------------------------------------------------------------


def test_constant_entries_match_and_can_be_read(target: Target, primary: Controller, stream: Stream) -> None:
    assert [send(primary, stream, Probe(b=b)).by_constant for b in (1, 2, 3, 4)] == [11, 12, 12, 13]
    expected = [
        primary.entry("by_constant", {"b": (1, 0xFFFF)}, "found_constant", 11, priority=3, is_const=True),
        primary.entry("by_constant", {"b": (2, 0xFFFE)}, "found_constant", 12, priority=2, is_const=True),
        primary.entry("by_constant", {}, "found_constant", 13, priority=1, is_const=True),
    ]
    if target.name == "embedded":  # BMv2's P4Runtime does not see them
        assert same(primary.read(primary.key("by_constant")), expected)
        assert primary.read(primary.key("by_constant", {"b": (2, 0xFFFE)}, priority=2)) == [expected[1]]


def test_constant_entries_stay(embedded_primary: Controller) -> None:
    primary = embedded_primary
    denied = [
        ("INSERT", primary.entry("by_constant", {"b": (7, 7)}, "found_constant", 1, priority=9)),
        ("MODIFY", primary.entry("by_constant", {"b": (1, 0xFFFF)}, "found_constant", 11, priority=3)),
        ("DELETE", primary.key("by_constant", {"b": (1, 0xFFFF)}, priority=3)),
    ]
    for type_, entry in denied:
        failed = primary.refused(type_, entry)
        assert failed.codes == [Code.PERMISSION_DENIED] and "ProbeIngress.by_constant" in failed.messages[0]
    # Their counters may be written, and so may the default action.
    entry = primary.key("by_constant", {"b": (1, 0xFFFF)}, priority=3)
    entry.counter_data.packet_count = 44
    primary.modify(entry)
    assert primary.read_one(entry).counter_data.packet_count == 44
    primary.modify(primary.default("by_constant", "found_constant", 5))


def test_initial_entries_can_be_changed(target: Target, primary: Controller, stream: Stream) -> None:
    assert [send(primary, stream, Probe(a=a)).by_initial for a in (1, 2, 3)] == [21, 22, 0]
    one = primary.entry("by_initial", {"a": 1}, "found_initial", 21)
    if target.name == "bmv2":  # its P4Runtime does not see the initial entries
        assert primary.refused("MODIFY", one).codes == primary.refused("DELETE", one).codes == [Code.NOT_FOUND]
        assert primary.refused("INSERT", one).codes == [Code.UNKNOWN]
        return
    two = primary.entry("by_initial", {"a": 2}, "found_initial", 22)
    assert same(primary.read(primary.key("by_initial")), [one, two])
    assert primary.refused("INSERT", one).codes == [Code.ALREADY_EXISTS]
    primary.modify(primary.entry("by_initial", {"a": 1}, "found_initial", 500))
    primary.delete(two)
    primary.insert(primary.entry("by_initial", {"a": 3}, "found_initial", 600))
    assert [send(primary, stream, Probe(a=a)).by_initial for a in (1, 2, 3)] == [500, 0, 600]


def test_an_initial_entry_s_bits_that_do_not_count_are_no_part_of_it() -> None:
    """p4c writes a key as it stands in the program, `0x134 &&& 0xff00`, and its mask beside it."""
    written = JSON.read_text().replace('"0x0100"', '"0x0134"')
    assert written != JSON.read_text()
    with embedded_target() as target:
        controller = target.controller()
        controller.become_primary()
        controller.set_pipeline("VERIFY_AND_COMMIT", written.encode())
        entry = controller.entry("by_preset", {"b": (0x100, 0xFF00)}, "found_preset", 41, priority=2)
        assert list(entry.match) in [list(found.match) for found in controller.read(controller.key("by_preset"))]
        assert controller.refused("INSERT", entry).codes == [Code.ALREADY_EXISTS]
        controller.delete(entry)
        controller.insert(entry)
        controller.close()


def test_initial_entries_have_priorities_that_controllers_can_exceed(
    embedded_primary: Controller, embedded: Target
) -> None:
    """BMv2's JSON keeps their order only: they count from below."""
    primary = embedded_primary
    entries = primary.read(primary.key("by_preset"))
    assert sorted(entry.priority for entry in entries) == [1, 2]
    assert [e.action.action.params[0].value for e in sorted(entries, key=lambda e: -e.priority)] == [b"\x29", b"\x2a"]
    controller = embedded.controller()
    stream = controller.become_primary()
    assert send(controller, stream, Probe(b=0x115)).by_preset == 41
    controller.delete(min(entries, key=lambda entry: entry.priority))  # p4c made the table no larger than its entries
    controller.insert(controller.entry("by_preset", {"b": (0x115, 0xFFFF)}, "found_preset", 43, priority=3))
    assert send(controller, stream, Probe(b=0x115)).by_preset == 43
    controller.close()


def test_idle_entries_are_told_of_and_told_of_again(embedded: Target) -> None:
    """Only those that no packet hits, and until they are gone; how long ago the last hit was can be read."""
    controller = embedded.controller()
    stream = controller.become_primary()
    controller.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
    idle = controller.entry("by_idle", {"a": 1}, "found_idle", 1, idle_timeout_ns=300 * 10**6, metadata=b"m")
    never = controller.entry("by_idle", {"a": 2}, "found_idle", 2)
    controller.insert(idle, never)
    for _ in range(2):
        (told,) = stream.receive("idle_timeout_notification").table_entry
        assert (told.match, told.idle_timeout_ns, told.metadata) == (idle.match, 300 * 10**6, b"m")
        assert told.table_id == idle.table_id
    wanted = p4r.TableEntry(table_id=idle.table_id)
    wanted.time_since_last_hit.SetInParent()
    found = {entry.match[0].exact.value: entry for entry in controller.read(wanted)}
    assert found[b"\1"].idle_timeout_ns == 300 * 10**6 and found[b"\2"].idle_timeout_ns == 0
    before = found[b"\1"].time_since_last_hit.elapsed_ns
    assert before >= 600 * 10**6
    controller.packet_out(stream, Probe(a=1).frame())

    def hit() -> bool:
        (entry,) = [each for each in controller.read(wanted) if each.match[0].exact.value == b"\1"]
        return bool(entry.time_since_last_hit.elapsed_ns < before)

    until(hit, "the packet has hit the entry")
    controller.delete(idle)
    until(stream.silent, "what was under way has come")
    assert stream.silent(1.0)
    longer = controller.entry("by_idle", {"a": 2}, "found_idle", 2, idle_timeout_ns=1)
    controller.modify(longer)
    assert stream.receive("idle_timeout_notification").table_entry[0].match == never.match
    controller.close()


def test_an_entry_s_metadata_is_bounded(embedded_primary: Controller) -> None:
    """Notices and answers repeat it."""
    entry = embedded_primary.entry("by_exact", {"a": 1, "b": 2}, "found_exact", 3, metadata=bytes(MAX_METADATA_BYTES))
    larger = embedded_primary.entry(
        "by_exact", {"a": 1, "b": 2}, "found_exact", 3, metadata=bytes(MAX_METADATA_BYTES + 1)
    )
    for kind in ("INSERT", "MODIFY"):
        failed = embedded_primary.refused(kind, larger)
        assert failed.codes == [Code.INVALID_ARGUMENT]
        assert f"metadata of {MAX_METADATA_BYTES + 1} bytes; an entry has {MAX_METADATA_BYTES}" in failed.messages[0]
        if kind == "INSERT":
            embedded_primary.insert(entry)
    assert embedded_primary.read(embedded_primary.key("by_exact")) == [entry]


def test_an_idle_timeout_begins_anew_with_a_hit_and_with_a_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    table, now, told = "ProbeIngress.by_idle", 1_000, list[p4r.StreamMessageResponse]()

    def deliver(message: p4r.StreamMessageResponse) -> bool:
        told.append(message)
        return True

    def notices(at: int) -> int:
        nonlocal now
        now = at
        idle.send_due()
        return len(told)

    clock = SimpleNamespace(monotonic_ns=lambda: now, time_ns=time.time_ns)
    monkeypatch.setattr("serene.switch.p4runtime.idle.time", clock)  # there alone: threads go by the real one
    with Switch.load(JSON) as switch:
        idle = IdleTimeouts(switch, deliver)
        handle = switch.table_add(table, [Exact(1)], "ProbeIngress.found_idle", [5])
        idle.set(table, handle, p4r.TableEntry(idle_timeout_ns=100), new=True)
        assert notices(1_099) == 0
        switch.process(1, Probe(a=1).frame())
        assert [notices(at) for at in (1_150, 1_249, 1_250, 1_251, 1_349, 1_350)] == [0, 0, 1, 1, 1, 2]


def test_many_idle_entries_are_told_of_in_messages_that_every_client_takes() -> None:
    """gRPC's clients take 4 MiB in one."""
    sent: list[p4r.StreamMessageResponse] = []

    def deliver(message: p4r.StreamMessageResponse) -> bool:
        sent.append(message)
        return True

    with Switch.load(JSON) as switch:
        idle = IdleTimeouts(switch, deliver)
        for handle in range(600):
            metadata = bytes(700_000 if handle < 5 else 1)
            idle.set("ProbeIngress.by_idle", handle, p4r.TableEntry(idle_timeout_ns=1, priority=handle + 1,
                                                                    metadata=metadata), new=True)  # fmt: skip
        idle.send_due()
    told = [message.idle_timeout_notification for message in sent]
    assert [entry.priority - 1 for each in told for entry in each.table_entry] == list(range(600))
    assert all(each.timestamp and each.ByteSize() < 2 << 20 and len(each.table_entry) <= MESSAGE_ITEMS for each in told)
    assert len(told) < 12


def test_idle_timeouts_that_make_no_sense(embedded_primary: Controller) -> None:
    entry = embedded_primary.entry("by_idle", {"a": 9}, "found_idle", 1, idle_timeout_ns=-1)
    assert embedded_primary.refused("INSERT", entry).codes == [Code.INVALID_ARGUMENT]
    wanted = p4r.TableEntry(table_id=embedded_primary.id("tables", "by_exact"))
    wanted.time_since_last_hit.SetInParent()
    with pytest.raises(grpc.RpcError, match="has no idle timeouts"):
        embedded_primary.read(wanted)


def test_refused_times_in_pis_words(primary: Controller) -> None:
    """p4-guide's suite compares them."""
    entry = primary.entry("by_scoped", {"a": 1}, "found_scoped", 1, idle_timeout_ns=1)
    failed = primary.refused("INSERT", entry)
    assert failed.codes == [Code.INVALID_ARGUMENT]
    assert failed.messages == ["idle_timeout_ns must be set to 0 for tables which do not support idle timeout"]
    entry.idle_timeout_ns = 0
    entry.time_since_last_hit.elapsed_ns = 1
    failed = primary.refused("INSERT", entry)
    assert failed.codes == [Code.INVALID_ARGUMENT]
    assert failed.messages == ["has_time_since_last_hit must not be set in WriteRequest"]


# -- reading --------------------------------------------------------------------------------------------------


@pytest.fixture
def filled(embedded_primary: Controller) -> list[p4r.TableEntry]:
    """On the embedded switch: simple_switch_grpc has no filters, and cannot read tables with initial entries."""
    primary = embedded_primary
    entries = [
        primary.entry("by_exact", {"a": 1, "b": 1}, "found_exact", 1),
        primary.entry("by_ternary", {"b": (1, 1)}, "found_ternary", 1, priority=10, controller_metadata=6),
        primary.entry("by_ternary", {"b": (1, 1)}, "NoAction", priority=11, controller_metadata=5),
        primary.entry("by_ternary", {"b": (2, 2)}, "found_ternary", 2, priority=11, metadata=b"x"),
        primary.entry("by_scoped", {"a": 1}, "found_scoped", 1),
    ]
    primary.insert(*entries)
    return entries


def test_reading_everything(embedded_primary: Controller, filled: list[p4r.TableEntry]) -> None:
    primary = embedded_primary
    found = primary.read(p4r.TableEntry())
    own = {primary.id("tables", name) for name in ("by_constant", "by_initial", "by_preset")}
    assert same([entry for entry in found if entry.table_id not in own], filled)
    assert len(found) == len(filled) + 7


def test_reading_by_filters(embedded_primary: Controller, filled: list[p4r.TableEntry]) -> None:
    primary = embedded_primary
    _, first, second, third, _ = filled
    table = primary.id("tables", "by_ternary")
    wanted = {
        "priority": (p4r.TableEntry(table_id=table, priority=11), [second, third]),
        "key": (primary.key("by_ternary", {"b": (1, 1)}, priority=10), [first]),
        "action": (primary.entry("by_ternary", {}, "NoAction"), [second]),
        "controller_metadata": (p4r.TableEntry(table_id=table, controller_metadata=6), [first]),
        "metadata": (p4r.TableEntry(table_id=table, metadata=b"x"), [third]),
        "nothing there": (p4r.TableEntry(table_id=table, priority=12), []),
    }
    found = {name: primary.read(request) for name, (request, _) in wanted.items()}
    for name, (_, expected) in wanted.items():
        assert same(found[name], expected), name


def test_reading_a_match_at_any_priority(embedded_primary: Controller) -> None:
    primary = embedded_primary
    entries = [
        primary.entry("by_ternary", {"b": (1, 1)}, "found_ternary", 1, priority=10),
        primary.entry("by_ternary", {"b": (1, 1)}, "found_ternary", 2, priority=11),
    ]
    primary.insert(*entries, primary.entry("by_ternary", {"b": (2, 2)}, "found_ternary", 3, priority=10))
    assert same(primary.read(primary.key("by_ternary", {"b": (1, 1)})), entries)


def test_reading_what_is_not_there(primary: Controller) -> None:
    assert primary.read(primary.key("by_exact", {"a": 200, "b": 1})) == []
    with pytest.raises(grpc.RpcError) as refused:
        primary.read(p4r.TableEntry(table_id=0x02ABCDEF))
    assert refused.value.code() is Code.INVALID_ARGUMENT


def test_reading_several_things_at_once(embedded_primary: Controller, filled: list[p4r.TableEntry]) -> None:
    primary = embedded_primary
    found = primary.read(primary.key("by_scoped"), primary.key("by_exact"), primary.default("by_keyless"))
    assert same(found, [filled[4], filled[0], primary.default("by_keyless", "found_keyless", 31)])
    assert primary.read() == []


def test_reading_all_default_entries(embedded_primary: Controller) -> None:
    found = embedded_primary.read(p4r.TableEntry(is_default_action=True))
    assert {entry.table_id for entry in found} == {t.preamble.id for t in embedded_primary.p4info.tables}
    assert all(entry.is_default_action and entry.HasField("action") for entry in found)


def test_large_tables_come_in_several_answers(primary: Controller) -> None:
    entries = [primary.entry("by_wide", {"wide": 1 << 100 | key}, "found_wide", key) for key in range(1000)]
    lpm = [primary.entry("by_lpm", {"address": (key << 8, 24)}, "found_lpm", key) for key in range(1000)]
    primary.insert(*entries)
    primary.insert(*lpm)
    assert same(primary.read(primary.key("by_wide"), primary.key("by_lpm")), entries + lpm)
    primary.write(*(update("DELETE", entry) for entry in entries))
    assert same(primary.read(primary.key("by_wide"), primary.key("by_lpm")), lpm)
