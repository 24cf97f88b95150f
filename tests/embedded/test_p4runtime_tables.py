"""Table entries: every kind of match; default and constant entries, idle timeouts, reads with filters."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from finsy.proto import p4r

from serene.embedded import Exact, Switch
from serene.embedded.p4runtime.idle import IdleTimeouts
from serene.embedded.p4runtime.parts import MESSAGE_ITEMS
from serene.embedded.p4runtime.tables import MAX_METADATA_BYTES
from tests.embedded.conftest import Target
from tests.embedded.p4rt_controller import Code, WriteFailed, but, number, ordered, refused, until
from tests.embedded.p4rt_probe import JSON, Probe, Probing

WIDE = 0xFEDC_BA98_7654_3210_0123_4567_89AB_CDEF


def ranged(c: Probing, low: int, high: int, a: int, found: int, priority: int) -> p4r.TableEntry:
    match = {"a": a} | ({"c": (low, high)} if (low, high) != (0, 0xFFF) else {})
    return c.entry("by_range", match, "found_range", found, priority=priority)


def optional(c: Probing, match: dict[str, int], found: int) -> p4r.TableEntry:
    return c.entry("by_optional", match, "found_optional", found, priority=found)


Found = dict[Probe, int]
# By table: entries; what packets find; and what they find when the first entry has gone.
MATCHES: dict[str, tuple[Callable[[Probing], list[p4r.TableEntry]], Found, Found]] = {
    "by_exact": (
        lambda c: [c.exact(1, 0x1234, 100), c.exact(2, 0x1234, 101)],
        {Probe(a=1, b=0x1234): 100, Probe(a=2, b=0x1234): 101, Probe(a=3, b=0x1234): 9},
        {Probe(a=1, b=0x1234): 9, Probe(a=2, b=0x1234): 101},
    ),
    "by_lpm": (
        lambda c: [c.lpm(0x0A010000, 16, 3), c.lpm(0, 0, 1), c.lpm(0x0A000000, 8, 2), c.lpm(0x0A010203, 32, 4)],
        {Probe(address=a): n for a, n in ((0x0B000000, 1), (0x0A020304, 2), (0x0A010204, 3), (0x0A010203, 4))},
        {Probe(address=0x0A010204): 2},
    ),
    "by_ternary": (
        lambda c: [
            c.ternary(0x1200, 0xFF00, 2, 30),
            c.ternary(0, 0, 1, 1),
            c.ternary(0x1234, 0xFFFF, 3, 20),
            c.ternary(0x1234, 0xFFFF, 5, 10),  # the same match with another priority is another entry
            c.entry("by_ternary", {"b": (0x1234, 0xFFFF), "c": (8, 8)}, "found_ternary", 4, priority=40),
        ],
        {Probe(b=0): 1, Probe(b=0x1234): 2, Probe(b=0x1234, c=0xF): 4},
        {Probe(b=0x1234): 3, Probe(b=0x1235): 1},
    ),
    "by_range": (
        lambda c: [
            ranged(c, 20, 0xFFE, 1, 2, 2), ranged(c, 10, 20, 1, 1, 1), ranged(c, 0, 0xFFF, 2, 3, 1),
        ],
        {
            Probe(a=1, c=9): 0, Probe(a=1, c=10): 1, Probe(a=1, c=19): 1, Probe(a=1, c=20): 2, Probe(a=1, c=0xFFE): 2,
            Probe(a=1, c=0xFFF): 0, Probe(a=2, c=0): 3,
        },
        {Probe(a=1, c=20): 1, Probe(a=1, c=21): 0},
    ),
    "by_optional": (
        lambda c: [optional(c, {}, 3), optional(c, {"b": 7}, 1), optional(c, {"b": 7, "a": 3}, 2)],
        {Probe(b=7): 3, Probe(b=8): 3},
        {Probe(b=7): 1, Probe(b=7, a=3): 2, Probe(b=8): 0},
    ),
    "by_wide": (
        lambda c: [c.entry("by_wide", {"wide": key}, "found_wide", n) for n, key in ((5, WIDE), (6, WIDE >> 64))],
        {Probe(wide=WIDE): 5, Probe(wide=WIDE >> 64): 6, Probe(): 0},
        {Probe(wide=WIDE): 0, Probe(wide=WIDE >> 64): 6},
    ),
}  # fmt: skip


@pytest.mark.parametrize("table", MATCHES)
def test_each_match_kind_is_written_read_and_matched(target: Target, primary: Probing, table: str) -> None:
    """Read back as written, found by packets, modified, and deleted by their keys alone."""
    make, found, left = MATCHES[table]
    first, *others = make(primary)
    primary.insert(first, *others)
    expected = [first, *others]
    if (target.name, table) == ("bmv2", "by_range"):  # it gives back what was left out
        expected[-1] = but(expected[-1], "priority", 1)
        expected[-1].match.insert(0, primary.key("by_range", {"c": (0, 0xFFF)}).match[0])
    assert ordered(primary.read(primary.key(table))) == ordered(expected)
    assert primary.found(table, *found) == list(found.values())
    assert primary.code("INSERT", first) is Code.ALREADY_EXISTS
    primary.modify(but(first, "action.action.params.0.value", number(999)))
    before = found | {probe: 999 for probe in found if found[probe] == int.from_bytes(_value(first), "big")}
    assert primary.found(table, *before) == list(before.values())
    primary.delete(but(but(first, "action.action.action_id", 0x01ABCDEF), "idle_timeout_ns", 5))
    assert primary.found(table, *left) == list(left.values())
    assert primary.code("DELETE", first) is Code.NOT_FOUND


def _value(entry: p4r.TableEntry) -> bytes:
    return bytes(entry.action.action.params[0].value)


def test_padded_numbers_are_accepted_and_read_without_padding(primary: Probing) -> None:
    entry = primary.exact(1, 2)
    padded = but(but(entry, "match.1.exact.value", number(2, 9)), "action.action.params.0.value", number(3, 2))
    primary.insert(padded)
    assert primary.read(primary.key("by_exact")) == [entry]
    assert primary.send(Probe(a=1, b=2)).by_exact == 3
    assert primary.code("INSERT", entry) is Code.ALREADY_EXISTS
    primary.delete(padded)


def test_full_table_refuses_an_insert(target: Target, primary: Probing) -> None:
    entries = [primary.exact(1, b) for b in range(4)]
    primary.insert(*entries)
    code, message = primary.outcome("INSERT", primary.exact(1, 4))
    assert code is (Code.RESOURCE_EXHAUSTED if target.name == "embedded" else Code.UNKNOWN)
    assert target.name == "bmv2" or "full (4 entries)" in message
    assert ordered(primary.read(primary.key("by_exact"))) == ordered(entries)
    primary.delete(entries[0])
    primary.insert(primary.exact(1, 4))


def test_bad_update_does_not_stop_the_others_of_its_batch(primary: Probing) -> None:
    good = [primary.scoped(a, a) for a in range(3)]
    with pytest.raises(WriteFailed) as caught:
        primary.insert(good[0], good[0], good[1], primary.scoped(7), good[2])
    failed = caught.value
    assert failed.code is Code.UNKNOWN
    assert failed.codes == [Code.OK, Code.ALREADY_EXISTS, Code.OK, Code.INVALID_ARGUMENT, Code.OK]
    assert (failed.status.code, failed.status.message) == (Code.UNKNOWN.value[0], failed.message)
    assert failed.messages[0] == failed.messages[2] == ""
    assert ordered(primary.read(primary.key("by_scoped"))) == ordered(good)
    for atomicity in ("ROLLBACK_ON_ERROR", "DATAPLANE_ATOMIC"):
        refused(Code.UNIMPLEMENTED, primary.write, atomicity=p4r.WriteRequest.Atomicity.Value(atomicity))


def test_modify_without_an_action_keeps_the_action(ours: Probing) -> None:
    """simple_switch_grpc refuses such an update."""
    ours.insert(ours.exact(1, 2))
    ours.modify(ours.key("by_exact", {"a": 1, "b": 2}))
    assert ours.read(ours.key("by_exact")) == [ours.exact(1, 2)]


def test_entry_metadata_is_kept_and_replaced(primary: Probing) -> None:
    for write, entry in (
        (primary.insert, primary.exact(1, 2, controller_metadata=0xC0FFEE, metadata=bytes(MAX_METADATA_BYTES))),
        (primary.modify, primary.exact(1, 2, controller_metadata=5)),
    ):
        write(entry)
        assert primary.read(primary.key("by_exact")) == [entry]


# -- default entries ------------------------------------------------------------------------------------------


def test_default_entries_are_modified_and_reset(primary: Probing) -> None:
    """A table without a key has no others."""
    original, changed = (
        primary.default("by_exact", "found_exact", 9),
        primary.default("by_exact", "found_exact_twice", 20, 1),
    )
    for write, read, found in ((None, original, 9), (changed, changed, 21), (primary.default("by_exact"), original, 9)):
        if write is not None:
            primary.modify(write, primary.default("by_keyless", "found_keyless", found))
        assert primary.read(primary.default("by_exact")) == [read]
        probe = primary.send(Probe(a=9))
        assert (probe.by_exact, probe.by_keyless) == (found, found if write is not None else 31)


# -- entries of the program's own -----------------------------------------------------------------------------


def test_constant_entries_match_and_are_read(target: Target, primary: Probing) -> None:
    assert primary.found("by_constant", *(Probe(b=b) for b in (1, 2, 3, 4))) == [11, 12, 12, 13]
    if target.name == "bmv2":  # its P4Runtime does not see them
        return
    expected = [
        primary.entry("by_constant", match, "found_constant", found, priority=priority, is_const=True)
        for match, found, priority in (({"b": (1, 0xFFFF)}, 11, 3), ({"b": (2, 0xFFFE)}, 12, 2), ({}, 13, 1))
    ]
    assert ordered(primary.read(primary.key("by_constant"))) == ordered(expected)
    assert primary.read(primary.key("by_constant", {"b": (2, 0xFFFE)}, priority=2)) == [expected[1]]
    # Their counters may be written, and so may the default action.
    entry = but(primary.key("by_constant", {"b": (1, 0xFFFF)}, priority=3), "counter_data.packet_count", 44)
    primary.modify(entry, primary.default("by_constant", "found_constant", 5))
    assert primary.read_one(entry).counter_data.packet_count == 44


def test_initial_entries_can_be_changed(target: Target, primary: Probing) -> None:
    probes = [Probe(a=a) for a in (1, 2, 3)]
    assert primary.found("by_initial", *probes) == [21, 22, 0]
    one, two, three = (
        primary.entry("by_initial", {"a": a}, "found_initial", found) for a, found in ((1, 21), (2, 22), (3, 600))
    )
    if target.name == "bmv2":  # its P4Runtime does not see the initial entries
        assert primary.code("MODIFY", one) is primary.code("DELETE", one) is Code.NOT_FOUND
        assert primary.code("INSERT", one) is Code.UNKNOWN
        return
    assert ordered(primary.read(primary.key("by_initial"))) == ordered([one, two])
    assert primary.code("INSERT", one) is Code.ALREADY_EXISTS
    primary.modify(primary.entry("by_initial", {"a": 1}, "found_initial", 500))
    primary.delete(two)
    primary.insert(three)
    assert primary.found("by_initial", *probes) == [500, 0, 600]


def test_initial_entry_ignores_masked_bits_of_its_key(ours: Probing) -> None:
    """p4c writes a key as in the program, `0x134 &&& 0xff00`, and its mask beside it."""
    written = JSON.read_text().replace('"0x0100"', '"0x0134"')
    assert written != JSON.read_text()
    ours.push(written.encode())
    entry = ours.entry("by_preset", {"b": (0x100, 0xFF00)}, "found_preset", 41, priority=2)
    assert list(entry.match) in [list(found.match) for found in ours.read(ours.key("by_preset"))]
    assert ours.code("INSERT", entry) is Code.ALREADY_EXISTS
    ours.delete(entry)
    ours.insert(entry)


def test_initial_entries_have_low_priorities(ours: Probing) -> None:
    """BMv2's JSON keeps only their order. Priorities count from 1 upwards, so that controllers can exceed them."""
    low, high = sorted(ours.read(ours.key("by_preset")), key=lambda entry: int(entry.priority))
    assert [(each.priority, _value(each)) for each in (low, high)] == [(1, b"\x2a"), (2, b"\x29")]
    assert ours.send(Probe(b=0x115)).by_preset == 41
    ours.delete(low)  # p4c made the table no larger than its entries
    ours.insert(ours.entry("by_preset", {"b": (0x115, 0xFFFF)}, "found_preset", 43, priority=3))
    assert ours.send(Probe(b=0x115)).by_preset == 43


