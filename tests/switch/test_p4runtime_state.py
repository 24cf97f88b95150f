"""Counters, meters, registers, multicast groups and clone sessions: written, read, and at work on packets."""

from __future__ import annotations

import grpc
import pytest
from finsy.proto import p4d, p4r

from tests.switch.conftest import DEVICE_ID, Target
from tests.switch.p4rt_controller import Code, Controller, Stream, clone_session, multicast_group, number, packets
from tests.switch.p4rt_probe import CPU_PORT, Probe, send

FRAME_BYTES = 3 + len(Probe().frame())  # a packet-out's header counts too


def counter(controller: Controller, name: str, index: int | None = None, **data: int) -> p4r.CounterEntry:
    entry = p4r.CounterEntry(counter_id=controller.id("counters", name))
    if index is not None:
        entry.index.index = index
    if data:
        entry.data.CopyFrom(p4r.CounterData(**data))
    return entry


def counts(data: p4r.CounterData) -> tuple[int, int]:
    return data.packet_count, data.byte_count


def read_error(controller: Controller, *wanted: object) -> grpc.RpcError:
    with pytest.raises(grpc.RpcError) as caught:
        controller.read(*wanted)
    return caught.value


# -- counters -------------------------------------------------------------------------------------------------


def test_counters_count_packets_and_bytes(primary: Controller, stream: Stream) -> None:
    for a in (3, 3, 5):
        send(primary, stream, Probe(a=a))
    assert counts(primary.read_one(counter(primary, "seen", 3)).data) == (2, 2 * FRAME_BYTES)
    assert counts(primary.read_one(counter(primary, "seen", 5)).data) == (1, FRAME_BYTES)


def test_reading_a_whole_counter_and_all_counters(primary: Controller, stream: Stream) -> None:
    send(primary, stream, Probe(a=2, digests=2))
    seen = primary.read(counter(primary, "seen"))
    assert [entry.index.index for entry in seen] == list(range(8))
    assert [entry.data.packet_count for entry in seen] == [0, 0, 1, 0, 0, 0, 0, 0]
    everything = primary.read(p4r.CounterEntry())
    assert len(everything) == 8 + 2
    assert {entry.counter_id for entry in everything} == {
        primary.id("counters", "seen"),
        primary.id("counters", "other_counter"),
    }
    assert sum(entry.data.packet_count for entry in everything) == 2


def test_counters_can_be_set(primary: Controller, stream: Stream) -> None:
    primary.modify(counter(primary, "seen", 1, packet_count=1000, byte_count=5000))
    send(primary, stream, Probe(a=1))
    assert counts(primary.read_one(counter(primary, "seen", 1)).data) == (1001, 5000 + FRAME_BYTES)


def test_a_whole_counter_can_be_set(embedded_primary: Controller) -> None:
    embedded_primary.modify(counter(embedded_primary, "seen", packet_count=4, byte_count=2))
    assert {counts(e.data) for e in embedded_primary.read(counter(embedded_primary, "seen"))} == {(4, 2)}
    embedded_primary.modify(counter(embedded_primary, "seen", 1))  # no data: nothing changes
    assert {counts(e.data) for e in embedded_primary.read(counter(embedded_primary, "seen"))} == {(4, 2)}


def test_counters_large_values(primary: Controller) -> None:
    most = (1 << 63) - 1
    primary.modify(counter(primary, "seen", 0, packet_count=most, byte_count=most))
    assert counts(primary.read_one(counter(primary, "seen", 0)).data) == (most, most)


def test_counters_have_no_other_cells(target: Target, primary: Controller) -> None:
    beyond, below = counter(primary, "seen", 8, packet_count=1), counter(primary, "seen", -1, packet_count=1)
    assert primary.refused("MODIFY", below).codes == [Code.INVALID_ARGUMENT]
    assert read_error(primary, below).code() is Code.INVALID_ARGUMENT
    expected = target.either(Code.OUT_OF_RANGE, Code.UNKNOWN)
    failed = primary.refused("MODIFY", beyond)
    assert failed.codes == [expected]
    assert target.name == "bmv2" or ("ProbeIngress.seen" in failed.messages[0] and "0 to 7" in failed.messages[0])
    assert read_error(primary, beyond).code() is expected


