"""Bounds on what a controller may request, and on what the switch sends."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from finsy.proto import p4d, p4r

from serene.embedded import engine
from serene.embedded.control import types as control
from serene.embedded.p4runtime import service
from serene.embedded.p4runtime.arbitration import WAITING_NOTICES, Session
from serene.embedded.p4runtime.device import Device, Pipeline
from serene.embedded.p4runtime.parts import MESSAGE_BYTES, MESSAGE_ITEMS, parts_of
from serene.embedded.p4runtime.replication import _replicas
from serene.embedded.p4runtime.service import P4RuntimeServer
from serene.embedded.p4runtime.status import Failure, batch_status, invalid, shortened
from tests.embedded.conftest import Target
from tests.embedded.p4rt_controller import Code, but, multicast_group, refused, until
from tests.embedded.p4rt_probe import Probe, Probing


def notice(number: int) -> p4r.StreamMessageResponse:
    message = p4r.StreamMessageResponse()
    message.arbitration.election_id.low = number
    return message


def test_unread_notices_are_bounded_and_the_latest_arrives() -> None:
    session = Session()
    for number in range(10_000):
        session.notify(notice(number))
    session.close()
    arrived = [message.arbitration.election_id.low for message in session.messages()]
    assert len(arrived) == WAITING_NOTICES
    assert arrived[:-1] == list(range(WAITING_NOTICES - 1)) and arrived[-1] == 9_999


def test_notices_keep_their_order_among_other_messages() -> None:
    session = Session()
    for number in range(3):
        session.notify(notice(number))
        session.offer(p4r.StreamMessageResponse(packet=p4r.PacketIn(payload=b"x")))
    read = session.messages()
    assert [next(read).WhichOneof("update") for _ in range(6)] == ["arbitration", "packet"] * 3
    for number in range(WAITING_NOTICES):  # those that were read left room
        session.notify(notice(100 + number))
    session.close()
    assert [message.arbitration.election_id.low for message in read] == [100 + n for n in range(WAITING_NOTICES)]


def test_unread_large_messages_are_bounded() -> None:
    session = Session()
    large = p4r.StreamMessageResponse(packet=p4r.PacketIn(payload=bytes(1 << 20)))
    taken = [session.offer(large) for _ in range(40)]
    assert session.lost == taken.count(False) and 10 < taken.count(True) < 17
    session.notify(notice(1))  # never lost
    session.close()
    assert [message.WhichOneof("update") for message in session.messages()][-1] == "arbitration"


def test_message_is_undelivered_if_every_primary_queue_is_full() -> None:
    server = P4RuntimeServer([], address="127.0.0.1:0")
    reading, slow = Session(), Session()
    large = p4r.StreamMessageResponse(packet=p4r.PacketIn(payload=bytes(1 << 20)))
    while slow.offer(large):
        pass
    message = p4r.StreamMessageResponse(digest=p4r.DigestList(data=[p4d.P4Data(bitstring=bytes(1 << 20))]))
    for primaries, delivered in (((), False), ((slow,), False), ((slow, reading), True)):
        server._arbitration._primaries = primaries
        assert server._deliver(message) is delivered
    server.stop()


def test_packets_lost_to_full_queue_are_logged(
    fresh: Target, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither the controller nor a counter shows them."""
    go_on = threading.Event()
    hand_over = Device._hand_over
    running: list[engine.Switch] = []

    def later(self: Device, events: control.Events, pipeline: Pipeline | None) -> None:
        running.extend([self.running] if self.running is not None and not running else [])
        assert go_on.wait(60)
        hand_over(self, events, pipeline)

    monkeypatch.setattr(Device, "_hand_over", later)
    with fresh.controller() as controller:
        controller.primary()
        for _ in range(600):
            controller.packet_out(Probe().frame(bytes(9000)))
        until(lambda: any(switch.lost_events for switch in running), "some are lost")
        go_on.set()
        until(lambda: "were lost: too many at once" in caplog.text, "it is logged")


def test_largest_group_is_accepted_and_a_repeated_or_further_replica_refused() -> None:
    many = [p4r.Replica(egress_port=n % 500, instance=n) for n in range(engine.MAX_REPLICAS)]
    assert len(_replicas(many)) == engine.MAX_REPLICAS
    with pytest.raises(Failure, match="two replicas with port 7 and instance 7"):
        _replicas([*many[:-1], many[7]])
    with pytest.raises(Failure, match=f"at most {engine.MAX_REPLICAS}"):
        _replicas([*many, p4r.Replica(egress_port=1, instance=40_000)])


@pytest.mark.parametrize("text", ["x" * 10**6, "ü" * 10**6, "\0\n\x1b" * 10**5, "%" * 5000, "𝐱" * 1000])
def test_error_messages_are_short_whatever_they_quote(text: str) -> None:
    message = invalid(f"begin {text} expected the end").message
    assert len(message) <= 1000 and message.isascii()
    assert message.startswith("begin") and message.endswith("expected the end")
    assert shortened("as it is") == "as it is"