# -- idle timeouts --------------------------------------------------------------------------------------------


def test_idle_notifications_repeat_until_hit_or_delete(ours: Probing) -> None:
    """Only for entries that no packet hits, until they are deleted; the time since the last hit can be read."""
    timeout_ns = 100_000_000
    idle = ours.entry("by_idle", {"a": 1}, "found_idle", 1, idle_timeout_ns=timeout_ns, metadata=b"m")
    never = ours.entry("by_idle", {"a": 2}, "found_idle", 2)
    ours.insert(idle, never)
    for _ in range(2):
        (notified,) = ours.messages.receive("idle_timeout_notification").table_entry
        assert (notified.table_id, notified.match, notified.metadata) == (idle.table_id, idle.match, b"m")
        assert notified.idle_timeout_ns == timeout_ns
    wanted = but(ours.key("by_idle"), "time_since_last_hit.elapsed_ns", 0)

    def read() -> dict[bytes, p4r.TableEntry]:
        return {entry.match[0].exact.value: entry for entry in ours.read(wanted)}

    found = read()
    assert (found[b"\1"].idle_timeout_ns, found[b"\2"].idle_timeout_ns) == (timeout_ns, 0)
    before = found[b"\1"].time_since_last_hit.elapsed_ns
    assert before >= 2 * timeout_ns
    ours.packet_out(Probe(a=1), port=3)  # which leads nowhere
    until(lambda: read()[b"\1"].time_since_last_hit.elapsed_ns < before, "the packet has hit the entry")
    ours.delete(idle)
    ours.packet_out(Probe(b=77))
    while ours.messages.next_message().WhichOneof("update") != "packet":
        pass  # what was under way
    ours.modify(but(never, "idle_timeout_ns", timeout_ns))
    for _ in range(3):  # the deleted entry would be reported as often
        assert ours.messages.receive("idle_timeout_notification").table_entry[0].match == never.match
    ours.delete(never)  # or the next test's controller is notified