def test_counters_that_do_not_exist(embedded_primary: Controller) -> None:
    unknown = p4r.CounterEntry(counter_id=0x12ABCDEF)
    failed = embedded_primary.refused("MODIFY", unknown)
    assert failed.codes == [Code.INVALID_ARGUMENT] and "ProbeIngress.other_counter" in failed.messages[0]
    assert read_error(embedded_primary, unknown).code() is Code.INVALID_ARGUMENT
    direct = p4r.CounterEntry(counter_id=embedded_primary.id("direct_counters", "exact_hits"))
    assert embedded_primary.refused("MODIFY", direct).codes == [Code.INVALID_ARGUMENT]


def test_counters_are_modified_only(embedded_primary: Controller) -> None:
    for type_ in ("INSERT", "DELETE"):
        failed = embedded_primary.refused(type_, counter(embedded_primary, "seen", 0, packet_count=1))
        assert failed.codes == [Code.INVALID_ARGUMENT]
    failed = embedded_primary.refused("MODIFY", counter(embedded_primary, "seen", 0, packet_count=-1))
    assert failed.codes == [Code.INVALID_ARGUMENT]


# -- direct counters ------------------------------------------------------------------------------------------


def direct_counter(entry: p4r.TableEntry, **data: int) -> p4r.DirectCounterEntry:
    identity = p4r.TableEntry(table_id=entry.table_id, match=entry.match, priority=entry.priority)
    identity.is_default_action = entry.is_default_action
    return p4r.DirectCounterEntry(table_entry=identity, data=p4r.CounterData(**data) if data else None)


def test_direct_counters_count_hits(primary: Controller, stream: Stream) -> None:
    one = primary.entry("by_exact", {"a": 1, "b": 1}, "found_exact", 1)
    two = primary.entry("by_exact", {"a": 2, "b": 1}, "found_exact", 2)
    primary.insert(one, two)
    for a in (1, 1, 2):
        send(primary, stream, Probe(a=a, b=1))
    assert counts(primary.read_one(direct_counter(one)).data) == (2, 2 * FRAME_BYTES)
    found = primary.read(direct_counter(primary.key("by_exact")))
    assert sorted(counts(entry.data) for entry in found) == [(1, FRAME_BYTES), (2, 2 * FRAME_BYTES)]
    assert {entry.table_entry.match[0].exact.value for entry in found} == {b"\x01", b"\x02"}

    wanted = primary.key("by_exact", {"a": 1, "b": 1})
    assert not primary.read_one(wanted).HasField("counter_data")
    wanted.counter_data.SetInParent()
    assert counts(primary.read_one(wanted).counter_data) == (2, 2 * FRAME_BYTES)


def test_direct_counters_can_be_set(primary: Controller, stream: Stream) -> None:
    entry = primary.entry("by_exact", {"a": 1, "b": 1}, "found_exact", 1)
    with_count = p4r.TableEntry()
    with_count.CopyFrom(entry)
    with_count.counter_data.packet_count = 10
    primary.insert(with_count)
    assert primary.read_one(direct_counter(entry)).data.packet_count == 10
    primary.modify(direct_counter(entry, packet_count=20, byte_count=30))
    assert counts(primary.read_one(direct_counter(entry)).data) == (20, 30)
    primary.modify(entry)  # without counter_data: it stays
    assert counts(primary.read_one(direct_counter(entry)).data) == (20, 30)
    with_count.counter_data.packet_count = 40
    primary.modify(with_count)
    assert counts(primary.read_one(direct_counter(entry)).data) == (40, 0)


