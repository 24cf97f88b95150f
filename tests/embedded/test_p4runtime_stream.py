"""Packet-out, packet-in and digests on the stream, and how the switch answers bad messages."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from finsy.proto import p4d, p4r

from serene.embedded.p4runtime.digests import DigestLists
from serene.embedded.p4runtime.parts import MESSAGE_BYTES
from tests.embedded.conftest import Target, embedded_target
from tests.embedded.p4rt_controller import Code, load_p4info, new_election_id, number
from tests.embedded.p4rt_probe import CPU_PORT, P4INFO, SOURCE, Probe, Probing, packet_metadata

MS = 1_000_000  # nanoseconds

# -- packets --------------------------------------------------------------------------------------------------


def test_packet_out_and_packet_in_carry_their_metadata(primary: Probing) -> None:
    primary.packet_out(Probe().frame(b"tail"), mark=0xA5)
    packet = primary.messages.receive("packet")
    assert Probe.parse(packet.payload).mark == 0xA5
    assert packet.payload.endswith(b"tail")
    assert {item.metadata_id: item.value for item in packet.metadata} == {1: number(CPU_PORT), 2: b"\0", 3: b"\0"}
    # In any order, and padded.
    items = packet_metadata(mark=b"\0\0\x7f", pad=b"\0", port=b"\0\0\xff")
    primary.messages.send(packet=p4r.PacketOut(payload=Probe().frame(), metadata=items))
    assert primary.received().mark == 0x7F


def test_packet_ins_keep_their_order(primary: Probing) -> None:
    for first in range(0, 500, 20):  # BMv2's queues hold 64
        for b in range(first, first + 20):
            primary.packet_out(Probe(b=b))
        assert [primary.received().b for _ in range(20)] == list(range(first, first + 20))


def test_packet_out_returns_large_and_non_probe_frames(primary: Probing) -> None:
    for payload in (Probe().frame(b"x" * 9000), b"\xff" * 14, b"\xff" * 60):
        primary.packet_out(payload)
        assert primary.messages.receive("packet").payload[-9000:] == payload[-9000:]


def test_bad_packet_outs_are_reported_as_errors(ours: Probing) -> None:
    for items, words in (
        (packet_metadata(port=1, pad=0), "3 (mark)"),
        (packet_metadata(port=1, pad=0, mark=1, unknown=4), "[1, 2, 3, 9]"),
        (packet_metadata(port=1, pad=0, mark=1) + packet_metadata(port=1), "[1, 2, 3, 1]"),
        (packet_metadata(port=512, pad=0, mark=1), "'egress_port': 0x200 does not fit 9 bits"),
        (packet_metadata(port=b"", pad=0, mark=1), "empty"),
        ([], "[]"),
    ):
        packet = p4r.PacketOut(payload=b"hello", metadata=items)
        ours.messages.send(packet=packet)
        error = ours.messages.receive("error")
        assert error.canonical_code == Code.INVALID_ARGUMENT.value[0]
        assert words in error.message
        assert error.packet_out.packet_out == packet
    ours.packet_out(Probe().frame(b"x" * 70_000))
    error = ours.messages.receive("error")
    assert error.canonical_code == Code.INVALID_ARGUMENT.value[0] and "65536" in error.message
    ours.messages.send()  # a message of no known kind
    assert ours.messages.receive("error").canonical_code == Code.UNIMPLEMENTED.value[0]
    ours.send(Probe())  # the stream lives on


def test_packet_ins_go_to_the_new_primary(target: Target) -> None:
    """Backups receive none and may send none."""
    with target.controller() as first, target.controller() as second:
        first.primary()
        assert first.send(Probe(b=1)).b == 1
        second.become_primary()
        assert first.messages.status() is Code.ALREADY_EXISTS
        first.packet_out(Probe(b=3))
        if target.name == "embedded":  # BMv2 answers nothing
            assert first.messages.receive("error").canonical_code == Code.PERMISSION_DENIED.value[0]
        assert second.send(Probe(b=2)).b == 2
        first.messages.introduce(new_election_id())
        assert first.messages.status() is Code.OK  # no packet comes before it


def test_packet_out_without_a_cpu_port_is_refused() -> None:
    with embedded_target(cpu_port=None) as target, target.controller() as controller:
        controller.primary()
        controller.packet_out(Probe())
        error = controller.messages.receive("error")
        assert error.canonical_code == Code.FAILED_PRECONDITION.value[0] and "--cpu-port" in error.message


# -- digests --------------------------------------------------------------------------------------------------


def learn(controller: Probing, *bs: int) -> None:
    """Sends probes that raise a digest each, and leave by port 3, which leads nowhere."""
    for b in bs:
        controller.packet_out(Probe(b=b, digests=1), port=3)


def learned(message: p4r.DigestList) -> list[int]:
    """The probes' b in a digest list."""
    return [int.from_bytes(data.struct.members[2].bitstring, "big") for data in message.data]


def next_list(controller: Probing) -> list[int]:
    return learned(controller.messages.receive("digest"))


def test_digests_carry_the_struct(target: Target, primary: Probing) -> None:
    primary.insert(primary.digest(max_list_size=1))
    before = time.time_ns()
    learn(primary, 0x1234)
    message = primary.messages.receive("digest")
    assert message.digest_id == primary.id("digests", "learned_t")
    members = [member.bitstring for member in message.data[0].struct.members]
    assert members == [number(SOURCE), number(CPU_PORT), number(0x1234)]
    assert target.name == "bmv2" or before <= message.timestamp <= time.time_ns()  # BMv2's counts from boot


