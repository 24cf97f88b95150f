"""Packets and digests reach controllers: after a failure on one message, and when their program ends."""

from __future__ import annotations

import sys
import threading

import pytest
from finsy.proto import p4r

from serene.embedded.p4runtime.arbitration import MAX_ROLES, Arbitration, Session
from serene.embedded.p4runtime.device import Device
from tests.embedded.p4rt_controller import PATIENCE_S, load_p4info, until
from tests.embedded.p4rt_probe import CPU_PORT, JSON, P4INFO, Probe, packet_metadata


class Probed:
    """A device that runs the probe. Its messages to controllers wait in ``told``, if ``first`` allows it."""

    def __init__(self) -> None:
        self.told: list[Probe] = []
        self.device = Device([], cpu_port=CPU_PORT, drop_port=511, deliver=self._deliver)
        config = p4r.ForwardingPipelineConfig(p4info=load_p4info(P4INFO), p4_device_config=JSON.read_bytes())
        self.device.commit(self.device.load(config))

    def first(self) -> None:
        """Runs before each message is recorded."""

    def _deliver(self, message: p4r.StreamMessageResponse) -> bool:
        self.first()
        self.told.append(Probe.parse(message.packet.payload))
        return True

    def send(self, probe: Probe) -> None:
        metadata = packet_metadata(port=CPU_PORT, pad=0, mark=0)
        self.device.packet_out(p4r.PacketOut(payload=probe.frame(), metadata=metadata))


def test_failure_on_one_message_does_not_affect_the_next(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Probed):
        failed = False

        def first(self) -> None:
            if not self.failed:
                self.failed = True
                raise RuntimeError("no room")

    probed = Failing()
    probed.send(Probe(b=1))
    until(lambda: probed.failed, "the first packet is told of")
    probed.send(Probe(b=2))
    until(lambda: probed.told, "the second one is, too")
    assert [probe.b for probe in probed.told] == [2] and "no room" in caplog.text
    probed.device.stop()


def test_packets_sent_before_stop_are_still_delivered() -> None:
    """Also those that arrive when no thread waits for events any more."""
    entered, released = threading.Event(), threading.Event()

    class Waiting(Probed):
        def first(self) -> None:
            entered.set()
            assert released.wait(PATIENCE_S)

    probed = Waiting()
    probed.send(Probe(b=1))
    assert entered.wait(PATIENCE_S)
    switch = probed.device.running
    assert switch is not None
    probed.send(Probe(b=2))  # nobody is told of it before the first one is
    until(lambda: switch.counter_read("ProbeIngress.seen", 0).packets == 2, "the switch has forwarded it")
    stopping = threading.Thread(target=probed.device.stop)
    stopping.start()
    until(lambda: probed.device._stopping.is_set(), "the program is ending")
    released.set()
    stopping.join()
    assert [probe.b for probe in probed.told] == [1, 2]


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