def test_a_new_entry_counts_from_zero(primary: Controller, stream: Stream) -> None:
    entry = primary.entry("by_exact", {"a": 1, "b": 1}, "found_exact", 1)
    primary.insert(entry)
    send(primary, stream, Probe(a=1, b=1))
    primary.delete(entry)
    primary.insert(entry)
    assert counts(primary.read_one(direct_counter(entry)).data) == (0, 0)


def test_misses_count_for_the_default_entry(embedded_primary: Controller, embedded: Target) -> None:
    """simple_switch_grpc does not count them."""
    controller = embedded.controller()
    stream = controller.become_primary()
    default = controller.default("by_exact")
    send(controller, stream, Probe(a=7))
    assert counts(controller.read_one(direct_counter(default)).data) == (1, FRAME_BYTES)
    default.counter_data.SetInParent()
    assert controller.read_one(default).counter_data.packet_count == 1
    controller.modify(direct_counter(controller.default("by_exact"), packet_count=8))
    assert controller.read_one(default).counter_data.packet_count == 8
    controller.close()


def test_all_direct_counters(embedded_primary: Controller) -> None:
    primary = embedded_primary
    primary.insert(
        primary.entry("by_exact", {"a": 1, "b": 1}, "found_exact", 1),
        primary.entry("by_ternary", {"b": (1, 1)}, "found_ternary", 1, priority=4),
        primary.entry("by_scoped", {"a": 1}, "found_scoped", 1),  # has no counter
    )
    found = primary.read(p4r.DirectCounterEntry())
    tables = [entry.table_entry.table_id for entry in found]
    constant = primary.id("tables", "by_constant")
    assert sorted(tables) == sorted(
        [primary.id("tables", "by_exact"), primary.id("tables", "by_ternary"), constant, constant, constant]
    )


def test_direct_counters_that_are_not_there(embedded_primary: Controller) -> None:
    primary = embedded_primary
    missing = direct_counter(primary.key("by_exact", {"a": 1, "b": 1}), packet_count=1)
    assert primary.refused("MODIFY", missing).codes == [Code.NOT_FOUND]
    assert read_error(primary, missing).code() is Code.NOT_FOUND
    primary.insert(primary.entry("by_scoped", {"a": 1}, "found_scoped", 1))
    without = direct_counter(primary.key("by_scoped", {"a": 1}), packet_count=1)
    failed = primary.refused("MODIFY", without)
    assert failed.codes == [Code.INVALID_ARGUMENT] and "ProbeIngress.by_scoped" in failed.messages[0]
    assert read_error(primary, without).code() is Code.INVALID_ARGUMENT
    for type_ in ("INSERT", "DELETE"):
        assert primary.refused(type_, missing).codes == [Code.INVALID_ARGUMENT]


# -- meters ---------------------------------------------------------------------------------------------------

# A token every 1,000 s, and a burst of 1 and 2: the first packet is green, the second yellow, others are red.
SLOW = p4r.MeterConfig(cir=0, cburst=1, pir=0, pburst=2)
SLOWER = p4r.MeterConfig(cir=0, cburst=1, pir=0, pburst=1)
GREEN, YELLOW, RED = 0, 1, 2


def meter(controller: Controller, index: int | None, config: p4r.MeterConfig | None = None) -> p4r.MeterEntry:
    entry = p4r.MeterEntry(meter_id=controller.id("meters", "rate"), config=config)
    if index is not None:
        entry.index.index = index
    return entry


def test_meters_colour_packets(primary: Controller, stream: Stream) -> None:
    primary.modify(meter(primary, 1, SLOW))
    assert [send(primary, stream, Probe(a=1)).colour for _ in range(4)] == [GREEN, YELLOW, RED, RED]
    assert [send(primary, stream, Probe(a=2)).colour for _ in range(3)] == [GREEN] * 3
    assert primary.read_one(meter(primary, 1)).config == SLOW


