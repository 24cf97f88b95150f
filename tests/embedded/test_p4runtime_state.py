"""Counters, meters, registers, multicast groups and clone sessions: written, read, and at work on packets."""

from __future__ import annotations

import pytest
from finsy.proto import p4r

from tests.embedded.conftest import Target
from tests.embedded.p4rt_controller import Code, but, clone_session, multicast_group, number, ordered
from tests.embedded.p4rt_probe import CPU_PORT, SOURCE, Probe, Probing

FRAME_BYTES = 3 + len(Probe().frame())  # a packet-out's header counts too

# -- counters -------------------------------------------------------------------------------------------------


def test_counters_count_packets_and_bytes(primary: Probing) -> None:
    for a in (3, 3, 5):
        primary.send(Probe(a=a, digests=2))
    assert primary.counts(primary.counter("seen", 3)) == (2, 2 * FRAME_BYTES)
    seen = primary.read(primary.counter("seen"))
    assert [(entry.index.index, entry.data.packet_count) for entry in seen] == list(enumerate((0, 0, 0, 2, 0, 1, 0, 0)))
    everything = primary.read(p4r.CounterEntry())
    own = {primary.id("counters", name) for name in ("seen", "other_counter")}
    assert (len(everything), {entry.counter_id for entry in everything}) == (8 + 2, own)
    assert sum(entry.data.packet_count for entry in everything) == 6


def test_counter_cells_can_be_set(primary: Probing) -> None:
    primary.modify(primary.counter("seen", 1, packet_count=1000, byte_count=5000))
    primary.send(Probe(a=1))
    assert primary.counts(primary.counter("seen", 1)) == (1001, 5000 + FRAME_BYTES)
    most = (1 << 63) - 1
    primary.modify(primary.counter("seen", 0, packet_count=most, byte_count=most))
    assert primary.counts(primary.counter("seen", 0)) == (most, most)


def test_whole_counter_can_be_set(ours: Probing) -> None:
    ours.modify(ours.counter("seen", packet_count=4, byte_count=2), ours.counter("seen", 1))  # no data: nothing changes
    found = {(entry.data.packet_count, entry.data.byte_count) for entry in ours.read(ours.counter("seen"))}
    assert found == {(4, 2)}


def test_direct_counters_count_hits(primary: Probing) -> None:
    one, two = primary.exact(1, 1), primary.exact(2, 1)
    primary.insert(one, two)
    for a in (1, 1, 2):
        primary.send(Probe(a=a, b=1))
    assert primary.counts(primary.direct_counter(one)) == (2, 2 * FRAME_BYTES)
    found = primary.read(primary.direct_counter(primary.key("by_exact")))
    by_key = {entry.table_entry.match[0].exact.value: entry.data for entry in found}
    assert {key: (data.packet_count, data.byte_count) for key, data in by_key.items()} == {
        b"\1": (2, 2 * FRAME_BYTES), b"\2": (1, FRAME_BYTES),
    }  # fmt: skip
    wanted = primary.key("by_exact", {"a": 1, "b": 1})
    assert not primary.read_one(wanted).HasField("counter_data")
    assert primary.read_one(but(wanted, "counter_data.packet_count", 0)).counter_data == by_key[b"\1"]
    primary.delete(one)  # a new entry counts from zero
    primary.insert(one)
    assert primary.counts(primary.direct_counter(one)) == (0, 0)


def test_direct_counters_can_be_set(primary: Probing) -> None:
    entry = primary.exact(1, 1)
    counter = primary.direct_counter(entry)
    for write, written, counted in (
        (primary.insert, but(entry, "counter_data.packet_count", 10), (10, 0)),
        (primary.modify, primary.direct_counter(entry, packet_count=20, byte_count=30), (20, 30)),
        (primary.modify, entry, (20, 30)),  # without counter_data: it stays
        (primary.modify, but(entry, "counter_data.packet_count", 40), (40, 0)),
    ):
        write(written)
        assert primary.counts(counter) == counted


def test_misses_count_for_the_default_entry(ours: Probing) -> None:
    """simple_switch_grpc does not count them."""
    counter = ours.direct_counter(ours.default("by_exact"))
    ours.send(Probe(a=7))
    assert ours.counts(counter) == (1, FRAME_BYTES)
    ours.modify(ours.direct_counter(ours.default("by_exact"), packet_count=8))
    wanted = but(ours.default("by_exact"), "counter_data.packet_count", 0)
    assert ours.read_one(wanted).counter_data.packet_count == 8