def test_idle_timeout_restarts_on_hit_and_on_notification(monkeypatch: pytest.MonkeyPatch) -> None:
    table, now, received = "ProbeIngress.by_idle", 1_000, list[p4r.StreamMessageResponse]()

    def deliver(message: p4r.StreamMessageResponse) -> bool:
        received.append(message)
        return True

    def notices(at: int) -> int:
        nonlocal now
        now = at
        idle.send_due()
        return len(received)

    clock = SimpleNamespace(monotonic_ns=lambda: now, time_ns=time.time_ns)
    monkeypatch.setattr("serene.embedded.p4runtime.idle.time", clock)  # there alone: threads go by the real one
    with Switch.load(JSON) as switch:
        idle = IdleTimeouts(switch, deliver)
        handle = switch.table_add(table, [Exact(1)], "ProbeIngress.found_idle", [5])
        idle.set(table, handle, p4r.TableEntry(idle_timeout_ns=100), new=True)
        assert notices(1_099) == 0
        switch.process(1, Probe(a=1).frame())
        assert [notices(at) for at in (1_150, 1_249, 1_250, 1_251, 1_349, 1_350)] == [0, 0, 1, 1, 1, 2]
        idle.set(table, handle, p4r.TableEntry(), new=True)
        received.clear()
        for number_ in range(600):  # in messages that every client takes: gRPC's take 4 MiB in one
            metadata = bytes(700_000 if number_ < 5 else 1)
            entry = p4r.TableEntry(idle_timeout_ns=1, priority=number_ + 1, metadata=metadata)
            idle.set(table, handle + number_, entry, new=True)
        notices(2_000)
    messages = [message.idle_timeout_notification for message in received]
    assert [entry.priority for each in messages for entry in each.table_entry] == list(range(1, 601))
    assert all(
        each.timestamp and each.ByteSize() < 2 << 20 and len(each.table_entry) <= MESSAGE_ITEMS for each in messages
    )
    assert len(messages) < 12


