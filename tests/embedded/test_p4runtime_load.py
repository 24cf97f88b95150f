"""The server under many, slow, fast and dead controllers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import grpc
from finsy.proto import p4r, p4r_grpc

from serene.embedded.p4runtime.arbitration import AT_THE_DOOR, MAX_STREAMS
from tests.embedded.conftest import Target, embedded_target
from tests.embedded.p4rt_controller import PATIENCE_S, Code, Stream, WriteFailed, until
from tests.embedded.p4rt_probe import Probe, Probing

Make = Callable[[], Probing]


class Deaf(Stream):
    """A stream that is never read: flow control stops the server's side."""

    def _read(self) -> None:
        self.done.set()


def test_controller_that_does_not_read_affects_no_other(new: Make) -> None:
    """Its packets are lost when too many wait. The server meanwhile answers others, and survives the controller's
    end."""
    slow, other, count = new(), new(), 6000
    slow.messages = Deaf(slow.stub, slow.device_id)
    slow.messages.introduce(slow.election_id)
    until(lambda: may_write(slow), "the slow controller is primary")
    slow.push()
    for _ in range(count):
        slow.packet_out(Probe(a=1).frame(b"x" * 9000))
    seen = slow.counter("seen", 1)
    until(lambda: slow.counts(seen)[0] >= count, "all packets are through the switch")
    other.become_primary()
    slow.messages.close()
    assert other.send(Probe(b=5)).b == 5


def may_write(controller: Probing) -> bool:
    try:
        controller.write()
    except WriteFailed as error:
        return error.code is Code.FAILED_PRECONDITION  # primary, but no program yet
    return True


def test_controllers_beyond_the_limit_are_refused(new: Make) -> None:
    late, *controllers = [new() for _ in range(MAX_STREAMS + 1)]
    for controller in controllers:
        controller.become_primary()
    extra = late.stream()
    extra.introduce(late.election_id)
    assert extra.status() is Code.ALREADY_EXISTS
    assert extra.end_code() is Code.RESOURCE_EXHAUSTED
    # Calls that are no streams still have room.
    controllers[-1].push()
    assert late.read(late.default("by_exact"))
    controllers[0].messages.close()

    def room() -> bool:
        stream = late.stream()
        stream.introduce(late.election_id)
        return not stream.done.wait(0.1)

    until(room, "there is room again")


def test_primary_is_accepted_however_many_streams_are_open(new: Make) -> None:
    """Silent streams and backups come before and after it; only a higher election id ends its stream."""
    crowd, first, second = new(), new(), new()

    def come() -> None:
        streams = [crowd.stream() for _ in range(2 * MAX_STREAMS)]
        for backup in streams[::2]:
            backup.introduce(None)
        until(lambda: sum(stream.done.is_set() for stream in streams) >= MAX_STREAMS - AT_THE_DOOR, "most are ended")

    come()
    first.become_primary()
    come()
    first.push()
    assert first.send(Probe(b=5)).b == 5
    second.become_primary()
    assert first.messages.end_code() is Code.RESOURCE_EXHAUSTED


def test_reads_during_writes_see_whole_batches(new: Make) -> None:
    controller, readers = new().primary(), [new() for _ in range(3)]
    batch = [controller.scoped(a, a) for a in range(50)]
    stop = threading.Event()

    def read(reader: Probing) -> set[int]:
        sizes = set()
        while not stop.is_set():
            sizes.add(len(reader.read(reader.key("by_scoped"))))
        return sizes

    with ThreadPoolExecutor(3) as pool:
        reading = [pool.submit(read, reader) for reader in readers]
        try:
            for _ in range(40):
                controller.insert(*batch)
                controller.delete(*batch)
        finally:
            stop.set()
        assert set().union(*(sizes.result() for sizes in reading)) <= {0, 50}


def test_server_stop_ends_streams_and_threads() -> None:
    before = set(threading.enumerate())
    with embedded_target() as target:
        controller = target.controller().primary()
        backup = controller.stream()
        backup.introduce(1)
        backup.status()
    assert controller.messages.done.wait(PATIENCE_S) and backup.done.wait(PATIENCE_S)
    controller.close()
    until(
        lambda: not {t for t in set(threading.enumerate()) - before if "p4runtime" in t.name}, "the threads have ended"
    )


def test_program_is_replaced_while_packets_flow(alone: Probing) -> None:
    stop = threading.Event()

    def flood() -> None:
        while not stop.wait(0.0005):  # no more of them than the other side reads
            alone.packet_out(Probe(b=1))

    sender = threading.Thread(target=flood)
    sender.start()
    for _ in range(10):
        alone.push()
    stop.set()
    sender.join()
    alone.messages.send(packet=p4r.PacketOut(payload=b"last"))  # without metadata: an error marks the end
    while (message := alone.messages.next_message()).WhichOneof("update") != "error":
        assert Probe.parse(message.packet.payload).b == 1
    assert "mark" in message.error.message


def test_garbage_on_the_port_is_refused_and_others_are_served(fresh: Target) -> None:
    """The bytes are not HTTP/2, or not P4Runtime."""
    host, port = fresh.address.split(":")
    with socket.create_connection((host, int(port))) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\n\r\n" * 100)
    with grpc.insecure_channel(fresh.address) as channel:
        call = channel.unary_unary("/p4.v1.P4Runtime/Write", lambda data: data, p4r.WriteResponse.FromString)
        try:
            call(b"\xff\xff\xff\xff", timeout=60)
        except grpc.RpcError as error:
            assert error.code() in (Code.INTERNAL, Code.UNKNOWN, Code.INVALID_ARGUMENT)
        else:
            raise AssertionError("the server takes bytes that are no message")
        assert p4r_grpc.P4RuntimeStub(channel).Capabilities(p4r.CapabilitiesRequest(), timeout=60)