def test_all_direct_counters_are_read_at_once(ours: Probing) -> None:
    ours.insert(ours.exact(1, 1), ours.ternary(1, 1), ours.scoped(1, 1))  # by_scoped has no counter
    tables = [entry.table_entry.table_id for entry in ours.read(p4r.DirectCounterEntry())]
    names = ("by_exact", "by_ternary", *["by_constant"] * 3)
    assert sorted(tables) == sorted(ours.id("tables", name) for name in names)


# -- meters ---------------------------------------------------------------------------------------------------

# A token every 1,000 s, and a burst of 1 and 2: the first packet is green, the second yellow, others are red.
SLOW = p4r.MeterConfig(cir=0, cburst=1, pir=0, pburst=2)
SLOWER = p4r.MeterConfig(cir=0, cburst=1, pir=0, pburst=1)
GREEN, YELLOW, RED = 0, 1, 2


def test_meters_colour_packets(primary: Probing) -> None:
    primary.modify(primary.meter(1, SLOW))
    assert primary.found("colour", *[Probe(a=1)] * 4) == [GREEN, YELLOW, RED, RED]
    assert primary.found("colour", *[Probe(a=2)] * 3) == [GREEN] * 3
    assert primary.read_one(primary.meter(1)).config == SLOW


def test_meters_begin_unset_and_can_be_reset(ours: Probing) -> None:
    def configs() -> list[p4r.MeterConfig | None]:
        entries = ours.read(p4r.MeterEntry())
        assert [entry.index.index for entry in entries] == [0, 1, 2, 3]
        return [entry.config if entry.HasField("config") else None for entry in entries]

    ours.modify(ours.meter(1, SLOW))
    assert ours.found("colour", *[Probe(a=1)] * 2) == [GREEN, YELLOW]
    ours.modify(ours.meter(1))
    assert ours.send(Probe(a=1)).colour == GREEN
    assert configs() == [None] * 4
    ours.modify(ours.meter(config=SLOW))
    assert configs() == [SLOW] * 4
    ours.modify(ours.meter(1), ours.meter(2, SLOWER))
    assert configs() == [SLOW, None, SLOWER, SLOW]
    ours.modify(ours.meter())
    assert configs() == [None] * 4


def test_direct_meters_belong_to_their_entries(ours: Probing) -> None:
    entry, direct = (
        ours.entry("by_metered", {"a": 1}, "found_metered", 1),
        p4r.DirectMeterEntry(table_entry=ours.key("by_metered", {"a": 1})),
    )
    ours.insert(but(entry, "meter_config", SLOW))
    assert ours.found("colour", *[Probe(a=1)] * 3) == [GREEN, YELLOW, RED]
    assert ours.read(ours.key("by_metered")) == [entry]
    assert ours.read_one(but(ours.key("by_metered"), "meter_config", p4r.MeterConfig())).meter_config == SLOW
    assert ours.read_one(direct).config == SLOW

    ours.modify(entry)  # a meter left out is a meter that lets everything pass
    assert ours.send(Probe(a=1)).colour == GREEN
    assert not ours.read_one(direct).HasField("config")
    ours.modify(but(direct, "config", SLOW))
    assert ours.found("colour", *[Probe(a=1)] * 3) == [GREEN, YELLOW, RED]

    # Another entry that gets the same place in the table has no meter of its own.
    ours.delete(entry)
    ours.insert(entry)
    assert ours.found("colour", *[Probe(a=1)] * 3) == [GREEN] * 3


# -- registers ------------------------------------------------------------------------------------------------


def test_registers_are_read_and_written(ours: Probing) -> None:
    """One cell, or all of them; simple_switch_grpc does not implement them."""

    def held(wanted: p4r.RegisterEntry) -> list[tuple[int, bytes]]:
        return [(entry.index.index, entry.data.bitstring) for entry in ours.read(wanted)]

    source, value = number(SOURCE), number(0x1234_5678_9ABC)
    ours.send(Probe(a=2))
    assert held(ours.register()) == held(p4r.RegisterEntry()) == list(enumerate((b"\0", b"\0", source, b"\0")))
    assert held(ours.register(2)) == [(2, source)]
    ours.modify(ours.register(1, value))
    assert held(ours.register()) == list(enumerate((b"\0", value, source, b"\0")))
    ours.modify(ours.register(value=b"\x07"))
    ours.send(Probe(a=2))
    assert held(ours.register()) == list(enumerate((b"\x07", b"\x07", source, b"\x07")))


