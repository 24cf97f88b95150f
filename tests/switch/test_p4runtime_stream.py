"""Packet-out, packet-in and digests on the stream, and what the switch says of bad messages."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from finsy.proto import p4r

from serene.switch.p4runtime.digests import DigestLists
from tests.switch.conftest import Target, embedded_target
from tests.switch.p4rt_controller import Code, Controller, Stream, load_p4info, number, until
from tests.switch.p4rt_probe import CPU_PORT, JSON, P4INFO, SOURCE, Probe

MS = 1_000_000  # nanoseconds


def metadata(**values: int | bytes) -> list[p4r.PacketMetadata]:
    """Packet-out metadata by field: port, pad, mark."""
    ids = {"port": 1, "pad": 2, "mark": 3, "unknown": 9}
    return [
        p4r.PacketMetadata(metadata_id=ids[name], value=value if isinstance(value, bytes) else number(value))
        for name, value in values.items()
    ]


# -- packets --------------------------------------------------------------------------------------------------


def test_packet_out_and_in_carry_their_metadata(primary: Controller, stream: Stream) -> None:
    stream.send(
        packet=p4r.PacketOut(payload=Probe().frame(b"tail"), metadata=metadata(port=CPU_PORT, pad=0, mark=0xA5))
    )
    packet = stream.receive("packet")
    found = Probe.parse(packet.payload)
    assert found.mark == 0xA5
    assert packet.payload.endswith(b"tail")
    assert {item.metadata_id: item.value for item in packet.metadata} == {1: number(CPU_PORT), 2: b"\0", 3: b"\0"}


def test_metadata_may_come_in_any_order_and_padded(primary: Controller, stream: Stream) -> None:
    items = metadata(mark=b"\0\0\x7f", pad=b"\0", port=b"\0\0\xff")
    stream.send(packet=p4r.PacketOut(payload=Probe().frame(), metadata=items))
    assert Probe.parse(stream.receive("packet").payload).mark == 0x7F


def test_packets_keep_their_order(primary: Controller, stream: Stream) -> None:
    for first in range(0, 500, 20):  # BMv2's queues hold 64
        for b in range(first, first + 20):
            primary.packet_out(stream, Probe(b=b).frame())
        assert [Probe.parse(stream.receive("packet").payload).b for _ in range(20)] == list(range(first, first + 20))


def test_large_packets(primary: Controller, stream: Stream) -> None:
    primary.packet_out(stream, Probe().frame(b"x" * 9000))
    assert stream.receive("packet").payload.endswith(b"x" * 9000)


def test_packets_that_are_no_probe(primary: Controller, stream: Stream) -> None:
    for payload in (b"\xff" * 14, b"\xff" * 60):
        primary.packet_out(stream, payload)
        assert stream.receive("packet").payload == payload


@pytest.mark.parametrize(
    ("items", "words"),
    [
        (metadata(port=1, pad=0), "3 (mark)"),
        (metadata(port=1, pad=0, mark=1, unknown=4), "[1, 2, 3, 9]"),
        (metadata(port=1, pad=0, mark=1) + metadata(port=1), "[1, 2, 3, 1]"),
        (metadata(port=512, pad=0, mark=1), "'egress_port': 0x200 does not fit 9 bits"),
        (metadata(port=b"", pad=0, mark=1), "empty"),
        ([], "[]"),
    ],
    ids=["missing", "unknown", "twice", "wide", "empty", "none"],
)
def test_bad_packet_outs_come_back_as_errors(embedded: Target, items: list[p4r.PacketMetadata], words: str) -> None:
    controller = embedded.controller()
    stream = controller.become_primary()
    controller.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
    packet = p4r.PacketOut(payload=b"hello", metadata=items)
    stream.send(packet=packet)
    error = stream.receive("error")
    assert error.canonical_code == Code.INVALID_ARGUMENT.value[0]
    assert words in error.message
    assert error.packet_out.packet_out == packet
    controller.packet_out(stream, Probe().frame())  # the stream lives on
    stream.receive("packet")
    controller.close()


def test_a_packet_out_larger_than_any_frame(embedded_primary: Controller, embedded: Target) -> None:
    controller = embedded.controller()
    stream = controller.become_primary()
    controller.packet_out(stream, Probe().frame(b"x" * 70_000))
    error = stream.receive("error")
    assert error.canonical_code == Code.INVALID_ARGUMENT.value[0] and "65536" in error.message
    controller.close()


def test_backups_get_no_packets_and_may_send_none(target: Target) -> None:
    backup_controller, controller = target.controller(), target.controller()
    backup = backup_controller.become_primary()
    stream = controller.become_primary()
    controller.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
    assert backup.status() is Code.ALREADY_EXISTS
    backup_controller.packet_out(backup, Probe(b=1).frame())
    if target.name == "embedded":  # BMv2 says nothing
        error = backup.receive("error")
        assert error.canonical_code == Code.PERMISSION_DENIED.value[0]
    controller.packet_out(stream, Probe(b=2).frame())
    assert Probe.parse(stream.receive("packet").payload).b == 2
    assert backup.silent()
    backup_controller.close()
    controller.close()


def test_packets_follow_the_primary(target: Target) -> None:
    first_controller, second_controller = target.controller(), target.controller()
    first = first_controller.become_primary()
    first_controller.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
    first_controller.packet_out(first, Probe(b=1).frame())
    assert Probe.parse(first.receive("packet").payload).b == 1
    second = second_controller.become_primary()
    second_controller.packet_out(second, Probe(b=2).frame())
    assert Probe.parse(second.receive("packet").payload).b == 2
    assert first.status() is Code.ALREADY_EXISTS
    assert first.silent()
    first_controller.close()
    second_controller.close()


def test_without_a_cpu_port_there_are_no_packets() -> None:
    with embedded_target(cpu_port=None) as target:
        controller = target.controller()
        stream = controller.become_primary()
        controller.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
        controller.packet_out(stream, Probe().frame())
        error = stream.receive("error")
        assert error.canonical_code == Code.FAILED_PRECONDITION.value[0] and "--cpu-port" in error.message
        controller.close()


def test_messages_that_are_not_known(embedded_primary: Controller, embedded: Target) -> None:
    controller = embedded.controller()
    stream = controller.become_primary()
    stream.send()
    assert stream.receive("error").canonical_code == Code.UNIMPLEMENTED.value[0]
    controller.close()


# -- digests --------------------------------------------------------------------------------------------------


def digest_entry(controller: Controller, **config: int) -> p4r.DigestEntry:
    return p4r.DigestEntry(digest_id=controller.id("digests", "learned_t"), config=p4r.DigestEntry.Config(**config))


def learn(controller: Controller, stream: Stream, *bs: int) -> None:
    """Probes that raise a digest each and leave at port 3, where nobody is."""
    for b in bs:
        controller.packet_out(stream, Probe(b=b, digests=1).frame(), port=3)


def learned(message: p4r.DigestList) -> list[int]:
    """The probes' b in a digest list."""
    return [int.from_bytes(data.struct.members[2].bitstring, "big") for data in message.data]