# -- reading --------------------------------------------------------------------------------------------------


def test_reads_filter_entries_by_their_fields(ours: Probing) -> None:
    """On the embedded switch only: simple_switch_grpc has no filters, and cannot read tables with initial entries."""
    first, second, third = (
        ours.ternary(1, 1, 1, 10, controller_metadata=6),
        but(ours.ternary(1, 1, 1, 11, controller_metadata=5), "action", ours.action("NoAction")),
        ours.ternary(2, 2, 2, 11, metadata=b"x"),
    )
    exact, scoped = ours.exact(1, 1), ours.scoped(1, 1)
    filled = [exact, first, second, third, scoped]
    ours.insert(*filled)
    table = ours.id("tables", "by_ternary")
    for wanted, expected in (
        ([p4r.TableEntry(table_id=table, priority=11)], [second, third]),
        ([ours.key("by_ternary", {"b": (1, 1)}, priority=10)], [first]),
        ([ours.key("by_ternary", {"b": (1, 1)})], [first, second]),  # at any priority
        ([ours.entry("by_ternary", {}, "NoAction")], [second]),
        ([p4r.TableEntry(table_id=table, controller_metadata=6)], [first]),
        ([p4r.TableEntry(table_id=table, metadata=b"x")], [third]),
        ([p4r.TableEntry(table_id=table, priority=12)], []),
        ([ours.scoped(2)], []),
        (
            [ours.key("by_scoped"), ours.key("by_exact"), ours.default("by_keyless")],
            [scoped, exact, ours.default("by_keyless", "found_keyless", 31)],
        ),
        ([], []),
        # Of what no program has there is nothing, so that a controller can ask for everything.
        ([p4r.ActionProfileMember(), p4r.ActionProfileGroup(), p4r.ValueSetEntry(), p4r.ExternEntry()], []),
    ):
        assert ordered(ours.read(*wanted)) == ordered(expected), wanted
    whole = ours.read(p4r.TableEntry())
    own = {ours.id("tables", name) for name in ("by_constant", "by_initial", "by_preset")}
    assert ordered(entry for entry in whole if entry.table_id not in own) == ordered(filled)
    assert len(whole) == len(filled) + 7
    defaults = ours.read(p4r.TableEntry(is_default_action=True))
    assert {entry.table_id for entry in defaults} == {table.preamble.id for table in ours.p4info.tables}
    assert all(entry.is_default_action and entry.HasField("action") for entry in defaults)


def test_large_tables_are_read_in_several_responses(primary: Probing) -> None:
    wide = [primary.entry("by_wide", {"wide": 1 << 100 | key}, "found_wide", key) for key in range(1000)]
    lpm = [primary.lpm(key << 8, 24, key) for key in range(1000)]
    primary.insert(*wide, *lpm)
    both = primary.key("by_wide"), primary.key("by_lpm")
    assert ordered(primary.read(*both)) == ordered(wide + lpm)
    primary.delete(*wide)
    assert ordered(primary.read(*both)) == ordered(lpm)