def test_meters_by_default_and_reset(embedded_primary: Controller, embedded: Target) -> None:
    controller = embedded.controller()
    stream = controller.become_primary()
    controller.modify(meter(controller, 1, SLOW))
    send(controller, stream, Probe(a=1))
    send(controller, stream, Probe(a=1))
    controller.modify(meter(controller, 1))
    assert send(controller, stream, Probe(a=1)).colour == GREEN
    found = controller.read(meter(controller, None))
    assert [entry.index.index for entry in found] == [0, 1, 2, 3]
    assert not any(entry.HasField("config") for entry in found)
    controller.modify(meter(controller, None, SLOW))
    assert [entry.config for entry in controller.read(p4r.MeterEntry())] == [SLOW] * 4
    controller.modify(meter(controller, 1))
    controller.modify(meter(controller, 2, SLOWER))
    found = controller.read(meter(controller, None))
    assert [entry.config if entry.HasField("config") else None for entry in found] == [SLOW, None, SLOWER, SLOW]
    controller.modify(meter(controller, None))
    assert not any(entry.HasField("config") for entry in controller.read(p4r.MeterEntry()))
    controller.close()


@pytest.mark.parametrize(
    "config",
    [p4r.MeterConfig(cir=-1), p4r.MeterConfig(cir=2, pir=1), p4r.MeterConfig(eburst=1)],
    ids=["negative", "peak-below-committed", "excess-burst"],
)
def test_meters_that_make_no_sense(embedded_primary: Controller, config: p4r.MeterConfig) -> None:
    assert embedded_primary.refused("MODIFY", meter(embedded_primary, 0, config)).codes == [Code.INVALID_ARGUMENT]
    entry = embedded_primary.entry("by_metered", {"a": 1}, "found_metered", 1, meter_config=config)
    assert embedded_primary.refused("INSERT", entry).codes == [Code.INVALID_ARGUMENT]


def test_meters_have_no_other_cells(embedded_primary: Controller) -> None:
    primary = embedded_primary
    assert primary.refused("MODIFY", meter(primary, 4, SLOW)).codes == [Code.OUT_OF_RANGE]
    assert primary.refused("MODIFY", meter(primary, -1, SLOW)).codes == [Code.INVALID_ARGUMENT]
    assert primary.refused("INSERT", meter(primary, 0, SLOW)).codes == [Code.INVALID_ARGUMENT]
    assert read_error(primary, p4r.MeterEntry(meter_id=5)).code() is Code.INVALID_ARGUMENT


def test_meters_do_not_count_by_colour(embedded_primary: Controller) -> None:
    entry = meter(embedded_primary, 0, SLOW)
    entry.counter_data.SetInParent()
    assert embedded_primary.refused("MODIFY", entry).codes == [Code.UNIMPLEMENTED]
    assert read_error(embedded_primary, entry).code() is Code.UNIMPLEMENTED


def test_direct_meters_belong_to_their_entries(embedded_primary: Controller, embedded: Target) -> None:
    primary = embedded.controller()
    stream = primary.become_primary()
    entry = primary.entry("by_metered", {"a": 1}, "found_metered", 1)
    primary.insert(primary.entry("by_metered", {"a": 1}, "found_metered", 1, meter_config=SLOW))
    assert [send(primary, stream, Probe(a=1)).colour for _ in range(3)] == [GREEN, YELLOW, RED]

    assert primary.read(primary.key("by_metered")) == [entry]
    wanted = primary.key("by_metered")
    wanted.meter_config.SetInParent()
    assert primary.read_one(wanted).meter_config == SLOW
    direct = p4r.DirectMeterEntry(table_entry=primary.key("by_metered", {"a": 1}))
    assert primary.read_one(direct).config == SLOW

    primary.modify(entry)  # a meter left out is a meter that lets everything pass
    assert send(primary, stream, Probe(a=1)).colour == GREEN
    assert not primary.read_one(direct).HasField("config")
    primary.modify(p4r.DirectMeterEntry(table_entry=direct.table_entry, config=SLOW))
    assert [send(primary, stream, Probe(a=1)).colour for _ in range(3)] == [GREEN, YELLOW, RED]

    # Another entry that gets the same place in the table has no meter of its own.
    primary.delete(entry)
    primary.insert(primary.entry("by_metered", {"a": 1}, "found_metered", 1))
    assert [send(primary, stream, Probe(a=1)).colour for _ in range(3)] == [GREEN] * 3
    assert primary.refused("MODIFY", p4r.DirectMeterEntry(table_entry=primary.key("by_exact"))).codes == [
        Code.INVALID_ARGUMENT
    ]
    primary.close()