def test_digests_carry_the_struct(target: Target, primary: Controller, stream: Stream) -> None:
    primary.insert(digest_entry(primary, max_list_size=1))
    before = time.time_ns()
    learn(primary, stream, 0x1234)
    message = stream.receive("digest")
    assert message.digest_id == primary.id("digests", "learned_t")
    assert [member.bitstring for member in message.data[0].struct.members] == [
        number(SOURCE), number(CPU_PORT), number(0x1234),
    ]  # fmt: skip
    assert target.name == "bmv2" or before <= message.timestamp <= time.time_ns()  # BMv2's counts from boot


def test_digests_come_only_when_asked_for(learner: Learner) -> None:
    """simple_switch_grpc keeps the ones that nobody asked for, and hands them over later."""
    primary, stream = learner
    learn(primary, stream, 1)
    assert stream.silent()
    primary.insert(digest_entry(primary, max_list_size=1))
    learn(primary, stream, 2)
    assert learned(stream.receive("digest")) == [2]
    primary.delete(digest_entry(primary))
    learn(primary, stream, 3)
    assert stream.silent()


def test_a_list_is_sent_when_it_is_full(learner: Learner) -> None:
    """simple_switch_grpc counts repeated ones too, and waits for the timeout with what is left."""
    primary, stream = learner
    primary.insert(digest_entry(primary, max_list_size=3, max_timeout_ns=60_000 * MS))
    learn(primary, stream, 1, 2)
    assert stream.silent()
    learn(primary, stream, 3, 4)
    assert learned(stream.receive("digest")) == [1, 2, 3]
    assert stream.silent()


def test_a_list_is_sent_when_its_time_is_up(primary: Controller, stream: Stream) -> None:
    primary.insert(digest_entry(primary, max_list_size=100, max_timeout_ns=2000 * MS))
    learn(primary, stream, 1, 2, 1)
    assert learned(stream.receive("digest")) == [1, 2]  # in one list: it waited for the second; and once each
    assert stream.silent()


def test_unlimited_lists_wait_for_their_time(learner: Learner) -> None:
    controller, stream = learner
    controller.insert(digest_entry(controller, max_list_size=0, max_timeout_ns=300 * MS))
    learn(controller, stream, *range(1, 50))
    assert learned(stream.receive("digest")) == list(range(1, 50))


@pytest.fixture
def learner(embedded_primary: Controller, embedded: Target):  # type: ignore[no-untyped-def]
    """Primary of the embedded switch and its stream: when simple_switch_grpc forgets is not certain to the digest."""
    controller = embedded.controller()
    yield controller, controller.become_primary()
    controller.close()


Learner = tuple[Controller, Stream]


def test_nothing_is_repeated_before_its_acknowledgement(learner: Learner) -> None:
    primary, stream = learner
    primary.insert(digest_entry(primary, max_list_size=1, ack_timeout_ns=60_000 * MS))
    learn(primary, stream, 1)
    first = stream.receive("digest")
    learn(primary, stream, 1, 2)
    second = stream.receive("digest")
    assert learned(second) == [2] and second.list_id != first.list_id
    assert stream.silent()
    stream.send(digest_ack=p4r.DigestListAck(digest_id=first.digest_id, list_id=first.list_id))
    learn(primary, stream, 2, 1)
    assert learned(stream.receive("digest")) == [1]