def test_digest_list_is_sent_after_its_timeout(primary: Probing) -> None:
    primary.insert(primary.digest(max_list_size=100, max_timeout_ns=2000 * MS))
    learn(primary, 1, 2, 1)
    assert next_list(primary) == [1, 2]  # in one list: it waited for the second; and once each
    primary.modify(primary.digest(max_list_size=1))
    learn(primary, 3)
    assert next_list(primary) == [3]


def test_digests_are_sent_only_as_configured(ours: Probing) -> None:
    """simple_switch_grpc keeps digests that nobody asked for, counts repeated ones, and sends no full list at once."""
    learn(ours, 1)
    ours.send(Probe())  # comes next: no digest does
    ours.insert(ours.digest(max_list_size=3, max_timeout_ns=60_000 * MS))
    learn(ours, 1, 2)
    ours.send(Probe())
    learn(ours, 3, 4)
    assert next_list(ours) == [1, 2, 3]
    ours.send(Probe())
    ours.modify(ours.digest(max_list_size=0, max_timeout_ns=300 * MS))  # of any length
    learn(ours, *range(11, 60))
    found: list[int] = []
    while 59 not in found:
        found += next_list(ours)
    assert found == [4, *range(11, 60)]
    ours.delete(ours.digest())
    learn(ours, 60)
    ours.send(Probe())


def test_digest_is_not_repeated_before_its_acknowledgement(ours: Probing) -> None:
    ours.insert(ours.digest(max_list_size=1, ack_timeout_ns=60_000 * MS))
    learn(ours, 1)
    first = ours.messages.receive("digest")
    learn(ours, 1, 2)
    second = ours.messages.receive("digest")
    assert learned(second) == [2] and second.list_id != first.list_id
    ours.send(Probe())
    ours.messages.send(digest_ack=p4r.DigestListAck(digest_id=first.digest_id, list_id=first.list_id))
    learn(ours, 2, 1)
    assert next_list(ours) == [1]
    # What is not there cannot be acknowledged; late acknowledgements are no errors.
    unknown = p4r.DigestListAck(digest_id=0x17ABCDEF, list_id=1)
    ours.messages.send(digest_ack=unknown)
    error = ours.messages.receive("error")
    assert error.canonical_code == Code.INVALID_ARGUMENT.value[0]
    assert error.digest_list_ack.digest_list_ack == unknown
    ours.messages.send(digest_ack=p4r.DigestListAck(digest_id=first.digest_id, list_id=99))
    ours.send(Probe())


def test_unacknowledged_digests_expire_at_the_second_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """BMv2 checks once per ack timeout, counted from the digest's configuration; up4's suite depends on it."""
    clock = [100.0]
    sent: list[float] = []

    def deliver(message: p4r.StreamMessageResponse) -> bool:
        sent.append(clock[0])
        return True

    frozen = SimpleNamespace(monotonic=lambda: clock[0], time_ns=time.time_ns)
    monkeypatch.setattr("serene.embedded.p4runtime.digests.time", frozen)
    lists = digest_lists(deliver, ack_timeout_ns=1000 * MS)
    for clock[0] in (100.25, 101.35, 101.99, 102.0, 103.9, 104.0):
        lists.add("learned_t", (SOURCE, 1, 7))
    assert sent == [100.25, 102.0, 104.0]


def digest_lists(deliver: Callable[[p4r.StreamMessageResponse], bool], **config: int) -> DigestLists:
    info = load_p4info(P4INFO)
    lists = DigestLists(info, deliver)
    given = p4r.DigestEntry.Config(**({"max_list_size": 1} | config))
    lists.insert(p4r.DigestEntry(digest_id=info.digests[0].preamble.id, config=given))
    return lists


def test_digests_without_receiver_or_ack_may_repeat_at_once() -> None:
    sent: list[list[int]] = []
    anybody_there = False

    def deliver(message: p4r.StreamMessageResponse) -> bool:
        if anybody_there:
            sent.append(learned(message.digest))
        return anybody_there

    lists = digest_lists(deliver, ack_timeout_ns=60_000 * MS)
    lists.add("learned_t", (SOURCE, 1, 7))
    anybody_there = True
    for _ in range(2):
        lists.add("learned_t", (SOURCE, 1, 7))
    assert sent == [[7]]
    sent.clear()
    lists = digest_lists(deliver)
    for _ in range(3):
        lists.add("learned_t", (SOURCE, 1, 7))
    assert sent == [[7]] * 3


def test_list_of_large_digests_is_split() -> None:
    """Each part is acknowledged by its own number."""
    sent: list[p4r.DigestList] = []

    def deliver(message: p4r.StreamMessageResponse) -> bool:
        sent.append(message.digest)
        return True

    lists = digest_lists(deliver, max_list_size=5, max_timeout_ns=60_000 * MS, ack_timeout_ns=60_000 * MS)
    lists._value = lambda spec, values: p4d.P4Data(bitstring=bytes(MESSAGE_BYTES // 2))  # type: ignore[method-assign]
    for number_ in range(5):
        lists.add("learned_t", (number_, 0, 0))
    assert sum(len(one.data) for one in sent) == 5 and len(sent) > 1
    assert len({one.list_id for one in sent}) == len(sent)
    assert all(one.ByteSize() < 4 << 20 for one in sent)  # what a client of gRPC takes by default
    for one in sent:
        lists.acknowledge(p4r.DigestListAck(digest_id=one.digest_id, list_id=one.list_id))
    before = len(sent)
    for number_ in range(5):
        lists.add("learned_t", (number_, 0, 0))
    assert len(sent) > before, "they are all acknowledged, so they come again"
