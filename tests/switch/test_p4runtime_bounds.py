"""What a controller can ask for, and make the switch say, is bounded."""

from __future__ import annotations

import threading

import grpc
import pytest
from finsy.proto import p4d, p4r

from serene.switch import control, engine
from serene.switch.p4runtime import service
from serene.switch.p4runtime.arbitration import WAITING_NOTICES, Session
from serene.switch.p4runtime.device import Device, Pipeline
from serene.switch.p4runtime.replication import _replicas
from serene.switch.p4runtime.service import P4RuntimeServer
from serene.switch.p4runtime.status import Failure, batch_status, invalid, shortened
from tests.switch.conftest import embedded_target
from tests.switch.p4rt_controller import Code, Controller, WriteFailed, until
from tests.switch.p4rt_probe import JSON, Probe


def notice(number: int) -> p4r.StreamMessageResponse:
    message = p4r.StreamMessageResponse()
    message.arbitration.election_id.low = number
    return message


def test_notices_that_nobody_reads_do_not_pile_up_and_the_latest_arrives() -> None:
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


def test_large_messages_do_not_pile_up_either() -> None:
    session = Session()
    taken = [session.offer(p4r.StreamMessageResponse(packet=p4r.PacketIn(payload=bytes(1 << 20)))) for _ in range(1000)]
    assert session.lost == taken.count(False) > 980
    session.notify(notice(1))  # never lost
    session.close()
    assert [message.WhichOneof("update") for message in session.messages()][-1] == "arbitration"


def test_what_no_controller_had_room_for_is_not_delivered() -> None:
    server = P4RuntimeServer([], address="127.0.0.1:0")
    reading, slow = Session(), Session()
    while slow.offer(p4r.StreamMessageResponse(packet=p4r.PacketIn(payload=bytes(1 << 20)))):
        pass
    message = p4r.StreamMessageResponse(digest=p4r.DigestList(data=[p4d.P4Data(bitstring=bytes(1 << 20))]))
    for primaries, delivered in (((), False), ((slow,), False), ((slow, reading), True)):
        server._arbitration._primaries = primaries
        assert server._deliver(message) is delivered
    server.stop()


def test_packets_that_find_no_room_are_told_of_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither the controller nor a count tells of them."""
    go_on = threading.Event()
    hand_over = Device._hand_over

    running: list[engine.Switch] = []

    def later(self: Device, events: control.Events, pipeline: Pipeline | None) -> None:
        running.extend([self.running] if self.running is not None and not running else [])
        assert go_on.wait(60)
        hand_over(self, events, pipeline)

    monkeypatch.setattr(Device, "_hand_over", later)
    with embedded_target() as target:
        controller = target.controller()
        stream = controller.become_primary()
        controller.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
        for _ in range(600):
            controller.packet_out(stream, Probe().frame(bytes(9000)))
        until(lambda: any(switch.lost_events for switch in running), "some are lost")
        go_on.set()
        until(lambda: "are lost: too many came at once" in caplog.text, "the log tells")
        controller.close()


def test_replicas_are_checked_in_one_pass() -> None:
    """Counted, not timed: each replica is compared by its hash only."""
    many = [p4r.Replica(egress_port=n % 500, instance=n) for n in range(engine.MAX_REPLICAS)]
    assert len(_replicas(many)) == engine.MAX_REPLICAS
    with pytest.raises(Failure, match="two replicas with port 7 and instance 7"):
        _replicas([*many[:-1], many[7]])
    with pytest.raises(Failure, match=f"at most {engine.MAX_REPLICAS}"):
        _replicas([*many, p4r.Replica(egress_port=1, instance=40_000)])


@pytest.mark.parametrize("text", ["x" * 10**6, "ü" * 10**6, "\0\n\x1b" * 10**5, "%" * 5000, "𝐱" * 1000])
def test_messages_are_short_whatever_they_repeat(text: str) -> None:
    message = invalid(f"begin {text} expected the end").message
    assert len(message) <= 1000 and message.isascii()
    assert message.startswith("begin") and message.endswith("expected the end")
    assert shortened("as it is") == "as it is"


@pytest.mark.parametrize("updates", [1, 3, 100, 1000, 60_000])
def test_a_batch_s_status_fits_the_trailers(updates: int) -> None:
    results: list[Failure | None] = [invalid("%" * 5000), None] * ((updates + 1) // 2)
    message, details = batch_status(results)
    encoded = sum(3 if character in "%\n" else 1 for character in message)
    assert encoded + len(details) * 4 // 3 < 16 << 10 and len(details) <= 4500


def test_a_failed_write_of_many_updates_is_told() -> None:
    with embedded_target() as target:
        controller = target.controller()
        controller.become_primary()
        controller.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
        bad = p4r.TableEntry(table_id=controller.id("tables", "by_scoped"))
        bad.match.add(field_id=1).exact.value = b"\xff" * 100_000
        with pytest.raises(WriteFailed) as failed:
            controller.insert(*[bad] * 300)
        assert failed.value.code is Code.UNKNOWN and "300 of 300 updates failed" in failed.value.message
        with pytest.raises(WriteFailed) as refused:
            controller.write(*[p4r.Update()] * (service.MAX_UPDATES + 1))
        assert refused.value.code is Code.INVALID_ARGUMENT and str(service.MAX_UPDATES) in refused.value.message
        with pytest.raises(grpc.RpcError) as asked:
            controller.read(*[controller.key("by_exact")] * (service.MAX_UPDATES + 1))
        assert asked.value.code() is Code.INVALID_ARGUMENT and str(service.MAX_UPDATES) in asked.value.details()
        controller.close()


def test_a_read_s_work_is_bounded_not_what_it_finds_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What match and priority name is looked up; where one is left out all of a table's entries are looked at."""
    monkeypatch.setattr(service, "MAX_LOOKED_AT", 50)
    with embedded_target() as target:
        controller = target.controller()
        controller.become_primary()
        controller.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
        scoped = [controller.entry("by_scoped", {"a": a}, "found_scoped", a) for a in range(30)]
        ternary = [
            controller.entry("by_ternary", {"b": (b, 255)}, "found_ternary", b, priority=1) for b in range(1, 31)
        ]
        controller.insert(*scoped, *ternary)
        given = [controller.key("by_scoped", {"a": a}) for a in range(20, 70)]
        given += [controller.key("by_ternary", {"b": (b, 255)}, 1) for b in range(21, 71)]
        assert [entry.action for entry in controller.read(*given)] == [e.action for e in scoped[20:] + ternary[20:]]
        open_ = controller.key("by_ternary", {"b": (99, 255)})
        assert controller.read(open_) == []
        direct = p4r.DirectCounterEntry(table_entry=p4r.TableEntry(priority=2, table_id=open_.table_id))
        absent = controller.key("by_ternary", priority=2)
        for wanted in ([open_] * 2, [absent] * 2, [direct] * 2):
            with pytest.raises(grpc.RpcError) as failed:
                controller.read(*wanted)
            assert failed.value.code() is Code.RESOURCE_EXHAUSTED
            assert "more than 50 table entries to look at" in failed.value.details()
        assert len(controller.read(controller.key("by_ternary"))) == 30
        controller.close()