def test_one_read_may_ask_for_several_kinds(ours: Probing) -> None:
    """Also with wildcards: all registers, and all entries of all tables."""
    ours.insert(ours.exact(1, 2))
    found = ours.read(ours.register(3), p4r.TableEntry(), p4r.RegisterEntry())
    kinds = [type(entity) for entity in found]
    assert kinds[0] is p4r.RegisterEntry and kinds[-4:] == [p4r.RegisterEntry] * 4
    assert kinds[1:-4] and set(kinds[1:-4]) == {p4r.TableEntry}
    assert [entity.table_id for entity in found[1:-4]].count(ours.id("tables", "by_exact")) == 1


# -- replication ----------------------------------------------------------------------------------------------


def instances(controller: Probing, count: int) -> list[int]:
    packets = [controller.messages.receive("packet") for _ in range(count)]
    return sorted(int.from_bytes(packet.metadata[2].value, "big") for packet in packets)


def test_multicast_groups_replicate(primary: Probing) -> None:
    primary.insert(multicast_group(5, (CPU_PORT, 10), (CPU_PORT, 11), (3, 12)))
    primary.packet_out(Probe(group=5))
    assert instances(primary, 2) == [10, 11]
    primary.modify(multicast_group(5, (CPU_PORT, 20)))
    primary.packet_out(Probe(group=5))
    assert instances(primary, 1) == [20]
    primary.delete(multicast_group(5))
    primary.packet_out(Probe(group=5))
    assert primary.send(Probe(b=9)).b == 9  # nothing comes before it


def test_groups_and_sessions_are_read_back(target: Target, primary: Probing) -> None:
    groups, session = [multicast_group(id_, (1, id_), (2, id_)) for id_ in (5, 6)], clone_session(9, (1, 1))
    if target.name == "embedded":  # ports may be byte strings, as in P4Runtime since 1.5
        port = multicast_group(7, port=b"\x01", instance=4)
        groups.append(but(port, "multicast_group_entry.metadata", b"mine"))
    primary.insert(*groups, session)
    assert primary.read(multicast_group(6)) == [groups[1]]
    assert ordered(primary.read(multicast_group(0))) == ordered(groups)
    assert primary.read(clone_session(9)) == [session]
    if target.name == "embedded":  # BMv2 does not read all at once
        assert ordered(primary.read(p4r.PacketReplicationEngineEntry())) == ordered([*groups, session])


def test_clone_session_copies_packets(primary: Probing) -> None:
    """The original leaves by port 3, which leads nowhere; the copy reaches the controller unchanged."""
    frame = Probe(session=9, mark=1).frame(b"tail")
    primary.insert(clone_session(9, (CPU_PORT, 77)))
    primary.packet_out(frame, port=3, mark=9)
    packet = primary.messages.receive("packet")
    assert (packet.payload, packet.metadata[2].value) == (frame, number(77))
    assert primary.send(Probe(b=9)).b == 9  # nothing comes before it


def test_clone_session_truncates_packets(ours: Probing) -> None:
    """simple_switch_grpc refuses a packet length."""
    ours.insert(clone_session(9, (CPU_PORT, 1), packet_length_bytes=40))
    ours.packet_out(Probe(session=9), port=3)
    header_bytes = 4
    assert len(ours.messages.receive("packet").payload) + header_bytes == 40
    ours.modify(clone_session(9, (CPU_PORT, 2), (CPU_PORT, 3)))
    ours.packet_out(Probe(session=9), port=3)
    assert instances(ours, 2) == [2, 3]
    ours.delete(clone_session(9))
    ours.packet_out(Probe(session=9), port=3)
    assert ours.send(Probe(b=9)).b == 9


@pytest.mark.parametrize("kind", ["a group", "a session", "a digest"])
def test_deleted_p4runtime_entity_can_be_inserted_again(primary: Probing, kind: str) -> None:
    first, changed = {
        "a group": (multicast_group(5, (1, 1)), multicast_group(5, (2, 1))),
        "a session": (clone_session(9, (1, 1)), clone_session(9, (2, 1))),
        "a digest": (primary.digest(max_list_size=5), primary.digest(max_list_size=6)),
    }[kind]
    for _ in range(2):
        assert primary.code("MODIFY", first) is primary.code("DELETE", first) is Code.NOT_FOUND
        primary.insert(first)
        assert primary.code("INSERT", first) is Code.ALREADY_EXISTS
        assert primary.read(first) == [first]
        primary.modify(changed)
        assert primary.read(first) == [changed]
        primary.delete(first)