# -- registers ------------------------------------------------------------------------------------------------


def test_registers_can_be_read(embedded_primary: Controller, embedded: Target) -> None:
    """simple_switch_grpc has them not."""
    controller = embedded.controller()
    stream = controller.become_primary()
    send(controller, stream, Probe(a=2))
    wanted = p4r.RegisterEntry(register_id=controller.id("registers", "last_source"))
    found = controller.read(wanted)
    assert [entry.index.index for entry in found] == [0, 1, 2, 3]
    assert [entry.data.bitstring for entry in found] == [b"\0", b"\0", number(0x0200_0000_0001), b"\0"]
    wanted.index.index = 2
    assert controller.read_one(wanted) == found[2]
    assert len(controller.read(p4r.RegisterEntry())) == 4
    wanted.index.index = 4
    assert read_error(controller, wanted).code() is Code.OUT_OF_RANGE
    controller.close()


def test_registers_can_be_written(embedded_primary: Controller, embedded: Target) -> None:
    """One cell, or all of them; the packets that follow see it, and what cannot be is refused."""
    controller = embedded.controller()
    stream = controller.become_primary()
    register = controller.id("registers", "last_source")

    def cell(value: bytes, index: int | None = None) -> p4r.RegisterEntry:
        entry = p4r.RegisterEntry(register_id=register, data=p4d.P4Data(bitstring=value))
        if index is not None:
            entry.index.index = index
        return entry

    def held() -> list[bytes]:
        return [entry.data.bitstring for entry in controller.read(p4r.RegisterEntry(register_id=register))]

    controller.modify(cell(number(0x1234_5678_9ABC), 1))
    assert held() == [b"\0", number(0x1234_5678_9ABC), b"\0", b"\0"]
    controller.modify(cell(b"\x07"))
    assert held() == [b"\x07"] * 4
    send(controller, stream, Probe(a=2))
    assert held() == [b"\x07", b"\x07", number(0x0200_0000_0001), b"\x07"]
    assert controller.refused("MODIFY", cell(b"\1", 4)).codes == [Code.OUT_OF_RANGE]
    assert controller.refused("INSERT", cell(b"\1", 0)).codes == [Code.INVALID_ARGUMENT]
    assert controller.refused("MODIFY", cell(number(1 << 48), 0)).codes == [Code.INVALID_ARGUMENT]
    assert controller.refused("MODIFY", p4r.RegisterEntry(register_id=register)).codes == [Code.INVALID_ARGUMENT]
    assert controller.refused("MODIFY", p4r.RegisterEntry(register_id=99)).codes == [Code.INVALID_ARGUMENT]
    assert held() == [b"\x07", b"\x07", number(0x0200_0000_0001), b"\x07"]
    controller.close()


