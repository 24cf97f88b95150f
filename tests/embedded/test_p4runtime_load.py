"""The server under many, slow, fast and dead controllers."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from finsy.proto import p4r

from serene.embedded.p4runtime.arbitration import MAX_ROLES, MAX_STREAMS, MAX_UNIDENTIFIED, Arbitration, Session
from serene.embedded.p4runtime.device import Device
from tests.embedded.conftest import embedded_target
from tests.embedded.p4rt_controller import PATIENCE_S, Code, Stream, WriteFailed, load_p4info, until
from tests.embedded.p4rt_probe import CPU_PORT, JSON, P4INFO, Probe, Probing, packet_metadata

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
        until(
            lambda: sum(stream.done.is_set() for stream in streams) >= MAX_STREAMS - MAX_UNIDENTIFIED, "most are ended"
        )

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


class Probed:
    """A device that runs the probe. Its messages to controllers are in ``delivered``; ``first`` runs before each."""

    def __init__(self, first: Callable[[], None]) -> None:
        self._first, self.delivered = first, list[Probe]()
        self.device = Device([], cpu_port=CPU_PORT, drop_port=511, deliver=self._deliver)
        config = p4r.ForwardingPipelineConfig(p4info=load_p4info(P4INFO), p4_device_config=JSON.read_bytes())
        self.device.commit(self.device.load(config))

    def _deliver(self, message: p4r.StreamMessageResponse) -> bool:
        self._first()
        self.delivered.append(Probe.parse(message.packet.payload))
        return True

    def send(self, probe: Probe) -> None:
        metadata = packet_metadata(port=CPU_PORT, pad=0, mark=0)
        self.device.packet_out(p4r.PacketOut(payload=probe.frame(), metadata=metadata))


def test_failure_on_one_message_does_not_affect_the_next(caplog: pytest.LogCaptureFixture) -> None:
    failures = [RuntimeError("no room")]

    def fail_once() -> None:
        if failures:
            raise failures.pop()

    probed = Probed(fail_once)
    probed.send(Probe(b=1))
    until(lambda: not failures, "the first packet is reported")
    probed.send(Probe(b=2))
    until(lambda: probed.delivered, "the second one is, too")
    assert [probe.b for probe in probed.delivered] == [2] and "no room" in caplog.text
    probed.device.stop()


def test_packets_sent_before_stop_are_still_delivered() -> None:
    """Also those that arrive when no thread waits for events any more."""
    entered, released = threading.Event(), threading.Event()

    def wait() -> None:
        entered.set()
        assert released.wait(PATIENCE_S)

    probed = Probed(wait)
    probed.send(Probe(b=1))
    assert entered.wait(PATIENCE_S)
    switch = probed.device.running
    assert switch is not None
    probed.send(Probe(b=2))  # it is not delivered before the first one
    until(lambda: switch.counter_read("ProbeIngress.seen", 0).packets == 2, "the switch has forwarded it")
    stopping = threading.Thread(target=probed.device.stop)
    stopping.start()
    until(lambda: probed.device._stopping.is_set(), "the program is ending")
    released.set()
    stopping.join()
    assert [probe.b for probe in probed.delivered] == [1, 2]


def test_primaries_can_be_read_while_roles_are_added() -> None:
    """The thread that delivers packets reads them without the lock."""
    done, failed = threading.Event(), list[Exception]()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def read(arbitration: Arbitration) -> None:
        try:
            while not done.is_set():
                assert len(arbitration.primaries) <= MAX_ROLES
        except Exception as error:
            failed.append(error)

    arbitrations = [Arbitration(1) for _ in range(20)]
    try:
        for arbitration in arbitrations:
            done.clear()
            reader = threading.Thread(target=read, args=(arbitration,))
            reader.start()
            for role in range(MAX_ROLES):
                request = p4r.MasterArbitrationUpdate(device_id=1, role=p4r.Role(name=str(role + 1)))
                request.election_id.low = 1
                arbitration.update(Session(), request)
            done.set()
            reader.join()
            assert len(arbitration.primaries) == MAX_ROLES
    finally:
        done.set()
        sys.setswitchinterval(interval)
    assert not failed