def test_a_message_that_is_too_large_is_refused() -> None:
    with embedded_target() as target:
        controller = target.controller()
        controller.become_primary()
        with pytest.raises(grpc.RpcError) as failed:
            controller.set_pipeline("VERIFY", bytes(100 << 20))
        assert failed.value.code() is Code.RESOURCE_EXHAUSTED
        controller.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
        controller.close()


def test_others_are_served_while_a_program_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    compiling, done = threading.Event(), threading.Event()
    load = engine.Switch.load

    def slow(*arguments, **options):  # type: ignore[no-untyped-def]
        compiling.set()
        assert done.wait(60)
        return load(*arguments, **options)

    with embedded_target() as target:
        controller = target.controller()
        controller.become_primary()
        controller.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
        monkeypatch.setattr(engine.Switch, "load", slow)
        setting = threading.Thread(target=controller.set_pipeline, args=("VERIFY_AND_COMMIT", JSON.read_bytes()))
        setting.start()
        assert compiling.wait(60)
        entry = controller.entry("by_scoped", {"a": 1}, "found_scoped", 1)
        controller.insert(entry)  # times out where the lock is held
        assert controller.read(controller.key("by_scoped")) == [entry]
        takes_over(target.controller())
        done.set()
        setting.join()
        controller.close()


def takes_over(controller: Controller) -> None:
    """A stream is served meanwhile, too."""
    backup = controller.stream()
    backup.introduce(1)
    assert backup.status() is Code.ALREADY_EXISTS
    controller.close()


def test_a_type_that_holds_itself() -> None:
    with embedded_target() as target:
        controller = target.controller()
        controller.become_primary()
        p4info = type(controller.p4info)()
        p4info.CopyFrom(controller.p4info)
        digest = p4info.digests[0]
        digest.type_spec.struct.name = "loop"
        p4info.type_info.structs["loop"].members.add(name="m").type_spec.struct.name = "loop"
        for change in (p4info, bad_metadata(controller, 2**31 - 1), bad_metadata(controller, -1)):
            with pytest.raises(grpc.RpcError) as failed:
                controller.set_pipeline("VERIFY", JSON.read_bytes(), change)
            assert failed.value.code() is Code.INVALID_ARGUMENT, failed.value.details()
        controller.close()


def bad_metadata(controller: Controller, bits: int):  # type: ignore[no-untyped-def]
    p4info = type(controller.p4info)()
    p4info.CopyFrom(controller.p4info)
    p4info.controller_packet_metadata[0].metadata[0].bitwidth = bits
    return p4info
