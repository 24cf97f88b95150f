"""Refused updates and reads: a row for each entity and operation, with the status code and words of the message.

The embedded switch follows the specification. Where simple_switch_grpc answers otherwise, the row has its code behind
ours. Rows of what it lacks or mistakes are played to the embedded switch alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from finsy.proto import p4r

from serene.embedded.p4runtime.tables import MAX_METADATA_BYTES
from tests.embedded.conftest import Target
from tests.embedded.p4rt_controller import (
    GONE,
    Code,
    Controller,
    but,
    clone_session,
    everything,
    multicast_group,
    number,
)  # fmt: skip
from tests.embedded.p4rt_probe import Probing
from tests.embedded.p4rt_programs import Profiled, Selecting

INVALID, ABSENT, THERE, DENIED = Code.INVALID_ARGUMENT, Code.NOT_FOUND, Code.ALREADY_EXISTS, Code.PERMISSION_DENIED
OUTSIDE, FULL, LACKING, UNKNOWN = Code.OUT_OF_RANGE, Code.RESOURCE_EXHAUSTED, Code.UNIMPLEMENTED, Code.UNKNOWN
TAKEN = Code.OK

# Operations; the entity; the code, or the embedded switch's and BMv2's; words of the embedded switch's message, which
# stands in < and >.
Row = tuple[Any, ...]


def table_entries(c: Probing) -> Iterator[Row]:
    c.insert(c.exact(1, 1))
    yield "INSERT", c.exact(1, 1, 4), THERE
    yield "MODIFY DELETE", c.exact(1, 2), ABSENT
    yield "DELETE", c.ternary(1, 1, priority=3), ABSENT
    yield "UNSPECIFIED", c.exact(1, 2), INVALID
    yield "INSERT READ", p4r.Entity(), (INVALID, UNKNOWN)
    yield "READ", p4r.TableEntry(table_id=0x02ABCDEF), INVALID
    yield "INSERT DELETE", c.default("by_exact", "found_exact", 1), INVALID
    default = c.default("by_exact", "found_exact", 1)
    default.match.extend(c.exact(1, 2).match)
    yield "MODIFY", default, INVALID
    yield "MODIFY", but(c.default("by_ternary", "found_ternary", 1), "priority", 1), INVALID
    yield "MODIFY", c.default("by_lpm", "found_lpm", 1), DENIED  # a constant default action
    yield "MODIFY", c.default("by_lpm"), DENIED
    yield "MODIFY", c.default("by_scoped", "found_scoped", 1), DENIED  # @tableonly
    yield "INSERT", c.entry("by_scoped", {"a": 1}, "no_scoped"), DENIED  # @defaultonly
    # The words of PI, which p4-guide's suite compares.
    timed = "<idle_timeout_ns must be set to 0 for tables which do not support idle timeout>"
    yield "INSERT", but(c.scoped(1, 1), "idle_timeout_ns", 1), INVALID, timed
    hit = but(c.scoped(1, 1), "time_since_last_hit.elapsed_ns", 1)
    yield "INSERT", hit, INVALID, "<has_time_since_last_hit must not be set in WriteRequest>"


def malformed_entries(c: Probing) -> Iterator[Row]:
    table, action = "ProbeIngress.by_exact", "ProbeIngress.found_exact"
    for path, value, *words in (
        ("match.0.exact.value", b"", table, "a", "empty"),
        ("match.0.exact.value", b"\x01\x63", table, "0x163", "8 bits"),
        ("action.action.params.0.value", b"\x01\0\0", action, "0x10000", "16 bits"),
        ("action.action.params.0.value", b"", action, "value", "empty"),
        ("match.1", GONE, table, "b", "exact"),
        ("match.1.field_id", 77, table, "77", "1 (a)", "2 (b)"),
        ("match.1.field_id", 1, table, "[1, 1]"),
        ("match.1.ternary", p4r.FieldMatch.Ternary(value=b"\1", mask=b"\1"), table, "exact", "ternary"),
        ("match.1.exact", GONE, table, "exact", "None"),
        ("priority", 3, table, "priority"),
        ("action", GONE, table, "action"),
        ("action", p4r.TableAction(), table, "action"),
        ("action.action_profile_member_id", 1, table, "action profile"),
        ("action.action.params.0", GONE, action, "1 (value)"),
        ("action.action.params.0.param_id", 9, action, "[9]", "1 (value)"),
        ("action.action.action_id", 0x01ABCDEF, table, str(0x01ABCDEF), "ProbeIngress.found_exact_twice"),
        ("table_id", 0x02ABCDEF, str(0x02ABCDEF), table),
        ("table_id", 0, "table 0", table),
        ("meter_config.cir", 1, table, "no direct meter"),
        ("idle_timeout_ns", 5, "idle_timeout_ns", "idle timeout"),
        ("time_since_last_hit.elapsed_ns", 0, "time_since_last_hit"),
    ):
        # BMv2 takes no bytes for 0.
        yield "INSERT", but(c.exact(1, 2), path, value), (INVALID, TAKEN if "empty" in words else INVALID), *words
    lpm, ternary, span = c.lpm(0x0A000000, 8), c.ternary(1, 1), c.entry(
        "by_range", {"c": (1, 2), "a": 1}, "found_range", 1, priority=1
    )  # fmt: skip
    for entry, value, length, message in (
        (lpm, 0, 0, "leave the field out"),
        (lpm, 0x0A000000, 33, "1 to 32"),
        (lpm, 0x0A000000, -1, "1 to 32"),
        (lpm, 0x0A000001, 24, "beyond its prefix"),
        (ternary, 0, 0, "leave the field out"),
        (ternary, 0x0103, 0x0101, "beyond its mask"),
        (ternary, 1, 0x1FFFF, "16 bits"),
        (span, 20, 10, "is empty"),
        (span, 0, 0x1000, "12 bits"),
    ):
        kind = str(entry.match[0].WhichOneof("field_match_type"))
        first, second = {"lpm": ("value", "prefix_len"), "range": ("low", "high")}.get(kind, ("value", "mask"))
        changed = but(entry, f"match.0.{kind}.{first}", number(value))
        changed = but(changed, f"match.0.{kind}.{second}", length if kind == "lpm" else number(length))
        yield "INSERT", changed, INVALID, message
    whole = c.entry("by_range", {"c": (0, 0xFFF), "a": 1}, "found_range", 1, priority=1)
    yield "INSERT", whole, (INVALID, TAKEN), "leave the field out"
    for entry in (ternary, span):
        yield "INSERT", but(entry, "priority", 0), INVALID, "priority above 0"
    yield "INSERT", but(ternary, "priority", -1), (INVALID, UNKNOWN), "priority above 0"


def state(c: Probing) -> Iterator[Row]:
    yield "MODIFY READ", c.counter("seen", -1, packet_count=1), INVALID
    yield "MODIFY READ", c.counter("seen", 8, packet_count=1), (OUTSIDE, UNKNOWN), "ProbeIngress.seen", "0 to 7"
    yield "INSERT", but(c.digest(max_list_size=5), "digest_id", 0x17ABCDEF), (INVALID, ABSENT)
    for id_ in (0, 1 << 15):
        yield "INSERT", clone_session(id_, (1, 1)), INVALID
    yield "INSERT", clone_session(10, (1, 1), class_of_service=2), LACKING


# -- on the embedded switch alone -------------------------------------------------------------------------------------


def table_entries_of_ours(c: Probing) -> Iterator[Row]:
    c.insert(c.exact(1, 1), c.lpm(0x0A000000, 8), c.scoped(1, 1))
    yield "INSERT", c.entry("by_keyless", {}, "found_keyless", 33), INVALID, "ProbeIngress.by_keyless"
    yield "INSERT MODIFY DELETE", c.exact(1, 2, is_const=True), INVALID
    constant, table = c.key("by_constant", {"b": (1, 0xFFFF)}, priority=3), "ProbeIngress.by_constant"
    yield "INSERT", c.entry("by_constant", {"b": (7, 7)}, "found_constant", 1, priority=9), DENIED, table
    yield "MODIFY", but(constant, "action", c.action("found_constant", 11)), DENIED, table
    yield "DELETE", constant, DENIED, table
    size = MAX_METADATA_BYTES + 1
    message = f"metadata of {size} bytes; an entry has {MAX_METADATA_BYTES}"
    yield "INSERT", c.exact(1, 2, metadata=bytes(size)), INVALID, message
    yield "MODIFY", c.exact(1, 1, metadata=bytes(size)), INVALID, message
    yield "MODIFY", but(c.lpm(0x0A000000, 8, 4), "counter_data.packet_count", 1), INVALID  # this table has no counter
    yield "INSERT", but(c.lpm(0x0B000000, 8, 4), "counter_data.packet_count", 1), INVALID
    yield "INSERT", c.entry("by_idle", {"a": 9}, "found_idle", 1, idle_timeout_ns=-1), INVALID
    yield "READ", but(c.key("by_exact"), "time_since_last_hit.elapsed_ns", 0), INVALID, "has no idle timeouts"
    yield "INSERT", p4r.Entity(extern_entry=p4r.ExternEntry()), LACKING, "extern_entry"
    for kind in (p4r.ActionProfileMember, p4r.ActionProfileGroup):
        yield "READ", kind(action_profile_id=1), INVALID
    yield "READ", p4r.ValueSetEntry(value_set_id=1), INVALID
    absent = c.direct_counter(c.exact(1, 2), packet_count=1)
    yield "MODIFY READ", absent, ABSENT
    yield "INSERT DELETE", absent, INVALID
    yield "MODIFY READ", c.direct_counter(c.scoped(1), packet_count=1), INVALID, "ProbeIngress.by_scoped"
    yield "MODIFY", p4r.DirectMeterEntry(table_entry=c.key("by_exact")), INVALID


def state_of_ours(c: Probing) -> Iterator[Row]:
    unknown = p4r.CounterEntry(counter_id=0x12ABCDEF)
    yield "MODIFY READ", unknown, INVALID, "ProbeIngress.other_counter"
    yield "MODIFY", p4r.CounterEntry(counter_id=c.id("direct_counters", "exact_hits")), INVALID
    yield "INSERT DELETE", c.counter("seen", 0, packet_count=1), INVALID
    yield "MODIFY", c.counter("seen", 0, packet_count=-1), INVALID
    slow = p4r.MeterConfig(cir=0, cburst=1, pir=0, pburst=2)
    for config in (p4r.MeterConfig(cir=-1), p4r.MeterConfig(cir=2, pir=1), p4r.MeterConfig(eburst=1)):
        yield "MODIFY", c.meter(0, config), INVALID
        yield "INSERT", c.entry("by_metered", {"a": 1}, "found_metered", 1, meter_config=config), INVALID
    yield "MODIFY", c.meter(4, slow), OUTSIDE
    yield "MODIFY", c.meter(-1, slow), INVALID
    yield "INSERT", c.meter(0, slow), INVALID
    yield "READ", p4r.MeterEntry(meter_id=5), INVALID
    yield "MODIFY READ", but(c.meter(0, slow), "counter_data", p4r.MeterCounterData()), LACKING
    for index, value, code in ((4, b"\1", OUTSIDE), (0, number(1 << 48), INVALID)):
        yield "MODIFY", c.register(index, value), code
    yield "READ", c.register(4), OUTSIDE
    yield "INSERT", c.register(0, b"\1"), INVALID
    yield "MODIFY", c.register(), INVALID
    yield "MODIFY", p4r.RegisterEntry(register_id=99), INVALID
    for name in ("max_timeout_ns", "max_list_size", "ack_timeout_ns"):
        yield "INSERT", c.digest(**{name: -1}), INVALID, "learned_t"


def replication_of_ours(c: Probing) -> Iterator[Row]:
    for id_ in (0, 1 << 20):
        yield "INSERT", multicast_group(id_, (1, 1)), INVALID, "expected 1 to"
    for replicas, words in (
        (((1, 1), (1, 1)), "two replicas"),
        (((512, 1),), "port 512"),
        (((1, 1 << 16),), "16 bits"),
    ):
        yield "INSERT", multicast_group(8, *replicas), INVALID, words
    for fields, code, words in (
        ({"instance": 1}, INVALID, "no port"),
        ({"port": b"", "instance": 1}, INVALID, "empty"),
        ({"port": b"\x01" * 5, "instance": 1}, INVALID, "32 bits"),
        ({"port": b"\x01", "backup_replicas": [p4r.BackupReplica(port=b"\x02")]}, LACKING, "backup"),
    ):
        yield "INSERT", multicast_group(8, **fields), code, words
    yield "INSERT", p4r.PacketReplicationEngineEntry(), INVALID, "multicast group or a clone session"
    yield "INSERT", clone_session(9, (1, 1), packet_length_bytes=-1), INVALID


def check(controller: Controller, rows: Iterable[Row], *, bmv2: bool = False) -> None:
    wrong, rows = [], list(rows)  # the entities that rows need are inserted by now
    before = None if bmv2 else everything(controller)
    for operations, entity, codes, *words in rows:
        for operation in operations.split():
            code, message = controller.outcome(operation, entity)
            expected = codes[bmv2] if isinstance(codes, tuple) else codes
            if code is not expected or not (bmv2 or all(word in f"<{message}>" for word in words)):
                wrong.append(f"{operation} {entity}: {code.name} {message}; expected {expected.name} {words}")
            if code is TAKEN and operation == "INSERT":
                controller.delete(entity)
    assert not wrong, "\n".join(wrong)
    assert bmv2 or everything(controller) == before, "what is refused changes nothing"


@pytest.mark.parametrize("rows", [table_entries, malformed_entries, state])
def test_bad_updates_and_reads_are_refused(
    target: Target, primary: Probing, rows: Callable[[Probing], Iterator[Row]]
) -> None:
    check(primary, rows(primary), bmv2=target.name == "bmv2")


@pytest.mark.parametrize("rows", [table_entries_of_ours, state_of_ours, replication_of_ours])
def test_bad_updates_and_reads_are_refused_by_the_embedded_switch(
    ours: Probing, rows: Callable[[Probing], Iterator[Row]]
) -> None:
    check(ours, rows(ours))


# -- action profiles and value sets -----------------------------------------------------------------------------------


def members_and_groups(c: Profiled) -> Iterator[Row]:
    c.insert(c.member("spreader", 1, "second", 1), *(c.member("members", id_, "nothing") for id_ in (1, 2, 3)))
    yield "INSERT", c.member("spreader", 1, "second", 2), THERE
    yield "MODIFY", c.member("spreader", 2, "second", 2), ABSENT
    yield "DELETE", c.member("spreader", 2), ABSENT
    yield "INSERT", c.member("spreader", 0, "second", 2), INVALID
    yield "INSERT", c.member("spreader", 3), INVALID
    yield "INSERT", c.member("members", 4, "second", 1), INVALID
    yield "INSERT", but(c.member("members", 4, "first", 1), "action.params.0.value", number(1 << 16)), INVALID
    yield "INSERT", p4r.ActionProfileMember(action_profile_id=99, member_id=1), INVALID
    yield "INSERT", c.group(1, (1, 1), profile="members"), INVALID
    yield "INSERT", c.group(1, (1, 1), (1, 1)), INVALID
    yield "INSERT", c.group(1, (1, 0)), INVALID
    yield "INSERT", but(c.group(9, (1, 1)), "max_size", -1), INVALID
    yield "INSERT", c.group(1, (1, 2**31 - 1)), FULL
    yield "INSERT", c.group(1, (8, 1)), ABSENT
    yield "INSERT", but(c.group(9, (1, 1)), "members.0.watch", 3), LACKING
    for chosen in ("member", "group"):
        yield "INSERT", c.indirect("by_group", 1, **{chosen: 8}), ABSENT
    yield "INSERT", c.one_shot(1, ("second", 5, 1)), INVALID  # not beside members
    yield "INSERT", but(c.indirect("by_member", 1), "action", c.action("first", 1)), INVALID


def a_full_profile(c: Profiled) -> Iterator[Row]:
    c.insert(*(c.member("members", id_, "nothing") for id_ in (1, 2, 3, 4)))
    yield "INSERT", c.member("members", 5, "nothing"), FULL


def one_shots(c: Profiled) -> Iterator[Row]:
    """Refused whole: at the end all eight places are free."""
    pair, of = c.one_shot(1, ("second", 1, 1), ("second", 2, 1)), "action.action_profile_action_set"
    second = f"{of}.action_profile_actions.1"
    newer = but(pair, "priority", 0)
    newer.action.action_profile_action_set.MergeFromString(b"\x22\x00")  # field 4, an empty message
    yield "INSERT", but(pair, f"{second}.action.action_id", 99), INVALID
    yield "INSERT", but(pair, f"{second}.action.params.0.value", number(1 << 16)), INVALID
    yield "INSERT", but(pair, f"{second}.watch_port", b"\1"), LACKING
    yield "INSERT", but(pair, f"{of}.action_selection_mode", p4r.ActionProfileActionSet.RANDOM), LACKING
    yield "INSERT", but(pair, f"{of}.size_semantics", p4r.ActionProfileActionSet.SUM_OF_MEMBERS), LACKING
    yield "INSERT", newer, LACKING
    for weight, code in ((0, INVALID), (-1, INVALID), (2**31 - 1, FULL)):
        yield "INSERT", c.one_shot(1, ("second", 1, weight)), code
    yield "INSERT", c.one_shot(1, ("first", 1, 1), table="by_member"), INVALID
    yield "INSERT", c.one_shot(1, *[("second", 1, 1)] * 9), FULL


def value_sets(c: Selecting) -> Iterator[Row]:
    c.modify(c.members("kinds", (7,)))
    yield "INSERT", c.members("kinds", (1,)), INVALID
    yield "DELETE", c.members("kinds"), INVALID
    yield "MODIFY", c.members("kinds", (1 << 16,)), INVALID
    yield "MODIFY", c.members("kinds", (1, 2)), INVALID
    yield "MODIFY", c.members("kinds", (1,), (1,)), THERE
    yield "MODIFY", p4r.ValueSetEntry(value_set_id=9), INVALID
    yield "MODIFY", c.members("kinds", *((kind,) for kind in range(5))), FULL
    yield "MODIFY", but(c.members("kinds", (1,)), "members.0.match.0.ternary.mask", b"\1"), LACKING


@pytest.mark.parametrize(
    ("program", "rows"),
    [(Profiled, members_and_groups), (Profiled, a_full_profile), (Profiled, one_shots), (Selecting, value_sets)],
)
def test_bad_updates_of_other_programs_are_refused(
    embedded: Target, program: Callable[[Target], Any], rows: Callable[[Any], Iterator[Row]]
) -> None:
    with program(embedded) as controller:
        check(controller, rows(controller))
        if rows is one_shots:
            controller.insert(*(controller.one_shot(key, ("second", key, 1)) for key in range(1, 9)))
            assert controller.code("INSERT", controller.one_shot(9, ("second", 9, 1))) is FULL
            controller.delete(controller.indirect("by_group", 3))
            controller.modify(controller.one_shot(4, ("second", 40, 1)))
            assert [controller.send(spread=key)[1] for key in range(1, 9)] == [1, 2, 0, 40, 5, 6, 7, 8]
            assert controller.code("INSERT", controller.indirect("by_group", 3, member=1)) is INVALID
        if rows is value_sets:
            assert [controller.found(kind=kind) for kind in (1, 7)] == [0, 1]