def test_nothing_is_withheld_after_the_acknowledgement_timeout(learner: Learner) -> None:
    primary, stream = learner
    primary.insert(digest_entry(primary, max_list_size=1, ack_timeout_ns=200 * MS))
    learn(primary, stream, 1)
    assert learned(stream.receive("digest")) == [1]

    def again() -> list[int] | None:
        learn(primary, stream, 1)
        return None if stream.silent(0.05) else [1]

    until(again, "the digest comes again")


def test_an_unacknowledged_list_is_forgotten_at_the_second_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in BMv2, which looks every ack timeout from the digest's configuration on; up4's suite depends on it."""
    clock = [100.0]
    sent: list[float] = []

    def deliver(message: p4r.StreamMessageResponse) -> bool:
        sent.append(clock[0])
        return True

    frozen = SimpleNamespace(monotonic=lambda: clock[0], time_ns=time.time_ns)
    monkeypatch.setattr("serene.switch.p4runtime.digests.time", frozen)
    info = load_p4info(P4INFO)
    lists = DigestLists(info, deliver)
    config = p4r.DigestEntry.Config(max_list_size=1, ack_timeout_ns=1000 * MS)
    lists.insert(p4r.DigestEntry(digest_id=info.digests[0].preamble.id, config=config))
    for clock[0] in (100.25, 101.35, 101.99, 102.0, 103.9, 104.0):
        lists.add("learned_t", (SOURCE, 1, 7))
    assert sent == [100.25, 102.0, 104.0]


def test_without_acknowledgements_everything_is_sent(learner: Learner) -> None:
    primary, stream = learner
    primary.insert(digest_entry(primary, max_list_size=1, ack_timeout_ns=0))
    for _ in range(3):
        learn(primary, stream, 1)
        assert learned(stream.receive("digest")) == [1]


def test_a_list_that_nobody_took_does_not_count_as_sent() -> None:
    sent: list[p4r.DigestList] = []
    anybody_there = False

    def deliver(message: p4r.StreamMessageResponse) -> bool:
        if anybody_there:
            sent.append(message.digest)
        return anybody_there

    info = load_p4info(P4INFO)
    lists = DigestLists(info, deliver)
    config = p4r.DigestEntry.Config(max_list_size=1, ack_timeout_ns=60_000 * MS)
    lists.insert(p4r.DigestEntry(digest_id=info.digests[0].preamble.id, config=config))
    lists.add("learned_t", (SOURCE, 1, 7))
    anybody_there = True
    lists.add("learned_t", (SOURCE, 1, 7))
    lists.add("learned_t", (SOURCE, 1, 7))
    assert [learned(message) for message in sent] == [[7]]


def test_digest_entries_there_and_not_there(target: Target, primary: Controller) -> None:
    entry = digest_entry(primary, max_list_size=5)
    for type_ in ("MODIFY", "DELETE"):
        assert primary.refused(type_, entry).codes == [Code.NOT_FOUND]
    primary.insert(entry)
    assert primary.refused("INSERT", entry).codes == [Code.ALREADY_EXISTS]
    assert primary.read(p4r.DigestEntry(digest_id=entry.digest_id)) == [entry]
    changed = digest_entry(primary, max_list_size=6)
    primary.modify(changed)
    assert primary.read(p4r.DigestEntry(digest_id=entry.digest_id)) == [changed]
    primary.delete(p4r.DigestEntry(digest_id=entry.digest_id))
    unknown = p4r.DigestEntry(digest_id=0x17ABCDEF)
    assert primary.refused("INSERT", unknown).codes == [target.either(Code.INVALID_ARGUMENT, Code.NOT_FOUND)]


def test_digest_entries_that_make_no_sense(embedded_primary: Controller) -> None:
    for config in ({"max_timeout_ns": -1}, {"max_list_size": -1}, {"ack_timeout_ns": -1}):
        failed = embedded_primary.refused("INSERT", digest_entry(embedded_primary, **config))
        assert failed.codes == [Code.INVALID_ARGUMENT] and "learned_t" in failed.messages[0]
    assert embedded_primary.read(p4r.DigestEntry()) == []


def test_acknowledging_what_is_not_there(embedded_primary: Controller, embedded: Target) -> None:
    controller = embedded.controller()
    stream = controller.become_primary()
    ack = p4r.DigestListAck(digest_id=0x17ABCDEF, list_id=1)
    stream.send(digest_ack=ack)
    error = stream.receive("error")
    assert error.canonical_code == Code.INVALID_ARGUMENT.value[0]
    assert error.digest_list_ack.digest_list_ack == ack
    stream.send(digest_ack=p4r.DigestListAck(digest_id=controller.id("digests", "learned_t"), list_id=1))
    assert stream.silent()  # late acknowledgements are no errors
    controller.close()