def test_one_read_asks_for_several_things(embedded_primary: Controller) -> None:
    """Wildcards among them: all registers, and all entries of all tables."""
    controller = embedded_primary
    controller.insert(controller.entry("by_exact", {"a": 1, "b": 2}, "found_exact", 7))
    register = controller.id("registers", "last_source")
    wanted = [
        p4r.Entity(register_entry=p4r.RegisterEntry(register_id=register, index=p4r.Index(index=3))),
        p4r.Entity(table_entry=p4r.TableEntry()),
        p4r.Entity(register_entry=p4r.RegisterEntry()),
    ]
    request = p4r.ReadRequest(device_id=DEVICE_ID, entities=wanted)
    found = [entity for answer in controller.stub.Read(request, timeout=60) for entity in answer.entities]
    kinds = [entity.WhichOneof("entity") for entity in found]
    assert kinds[0] == "register_entry" and kinds[-4:] == ["register_entry"] * 4
    assert kinds[1:-4] and set(kinds[1:-4]) == {"table_entry"}
    table = controller.id("tables", "by_exact")
    assert [entity.table_entry.table_id for entity in found if entity.HasField("table_entry")].count(table) == 1


# -- multicast groups -----------------------------------------------------------------------------------------


def instances(stream: Stream, count: int) -> list[int]:
    return sorted(int.from_bytes(packet.metadata[2].value, "big") for packet in packets(stream, count))


def test_multicast_groups_replicate(primary: Controller, stream: Stream) -> None:
    primary.insert(multicast_group(5, (CPU_PORT, 10), (CPU_PORT, 11), (3, 12)))
    primary.packet_out(stream, Probe(group=5).frame())
    assert instances(stream, 2) == [10, 11]
    primary.modify(multicast_group(5, (CPU_PORT, 20)))
    primary.packet_out(stream, Probe(group=5).frame())
    assert instances(stream, 1) == [20]
    primary.delete(multicast_group(5))
    primary.packet_out(stream, Probe(group=5).frame())
    assert stream.silent()


def test_multicast_groups_are_read_back(primary: Controller) -> None:
    groups = [multicast_group(id_, (1, id_), (2, id_)) for id_ in (5, 6)]
    primary.insert(*groups)
    assert primary.read(multicast_group(6)) == [groups[1]]
    everything = primary.read(multicast_group(0))
    assert sorted(everything, key=lambda item: item.multicast_group_entry.multicast_group_id) == groups


def test_multicast_ports_may_be_byte_strings(embedded_primary: Controller) -> None:
    """As P4Runtime has them since 1.5."""
    group = p4r.PacketReplicationEngineEntry()
    group.multicast_group_entry.multicast_group_id = 3
    group.multicast_group_entry.replicas.add(port=b"\x01", instance=4)
    group.multicast_group_entry.metadata = b"mine"
    embedded_primary.insert(group)
    assert embedded_primary.read(multicast_group(3)) == [group]


def test_multicast_groups_there_and_not_there(primary: Controller) -> None:
    primary.insert(multicast_group(5, (1, 1)))
    assert primary.refused("INSERT", multicast_group(5, (1, 1))).codes == [Code.ALREADY_EXISTS]
    for type_ in ("MODIFY", "DELETE"):
        assert primary.refused(type_, multicast_group(6, (1, 1))).codes == [Code.NOT_FOUND]
    assert primary.read(multicast_group(5)) == [multicast_group(5, (1, 1))]


def _group_with(**fields: object) -> p4r.PacketReplicationEngineEntry:
    group = p4r.PacketReplicationEngineEntry()
    group.multicast_group_entry.multicast_group_id = 8
    group.multicast_group_entry.replicas.add(**fields)
    return group


