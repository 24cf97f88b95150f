"""Large tables compared with a linear scan: every kind of match, under random writes, with packets meanwhile."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pytest

from serene.embedded import Exact, Lpm, Match, Optional, Range, Switch, Ternary
from serene.embedded.control.types import DuplicateEntry
from tests.embedded.p4rt_controller import PATIENCE_S
from tests.embedded.p4rt_probe import TABLES, Probe, enlarged
from tests.embedded.sanitizers import loaded_flags

ENTRIES = 3000
MISSES = {"by_exact": 9}  # the default entry's answer; of the others 0


@dataclass(frozen=True)
class Entry:
    match: tuple[Match, ...]
    priority: int
    age: int
    found: int

    def matches(self, values: Sequence[int]) -> bool:
        return all(_matches(match, value) for match, value in zip(self.match, values, strict=True))

    @property
    def rank(self) -> tuple[int, int]:
        lengths = [match.prefix_len for match in self.match if isinstance(match, Lpm)]
        return sum(lengths) or self.priority, -self.age


def _matches(match: Match, value: int) -> bool:
    if isinstance(match, Exact):
        return value == match.value
    if isinstance(match, Lpm):
        return value >> (32 - match.prefix_len) == match.value >> (32 - match.prefix_len)
    if isinstance(match, Ternary):
        return value & match.mask == match.value
    if isinstance(match, Range):
        return match.low <= value <= match.high
    return match.value is None or value == match.value


class Model:
    """One table, compared with a scan of all its entries."""

    def __init__(self, switch: Switch, table: str, random_: random.Random, masks: int) -> None:
        self.switch, self.table, self.random = switch, table, random_
        self.entries: dict[int, Entry] = {}  # by handle
        self.handles: dict[tuple[tuple[Match, ...], int], int] = {}
        self.written = 0
        self.masks = [(random_.getrandbits(16), random_.getrandbits(12)) for _ in range(masks)]

    @property
    def name(self) -> str:
        return f"ProbeIngress.{self.table}"

    def values(self, probe: Probe) -> tuple[int, ...]:
        fields = {"by_exact": "ab", "by_ternary": "bc", "by_range": "ca", "by_optional": "ba"}
        return tuple(getattr(probe, field) for field in fields.get(self.table, ("address",)))

    def match(self) -> tuple[tuple[Match, ...], int]:
        """A match and a priority, many of them alike."""
        some, priority = self.random, self.random.randint(1, 40)
        if self.table == "by_exact":
            return (Exact(some.randrange(16)), Exact(some.randrange(512))), 0
        if self.table == "by_lpm":
            length = some.choice((0, 1, 8, 15, 16, 20, 24, 24, 24, 31, 32))
            return (Lpm(_address(some) >> (32 - length) << (32 - length), length),), 0
        if self.table == "by_ternary":
            keep = some.choice(self.masks)
            return (
                Ternary(some.getrandbits(16) & keep[0], keep[0]),
                Ternary(some.getrandbits(12) & keep[1], keep[1]),
            ), (priority)
        if self.table == "by_range":
            low = some.randrange(4096)
            high = some.choice((low, min(low + some.randrange(200), 4095), 4095))
            if some.random() < 0.05:
                low, high = 0, 4095
            return (Range(low, high), Exact(some.randrange(4))), priority
        return (
            Optional(some.choice((None, some.randrange(300)))),
            Optional(some.choice((None, some.randrange(16)))),
        ), priority

    def insert(self) -> None:
        match, priority = self.match()
        self.written += 1
        found = self.written % 0xFFFF or 1
        known = self.handles.get((match, priority))
        action = f"ProbeIngress.{self.table.replace('by', 'found')}"
        try:
            handle = self.switch.table_add(self.name, match, action, [found], priority)
        except DuplicateEntry:
            handle = known if known is not None else -1
        else:
            assert known is None
            assert handle not in self.entries
            self.entries[handle] = Entry(match, priority, self.written, found)
            self.handles[match, priority] = handle
        assert self.switch.table_find(self.name, match, priority) == handle

    def delete(self) -> None:
        handle = self.random.choice(list(self.entries))
        entry = self.entries.pop(handle)
        del self.handles[entry.match, entry.priority]
        self.switch.table_delete(self.name, handle)
        assert self.switch.table_find(self.name, entry.match, entry.priority) is None

    def modify(self) -> None:
        handle = self.random.choice(list(self.entries))
        self.written += 1
        found = self.written % 0xFFFF or 1
        self.switch.table_modify(self.name, handle, f"ProbeIngress.{self.table.replace('by', 'found')}", [found])
        self.entries[handle] = replace(self.entries[handle], found=found)

    def winner(self, probe: Probe) -> int:
        values = self.values(probe)
        matching = [entry for entry in self.entries.values() if entry.matches(values)]
        return max(matching, key=lambda entry: entry.rank).found if matching else MISSES.get(self.table, 0)

    def probes(self, count: int) -> list[Probe]:
        """Packets, half of which are made to match some entry."""
        some, probes = self.random, []
        for _ in range(count):
            probe = Probe(
                a=some.randrange(16), b=some.getrandbits(16) >> some.choice((0, 7)), c=some.getrandbits(12),
                address=_address(some), port=1,
            )  # fmt: skip
            if self.entries and self.table == "by_ternary" and some.random() < 0.5:
                b, c = some.choice(list(self.entries.values())).match
                assert isinstance(b, Ternary) and isinstance(c, Ternary)
                probe = replace(probe, b=probe.b & ~b.mask | b.value, c=probe.c & ~c.mask | c.value)
            probes.append(probe)
        return probes

    def check(self, count: int) -> None:
        probes = self.probes(count)
        outputs = self.switch.process_many([(1, probe.frame()) for probe in probes])
        found = [getattr(Probe.parse(packet), self.table) for ((_, packet),) in outputs]
        assert found == [self.winner(probe) for probe in probes]
        assert {row.handle for row in self.switch.table_rows(self.name)} == set(self.entries)


def _address(some: random.Random) -> int:
    """Of few networks, so that several prefixes match."""
    return some.choice((0, 0x0A000000, 0x0A010000, 0xC0A80000)) | some.getrandbits(16) & some.choice((0xFF, 0xFFFF))


@pytest.fixture
def switch() -> Iterator[Switch]:
    with Switch.load(enlarged(ENTRIES, *TABLES), compiler_flags=loaded_flags()) as switch:
        yield switch


@pytest.mark.parametrize(
    ("table", "masks"), [*((table, 12) for table in TABLES), ("by_ternary", 1), ("by_ternary", 2000)]
)
def test_large_table_lookup_matches_linear_scan(switch: Switch, table: str, masks: int) -> None:
    model = Model(switch, table, random.Random(f"{table} {masks}"), masks)
    for _ in range(1200):
        model.insert()
    model.check(200)
    for _ in range(4):
        for _ in range(250):
            kind = model.random.random()
            if kind < 0.45 or not model.entries:
                model.insert()
            elif kind < 0.9:
                model.delete()
            else:
                model.modify()
        model.check(100)
    while model.entries:
        model.delete()
    model.check(20)
    for _ in range(50):
        model.insert()
    model.check(50)


def test_packets_never_see_a_partial_table_write(switch: Switch) -> None:
    """An entry is replaced, modified and covered while packets pass. Each packet finds one of the complete states, and
    never a miss, because the entry below stays."""
    name, exact = "ProbeIngress.by_ternary", "ProbeIngress.by_exact"
    below = [Ternary(0, 0), Ternary(0, 0)]
    switch.table_add(name, below, "ProbeIngress.found_ternary", [1], 1)
    pair = switch.table_add(exact, [Exact(3), Exact(3)], "ProbeIngress.found_exact_twice", [0x1000, 1])
    stop = threading.Event()
    writes = 0

    def write() -> None:
        nonlocal writes
        some = random.Random(4)
        while not stop.is_set():
            mask = some.getrandbits(16)
            handle = switch.table_add(name, [Ternary(3 & mask, mask), below[1]], "ProbeIngress.found_ternary", [2], 9)
            others = [
                switch.table_add(
                    name, [Ternary(mask, 0xFFFF), Ternary(c, 0xFFF)], "ProbeIngress.found_ternary", [3], c + 9
                )
                for c in range(1, 20)
            ]
            switch.table_modify(name, handle, "ProbeIngress.found_ternary", [4])
            switch.table_modify(exact, pair, "ProbeIngress.found_exact", [0x2000])
            for one in (handle, *others):
                switch.table_delete(name, one)
            switch.table_modify(exact, pair, "ProbeIngress.found_exact_twice", [0x1000, 1])
            writes += 1

    writer = threading.Thread(target=write)
    writer.start()
    seen: set[tuple[int, int]] = set()
    try:
        packets = [(1, Probe(a=3, b=3, port=1).frame())] * 200
        until = time.monotonic() + PATIENCE_S
        while writes < 200 or len(seen) < 4:
            assert writer.is_alive() and time.monotonic() < until, (writes, seen)
            for ((_, packet),) in switch.process_many(packets):
                probe = Probe.parse(packet)
                seen.add((probe.by_ternary, probe.by_exact))
    finally:
        stop.set()
        writer.join()
    assert {ternary for ternary, _ in seen} <= {1, 2, 4}
    assert {exact for _, exact in seen} <= {0x1001, 0x2000}