@pytest.mark.parametrize("updates", [1, 3, 100, 1000, 60_000])
def test_batch_status_fits_the_grpc_trailers(updates: int) -> None:
    results: list[Failure | None] = [invalid("%" * 5000), None] * ((updates + 1) // 2)
    message, details = batch_status(results)
    encoded = sum(3 if character in "%\n" else 1 for character in message)
    assert encoded + len(details) * 4 // 3 < 16 << 10 and len(details) <= 4500


def test_failed_bulk_write_status_fits_grpc_metadata_limit(ours: Probing) -> None:
    """gRPC clients lose a status larger than their limit on metadata, by default 8 KiB."""
    bad = but(ours.scoped(1), "match.0.exact.value", b"\xff" * 10_000)
    assert "300 of 300 updates failed" in refused(Code.UNKNOWN, ours.insert, *[bad] * 300)
    many = service.MAX_UPDATES + 1
    assert str(service.MAX_UPDATES) in refused(Code.INVALID_ARGUMENT, ours.write, *[p4r.Update()] * many)
    assert str(service.MAX_UPDATES) in refused(Code.INVALID_ARGUMENT, ours.read, *[ours.key("by_exact")] * many)


def test_read_limits_table_entries_scanned(ours: Probing, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry named by match and priority is looked up; otherwise all entries of the table are scanned."""
    monkeypatch.setattr(service, "MAX_LOOKED_AT", 50)
    scoped, ternary = [ours.scoped(a, a) for a in range(30)], [ours.ternary(b, 255, b) for b in range(1, 31)]
    ours.insert(*scoped, *ternary)
    given = [ours.scoped(a) for a in range(20, 70)]
    given += [ours.key("by_ternary", {"b": (b, 255)}, 1) for b in range(21, 71)]
    assert [entry.action for entry in ours.read(*given)] == [entry.action for entry in scoped[20:] + ternary[20:]]
    open_, absent = ours.key("by_ternary", {"b": (99, 255)}), ours.key("by_ternary", priority=2)
    assert ours.read(open_) == []
    for wanted in (open_, absent, p4r.DirectCounterEntry(table_entry=absent)):
        message = refused(Code.RESOURCE_EXHAUSTED, ours.read, wanted, wanted)
        assert "more than 50 table entries to look at" in message
    assert len(ours.read(ours.key("by_ternary"))) == 30


def test_other_requests_are_served_while_a_program_compiles(alone: Probing, monkeypatch: pytest.MonkeyPatch) -> None:
    compiling, done = threading.Event(), threading.Event()
    load = engine.Switch.load

    def slow(*arguments: Any, **options: Any) -> engine.Switch:
        compiling.set()
        assert done.wait(60)
        return load(*arguments, **options)

    monkeypatch.setattr(engine.Switch, "load", slow)
    setting = threading.Thread(target=alone.push)
    setting.start()
    assert compiling.wait(60)
    alone.insert(alone.scoped(1, 1))  # times out where the lock is held
    assert alone.read(alone.key("by_scoped")) == [alone.scoped(1, 1)]
    backup = alone.stream()
    backup.introduce(1)  # a stream is served meanwhile, too
    assert backup.status() is Code.ALREADY_EXISTS
    done.set()
    setting.join()


# -- answers are cut by their bytes, too ------------------------------------------------------------------------------

CLIENT_BYTES = 4 << 20  # that one of gRPC takes by default


def entries(count: int, metadata_bytes: int) -> list[p4r.TableEntry]:
    return [p4r.TableEntry(table_id=number, metadata=bytes(metadata_bytes)) for number in range(1, count + 1)]


def test_parts_of_a_read_contain_all_entries_in_order() -> None:
    for given in ([], entries(1, 0), entries(MESSAGE_ITEMS + 1, 0), entries(100, 1 << 15), entries(2, 2 << 20)):
        parts = list(parts_of(given))
        assert [entry for part in parts for entry in part] == given
        assert all(part for part in parts)
        for part in parts:
            answer = p4r.ReadResponse(entities=[p4r.Entity(table_entry=entry) for entry in part])
            assert len(part) == 1 or answer.ByteSize() < 2 * MESSAGE_BYTES
    assert [len(part) for part in parts_of(entries(MESSAGE_ITEMS + 1, 0))] == [MESSAGE_ITEMS, 1]


def test_large_groups_are_read_in_messages_that_clients_accept(ours: Probing) -> None:
    first = multicast_group(1, *((port % 500, port) for port in range(32768)))
    written = [but(first, "multicast_group_entry.multicast_group_id", group) for group in range(1, 21)]
    for one in written:
        ours.insert(one)
    assert sum(one.ByteSize() for one in written) > CLIENT_BYTES
    assert ours.read(multicast_group(0)) == written