@pytest.mark.parametrize(
    ("group", "code", "words"),
    [
        (multicast_group(0, (1, 1)), Code.INVALID_ARGUMENT, "expected 1 to"),
        (multicast_group(1 << 20, (1, 1)), Code.INVALID_ARGUMENT, "expected 1 to"),
        (multicast_group(8, (1, 1), (1, 1)), Code.INVALID_ARGUMENT, "two replicas"),
        (multicast_group(8, (512, 1)), Code.INVALID_ARGUMENT, "port 512"),
        (multicast_group(8, (1, 1 << 16)), Code.INVALID_ARGUMENT, "16 bits"),
        (_group_with(instance=1), Code.INVALID_ARGUMENT, "no port"),
        (_group_with(port=b"", instance=1), Code.INVALID_ARGUMENT, "empty"),
        (_group_with(port=b"\x01" * 5, instance=1), Code.INVALID_ARGUMENT, "32 bits"),
        (_group_with(port=b"\x01", backup_replicas=[p4r.BackupReplica(port=b"\x02")]), Code.UNIMPLEMENTED, "backup"),
        (p4r.PacketReplicationEngineEntry(), Code.INVALID_ARGUMENT, "multicast group or a clone session"),
    ],
    ids=["0", "too-high", "twice", "port", "instance", "no-port", "empty-port", "long-port", "backup", "nothing"],
)
def test_multicast_groups_that_make_no_sense(
    embedded_primary: Controller, group: p4r.PacketReplicationEngineEntry, code: grpc.StatusCode, words: str
) -> None:
    failed = embedded_primary.refused("INSERT", group)
    assert failed.codes == [code] and words in failed.messages[0]
    assert embedded_primary.read(multicast_group(0)) == []


# -- clone sessions -------------------------------------------------------------------------------------------


def test_clone_sessions_copy(primary: Controller, stream: Stream) -> None:
    """The original leaves at port 3, where nobody is; the copy comes to the controller, as it came in."""
    primary.insert(clone_session(9, (CPU_PORT, 77)))
    primary.packet_out(stream, Probe(session=9, mark=1).frame(b"tail"), port=3, mark=9)
    packet = stream.receive("packet")
    assert packet.payload == Probe(session=9, mark=1).frame(b"tail")
    assert packet.metadata[2].value == number(77)
    assert stream.silent()


def test_clone_sessions_truncate(embedded_primary: Controller, embedded: Target) -> None:
    """simple_switch_grpc refuses a packet length."""
    primary = embedded.controller()
    stream = primary.become_primary()
    primary.insert(clone_session(9, (CPU_PORT, 1), packet_length_bytes=40))
    primary.packet_out(stream, Probe(session=9).frame(), port=3)
    header_bytes = 4
    assert len(stream.receive("packet").payload) + header_bytes == 40
    primary.modify(clone_session(9, (CPU_PORT, 2), (CPU_PORT, 3)))
    primary.packet_out(stream, Probe(session=9).frame(), port=3)
    assert instances(stream, 2) == [2, 3]
    primary.delete(clone_session(9))
    primary.packet_out(stream, Probe(session=9).frame(), port=3)
    assert stream.silent()
    failed = primary.refused("INSERT", clone_session(9, (1, 1), packet_length_bytes=-1))
    assert failed.codes == [Code.INVALID_ARGUMENT]
    primary.close()


def test_clone_sessions_there_and_not_there(primary: Controller) -> None:
    session = clone_session(9, (1, 1))
    primary.insert(session)
    assert primary.read(clone_session(9)) == [session]
    assert primary.refused("INSERT", session).codes == [Code.ALREADY_EXISTS]
    for type_ in ("MODIFY", "DELETE"):
        assert primary.refused(type_, clone_session(10, (1, 1))).codes == [Code.NOT_FOUND]
    assert primary.refused("INSERT", clone_session(0, (1, 1))).codes == [Code.INVALID_ARGUMENT]
    assert primary.refused("INSERT", clone_session(1 << 15, (1, 1))).codes == [Code.INVALID_ARGUMENT]
    cos = clone_session(10, (1, 1), class_of_service=2)
    assert primary.refused("INSERT", cos).codes == [Code.UNIMPLEMENTED]


def test_reading_all_replication(embedded_primary: Controller) -> None:
    entries = [multicast_group(1, (1, 1)), clone_session(1, (1, 1))]
    embedded_primary.insert(*entries)
    assert embedded_primary.read(p4r.PacketReplicationEngineEntry()) == entries
