"""Table entries' keys: every match kind does what it says, and what is malformed is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from finsy.proto import p4r

from tests.switch.conftest import Target
from tests.switch.p4rt_controller import Code, Controller, Stream, number, same
from tests.switch.p4rt_probe import Probe, send

# -- every match kind does what it says, and is read back as written ------------------------------------------


def test_exact(primary: Controller, stream: Stream) -> None:
    entry = primary.entry("by_exact", {"a": 1, "b": 0x1234}, "found_exact", 100)
    primary.insert(entry)
    assert primary.read(primary.key("by_exact")) == [entry]
    assert send(primary, stream, Probe(a=1, b=0x1234)).by_exact == 100
    assert send(primary, stream, Probe(a=2, b=0x1234)).by_exact == 9  # the default

    changed = primary.entry("by_exact", {"a": 1, "b": 0x1234}, "found_exact_twice", 200, 7)
    primary.modify(changed)
    assert primary.read(primary.key("by_exact")) == [changed]
    assert send(primary, stream, Probe(a=1, b=0x1234)).by_exact == 207

    primary.delete(primary.key("by_exact", {"a": 1, "b": 0x1234}))
    assert primary.read(primary.key("by_exact")) == []
    assert send(primary, stream, Probe(a=1, b=0x1234)).by_exact == 9


def test_lpm_takes_the_longest(primary: Controller, stream: Stream) -> None:
    entries = [
        primary.entry("by_lpm", {}, "found_lpm", 1),
        primary.entry("by_lpm", {"address": (0x0A000000, 8)}, "found_lpm", 2),
        primary.entry("by_lpm", {"address": (0x0A010000, 16)}, "found_lpm", 3),
        primary.entry("by_lpm", {"address": (0x0A010203, 32)}, "found_lpm", 4),
    ]
    primary.insert(*entries)
    assert same(primary.read(primary.key("by_lpm")), entries)
    found = [send(primary, stream, Probe(address=a)).by_lpm for a in (0x0B000000, 0x0A020304, 0x0A010204, 0x0A010203)]
    assert found == [1, 2, 3, 4]
    primary.delete(entries[2])
    assert send(primary, stream, Probe(address=0x0A010204)).by_lpm == 2


def test_ternary_takes_the_largest_priority(primary: Controller, stream: Stream) -> None:
    entries = [
        primary.entry("by_ternary", {}, "found_ternary", 1, priority=1),
        primary.entry("by_ternary", {"b": (0x1200, 0xFF00)}, "found_ternary", 2, priority=30),
        primary.entry("by_ternary", {"b": (0x1234, 0xFFFF)}, "found_ternary", 3, priority=20),
        primary.entry("by_ternary", {"b": (0x1234, 0xFFFF), "c": (8, 8)}, "found_ternary", 4, priority=40),
    ]
    primary.insert(*entries)
    assert same(primary.read(primary.key("by_ternary")), entries)
    probes = (Probe(b=0), Probe(b=0x1234), Probe(b=0x1234, c=0xF))
    assert [send(primary, stream, probe).by_ternary for probe in probes] == [1, 2, 4]
    primary.delete(entries[1])
    assert send(primary, stream, Probe(b=0x1234)).by_ternary == 3


def test_the_same_match_with_two_priorities_is_two_entries(primary: Controller, stream: Stream) -> None:
    for priority in (5, 6):
        primary.insert(primary.entry("by_ternary", {"b": (1, 1)}, "found_ternary", priority, priority=priority))
    assert send(primary, stream, Probe(b=1)).by_ternary == 6
    primary.delete(primary.key("by_ternary", {"b": (1, 1)}, priority=6))
    assert send(primary, stream, Probe(b=1)).by_ternary == 5


def test_range(target: Target, primary: Controller, stream: Stream) -> None:
    entries = [
        primary.entry("by_range", {"c": (10, 20), "a": 1}, "found_range", 1, priority=1),
        primary.entry("by_range", {"c": (20, 0xFFF), "a": 1}, "found_range", 2, priority=2),
        primary.entry("by_range", {"a": 2}, "found_range", 3, priority=1),
    ]
    primary.insert(*entries)
    if target.name == "bmv2":  # it gives back what was left out
        entries[2].match.insert(0, primary.key("by_range", {"c": (0, 0xFFF)}).match[0])
    assert same(primary.read(primary.key("by_range")), entries)
    found = [send(primary, stream, Probe(a=1, c=c)).by_range for c in (9, 10, 19, 20, 0xFFF)]
    assert found == [0, 1, 1, 2, 2]
    assert send(primary, stream, Probe(a=2, c=0)).by_range == 3


def test_optional(primary: Controller, stream: Stream) -> None:
    entries = [
        primary.entry("by_optional", {"b": 7}, "found_optional", 1, priority=1),
        primary.entry("by_optional", {"b": 7, "a": 3}, "found_optional", 2, priority=2),
        primary.entry("by_optional", {}, "found_optional", 3, priority=3),
    ]
    primary.insert(*entries[:2])
    probes = (Probe(b=7), Probe(b=7, a=3), Probe(b=8))
    assert [send(primary, stream, probe).by_optional for probe in probes] == [1, 2, 0]
    primary.insert(entries[2])
    assert send(primary, stream, Probe(b=8)).by_optional == 3
    assert same(primary.read(primary.key("by_optional")), entries)


def test_wide_keys(primary: Controller, stream: Stream) -> None:
    wide = 0xFEDC_BA98_7654_3210_0123_4567_89AB_CDEF
    entries = [primary.entry("by_wide", {"wide": key}, "found_wide", 5 + i) for i, key in enumerate((wide, wide >> 64))]
    primary.insert(*entries)
    assert same(primary.read(primary.key("by_wide")), entries)
    assert [send(primary, stream, Probe(wide=key)).by_wide for key in (wide, wide >> 64, 0)] == [5, 6, 0]


# -- byte strings ---------------------------------------------------------------------------------------------


def test_padded_numbers_are_taken_and_given_back_without_padding(primary: Controller, stream: Stream) -> None:
    entry = primary.entry("by_exact", {"a": 1, "b": 2}, "found_exact", 3)
    padded = p4r.TableEntry()
    padded.CopyFrom(entry)
    padded.match[0].exact.value = number(1, 1)
    padded.match[1].exact.value = number(2, 9)
    padded.action.action.params[0].value = number(3, 2)
    primary.insert(padded)
    assert primary.read(primary.key("by_exact")) == [entry]
    assert send(primary, stream, Probe(a=1, b=2)).by_exact == 3
    assert primary.refused("INSERT", entry).codes == [Code.ALREADY_EXISTS]
    primary.delete(padded)


def _empty_key(entry: p4r.TableEntry) -> None:
    entry.match[0].exact.value = b""


def _wide_key(entry: p4r.TableEntry) -> None:
    entry.match[0].exact.value = b"\x01\x63"


def _wide_parameter(entry: p4r.TableEntry) -> None:
    entry.action.action.params[0].value = b"\x01\x00\x00"


def _empty_parameter(entry: p4r.TableEntry) -> None:
    entry.action.action.params[0].value = b""


def _missing_field(entry: p4r.TableEntry) -> None:
    del entry.match[1]


def _unknown_field(entry: p4r.TableEntry) -> None:
    entry.match[1].field_id = 77


def _repeated_field(entry: p4r.TableEntry) -> None:
    entry.match[1].field_id = 1


def _other_match_kind(entry: p4r.TableEntry) -> None:
    entry.match[1].ternary.value = entry.match[1].ternary.mask = b"\x01"


def _no_match_kind(entry: p4r.TableEntry) -> None:
    entry.match[1].ClearField("exact")


def _with_priority(entry: p4r.TableEntry) -> None:
    entry.priority = 3


def _no_action(entry: p4r.TableEntry) -> None:
    entry.ClearField("action")


def _empty_action(entry: p4r.TableEntry) -> None:
    entry.action.Clear()
    entry.action.SetInParent()


def _member(entry: p4r.TableEntry) -> None:
    entry.action.action_profile_member_id = 1


def _no_parameter(entry: p4r.TableEntry) -> None:
    del entry.action.action.params[0]


def _unknown_parameter(entry: p4r.TableEntry) -> None:
    entry.action.action.params[0].param_id = 9


def _unknown_action(entry: p4r.TableEntry) -> None:
    entry.action.action.action_id = 0x01ABCDEF


def _unknown_table(entry: p4r.TableEntry) -> None:
    entry.table_id = 0x02ABCDEF


def _no_table(entry: p4r.TableEntry) -> None:
    entry.table_id = 0


def _direct_meter(entry: p4r.TableEntry) -> None:
    entry.meter_config.cir = 1


def _idle_timeout(entry: p4r.TableEntry) -> None:
    entry.idle_timeout_ns = 5


def _time_since_hit(entry: p4r.TableEntry) -> None:
    entry.time_since_last_hit.SetInParent()


@pytest.mark.parametrize(
    ("change", "culprits"),
    [
        (_empty_key, ["ProbeIngress.by_exact", "a", "empty"]),
        (_wide_key, ["ProbeIngress.by_exact", "0x163", "8 bits"]),
        (_wide_parameter, ["ProbeIngress.found_exact", "0x10000", "16 bits"]),
        (_empty_parameter, ["ProbeIngress.found_exact", "value", "empty"]),
        (_missing_field, ["ProbeIngress.by_exact", "b", "exact"]),
        (_unknown_field, ["ProbeIngress.by_exact", "77", "1 (a)", "2 (b)"]),
        (_repeated_field, ["ProbeIngress.by_exact", "[1, 1]"]),
        (_other_match_kind, ["ProbeIngress.by_exact", "exact", "ternary"]),
        (_no_match_kind, ["ProbeIngress.by_exact", "exact", "None"]),
        (_with_priority, ["ProbeIngress.by_exact", "priority"]),
        (_no_action, ["ProbeIngress.by_exact", "action"]),
        (_empty_action, ["ProbeIngress.by_exact", "action"]),
        (_member, ["ProbeIngress.by_exact", "action profile"]),
        (_no_parameter, ["ProbeIngress.found_exact", "1 (value)"]),
        (_unknown_parameter, ["ProbeIngress.found_exact", "[9]", "1 (value)"]),
        (_unknown_action, ["ProbeIngress.by_exact", str(0x01ABCDEF), "ProbeIngress.found_exact_twice"]),
        (_unknown_table, [str(0x02ABCDEF), "ProbeIngress.by_exact"]),
        (_no_table, ["table 0", "ProbeIngress.by_exact"]),
        (_direct_meter, ["ProbeIngress.by_exact", "no direct meter"]),
        (_idle_timeout, ["idle_timeout_ns", "idle timeout"]),
        (_time_since_hit, ["time_since_last_hit"]),
    ],
    ids=lambda value: value.__name__.strip("_") if callable(value) else "",
)
def test_malformed_entries_are_invalid(
    target: Target, primary: Controller, change: Callable[[p4r.TableEntry], None], culprits: list[str]
) -> None:
    entry = primary.entry("by_exact", {"a": 1, "b": 2}, "found_exact", 3)
    change(entry)
    if target.name == "bmv2" and "empty" in culprits:  # which it takes for 0
        primary.insert(entry)
        assert len(primary.read(primary.key("by_exact"))) == 1
        return
    failed = primary.refused("INSERT", entry)
    assert failed.codes == [Code.INVALID_ARGUMENT]
    if target.name == "embedded":
        assert all(culprit in failed.messages[0] for culprit in culprits), failed.messages
    assert primary.read(primary.key("by_exact")) == []


def _lpm(value: int, length: int) -> Callable[[Controller], p4r.TableEntry]:
    return lambda c: c.entry("by_lpm", {"address": (value, length)}, "found_lpm", 1)


def _ternary(value: int, mask: int, priority: int = 1) -> Callable[[Controller], p4r.TableEntry]:
    return lambda c: c.entry("by_ternary", {"b": (value, mask)}, "found_ternary", 1, priority=priority)


def _range(low: int, high: int, priority: int = 1) -> Callable[[Controller], p4r.TableEntry]:
    return lambda c: c.entry("by_range", {"c": (low, high), "a": 1}, "found_range", 1, priority=priority)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_lpm(0, 0), "leave the field out"),
        (_lpm(0x0A000000, 33), "1 to 32"),
        (_lpm(0x0A000000, -1), "1 to 32"),
        (_lpm(0x0A000001, 24), "beyond its prefix"),
        (_ternary(0, 0), "leave the field out"),
        (_ternary(0x0103, 0x0101), "beyond its mask"),
        (_ternary(1, 0x1FFFF), "16 bits"),
        (_ternary(1, 1, priority=0), "priority above 0"),
        (_ternary(1, 1, priority=-1), "priority above 0"),
        (_range(20, 10), "is empty"),
        (_range(0, 0xFFF), "leave the field out"),
        (_range(0, 0x1000), "12 bits"),
        (_range(1, 2, priority=0), "priority above 0"),
    ],
    ids=[
        "lpm-0", "lpm-33", "lpm-negative", "lpm-bits", "ternary-0", "ternary-bits", "ternary-wide", "ternary-priority",
        "ternary-negative", "range-empty", "range-all", "range-wide", "range-priority",
    ],
)  # fmt: skip
def test_malformed_matches_are_invalid(
    target: Target, primary: Controller, make: Callable[[Controller], p4r.TableEntry], words: str
) -> None:
    entry = make(primary)
    if target.name == "bmv2" and entry == _range(0, 0xFFF)(primary):  # which it takes
        primary.insert(entry)
        return
    failed = primary.refused("INSERT", entry)
    negative = entry.priority < 0
    assert failed.codes == [target.either(Code.INVALID_ARGUMENT, Code.UNKNOWN if negative else Code.INVALID_ARGUMENT)]
    assert target.name == "bmv2" or words in failed.messages[0], failed.messages
