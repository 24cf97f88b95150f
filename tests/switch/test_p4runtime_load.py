"""The server under controllers that are many, slow, fast or gone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
from finsy.proto import p4r, p4r_grpc

from serene.switch.p4runtime.arbitration import AT_THE_DOOR, MAX_STREAMS
from tests.switch.conftest import embedded_target
from tests.switch.p4rt_controller import PATIENCE_S, Code, until
from tests.switch.p4rt_probe import JSON, Probe


def test_a_controller_that_does_not_read_harms_nobody() -> None:
    """Its packets are lost when too many wait; the server answers others meanwhile, and outlives its end."""
    with embedded_target() as target:
        slow = target.controller()
        requests: list[p4r.StreamMessageRequest] = []
        changed = threading.Condition()

        def outgoing() -> Iterator[p4r.StreamMessageRequest]:
            for sent in range(8000):
                with changed:
                    while len(requests) <= sent:
                        changed.wait()
                yield requests[sent]

        def send(message: p4r.StreamMessageRequest) -> None:
            with changed:
                requests.append(message)
                changed.notify()

        hello = p4r.StreamMessageRequest()
        hello.arbitration.device_id = slow.device_id
        hello.arbitration.election_id.CopyFrom(slow.election)
        call = slow.stub.StreamChannel(outgoing())  # nobody reads it: flow control stops the server's side
        send(hello)
        until(lambda: _may_write(slow), "the slow controller is primary")
        slow.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
        count = 6000
        metadata = [
            p4r.PacketMetadata(metadata_id=id_, value=value) for id_, value in ((1, b"\xff"), (2, b"\0"), (3, b"\0"))
        ]
        packet = p4r.PacketOut(payload=Probe(a=1).frame(b"x" * 9000), metadata=metadata)
        for _ in range(count):
            send(p4r.StreamMessageRequest(packet=packet))
        seen = p4r.CounterEntry(counter_id=slow.id("counters", "seen"), index=p4r.Index(index=1))
        until(lambda: slow.read_one(seen).data.packet_count >= count, "all packets are through the switch", 60)

        fresh = target.controller()
        stream = fresh.become_primary()
        call.cancel()
        slow.close()
        fresh.packet_out(stream, Probe(b=5).frame())
        assert Probe.parse(stream.receive("packet").payload).b == 5
        fresh.close()


def _may_write(controller) -> bool:  # type: ignore[no-untyped-def]
    try:
        controller.write()
    except Exception as error:
        return error.code is Code.FAILED_PRECONDITION  # type: ignore[attr-defined]  # primary, but no program yet
    return True


def test_more_controllers_than_fit_are_turned_away() -> None:
    with embedded_target() as target:
        late, *controllers = [target.controller() for _ in range(MAX_STREAMS + 1)]
        streams = [controller.become_primary() for controller in controllers]
        extra = late.stream()
        extra.introduce(late.election_id)
        assert extra.status() is Code.ALREADY_EXISTS
        assert extra.end_code() is Code.RESOURCE_EXHAUSTED
        # Calls that are no streams still have room.
        controllers[-1].set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
        assert late.read(late.default("by_exact"))
        streams[0].close()

        def room() -> bool:
            stream = late.stream()
            stream.introduce(late.election_id)
            stream.done.wait(0.1)
            return not stream.done.is_set()

        until(room, "there is room again")
        for controller in (late, *controllers):
            controller.close()


def test_the_primary_has_a_place_however_many_streams_there_are() -> None:
    """Streams that are silent, or backups, come before it and after it; only a higher election id ends its stream."""
    with embedded_target() as target:
        crowd, first, second = target.controller(), target.controller(), target.controller()

        def come() -> None:
            streams = [crowd.stream() for _ in range(2 * MAX_STREAMS)]
            for backup in streams[::2]:
                backup.introduce(None)
            until(
                lambda: sum(stream.done.is_set() for stream in streams) >= MAX_STREAMS - AT_THE_DOOR, "most are ended"
            )

        come()
        stream = first.become_primary()
        come()
        first.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
        first.packet_out(stream, Probe(b=5).frame())
        assert Probe.parse(stream.receive("packet").payload).b == 5
        second.become_primary()
        assert stream.end_code() is Code.RESOURCE_EXHAUSTED
        for controller in (crowd, first, second):
            controller.close()


def test_reads_during_writes_see_whole_batches() -> None:
    with embedded_target() as target:
        controller = target.controller()
        controller.become_primary()
        controller.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
        batch = [controller.entry("by_scoped", {"a": a}, "found_scoped", a) for a in range(50)]
        stop = threading.Event()

        def read() -> set[int]:
            reader = target.controller()
            sizes = set()
            while not stop.is_set():
                sizes.add(len(reader.read(reader.key("by_scoped"))))
            reader.close()
            return sizes

        with ThreadPoolExecutor(3) as pool:
            readers = [pool.submit(read) for _ in range(3)]
            for _ in range(40):
                controller.insert(*batch)
                controller.delete(*batch)
            stop.set()
            assert set().union(*(reader.result() for reader in readers)) <= {0, 50}
        controller.close()


def test_stopping_ends_streams_and_threads() -> None:
    before = set(threading.enumerate())
    with embedded_target() as target:
        controller = target.controller()
        stream = controller.become_primary()
        controller.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
        backup = controller.stream()
        backup.introduce(1)
        backup.status()
    assert stream.done.wait(PATIENCE_S) and backup.done.wait(PATIENCE_S)
    controller.close()
    until(
        lambda: not {t for t in set(threading.enumerate()) - before if "p4runtime" in t.name}, "the threads have ended"
    )


def test_programs_are_replaced_while_packets_flow() -> None:
    with embedded_target() as target:
        controller = target.controller()
        stream = controller.become_primary()
        controller.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
        stop = threading.Event()

        def flood() -> None:
            while not stop.wait(0.0005):  # no more of them than the other side reads
                controller.packet_out(stream, Probe(b=1).frame())

        sender = threading.Thread(target=flood)
        sender.start()
        for _ in range(10):
            controller.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
        stop.set()
        sender.join()
        stream.send(packet=p4r.PacketOut(payload=b"last"))  # without metadata: an error marks the end

        while (message := stream.next_message()).WhichOneof("update") != "error":
            assert Probe.parse(message.packet.payload).b == 1
        assert "mark" in message.error.message
        controller.close()


def test_garbage_on_the_port_is_not_answered() -> None:
    """Not HTTP/2, or not P4Runtime: the server refuses and goes on."""
    import socket

    with embedded_target() as target:
        host, port = target.address.split(":")
        with socket.create_connection((host, int(port))) as raw:
            raw.sendall(b"GET / HTTP/1.1\r\n\r\n" * 100)
        with grpc.insecure_channel(target.address) as channel:
            call = channel.unary_unary("/p4.v1.P4Runtime/Write", lambda data: data, p4r.WriteResponse.FromString)
            try:
                call(b"\xff\xff\xff\xff", timeout=60)
            except grpc.RpcError as error:
                assert error.code() in (Code.INTERNAL, Code.UNKNOWN, Code.INVALID_ARGUMENT)
            else:
                raise AssertionError("the server takes bytes that are no message")
            assert p4r_grpc.P4RuntimeStub(channel).Capabilities(p4r.CapabilitiesRequest(), timeout=60)
