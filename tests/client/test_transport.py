"""The two transports: UDP sockets of the kernel, and whole frames. Both carry the same payloads."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import numpy as np
import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from serene.client import Client, NoAnswer
from serene.client.transport.transport import FrameTransport, TransportError, UdpTransport
from serene.layers import Serene
from serene.wire import ENCAPSULATION_BYTES, SERENE_UDP_PORT, SWITCH_IP, SWITCH_MAC, encapsulation, push_payloads
from tests.ports import bind_somewhere
from tests.support.descriptors import MOST_OF_SELECT, many_open

PAYLOADS = push_payloads(np.arange(960, dtype=np.int32).reshape(3, 320), job=1, worker=2, session=3, epoch=4, seq=5)
WORKER = ("02:00:00:00:00:03", "10.0.0.3", 40000)
SWITCH = (SWITCH_MAC, SWITCH_IP, SERENE_UDP_PORT)


@pytest.fixture
def peer() -> Iterator[socket.socket]:
    """A socket in the switch's place."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
        here.bind(("127.0.0.1", 0))
        here.settimeout(60)
        yield here


@pytest.fixture
def frames(peer: socket.socket) -> Iterator[FrameTransport]:
    transport = FrameTransport(2, local=("127.0.0.1", 0), switch=peer.getsockname())
    yield transport
    transport.close()


@pytest.fixture
def kernel() -> Iterator[tuple[UdpTransport, socket.socket]]:
    """A worker's transport, and a socket on Serene's port of a loopback address of its own."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as switch:
        address = bind_somewhere(switch, SERENE_UDP_PORT)
        switch.settimeout(60)
        transport = UdpTransport(address, bind_ip="127.0.0.1")
        yield transport, switch
        transport.close()


def test_frame_transport_builds_complete_frames(frames: FrameTransport, peer: socket.socket) -> None:
    frames.send(PAYLOADS[:1])
    data = peer.recv(9999)
    packet = Ether(data)
    assert (packet.src, packet.dst) == (WORKER[0], SWITCH_MAC)
    assert (packet[IP].src, packet[IP].dst, packet[IP].len) == (WORKER[1], SWITCH_IP, len(data) - 14)
    assert (packet[UDP].sport, packet[UDP].dport, packet[UDP].len) == (40000, SERENE_UDP_PORT, len(data) - 34)
    assert packet[Serene].worker == 2 and data[ENCAPSULATION_BYTES:] == PAYLOADS[0].tobytes()
    checksum = packet[IP].chksum
    del packet[IP].chksum
    assert Ether(bytes(packet))[IP].chksum == checksum


def test_udp_transport_sends_payloads_and_receives_a_batch(kernel: tuple[UdpTransport, socket.socket]) -> None:
    transport, switch = kernel
    transport.send(PAYLOADS)
    arrived = [switch.recvfrom(9999) for _ in PAYLOADS]
    assert [data for data, _ in arrived] == [payload.tobytes() for payload in PAYLOADS]
    worker = arrived[0][1]
    sent = [PAYLOADS[0].tobytes(), b"short", PAYLOADS[2].tobytes()]
    for data in sent:
        switch.sendto(data, worker)
    rows, lengths = transport.receive(5)
    assert [row[:length].tobytes() for row, length in zip(rows, lengths, strict=True)] == sent


def test_frame_transport_ignores_frames_for_others(frames: FrameTransport, peer: socket.socket) -> None:
    frames.send(PAYLOADS[:1])
    _, worker = peer.recvfrom(9999)
    answer = PAYLOADS[1].tobytes()
    ours = encapsulation(len(answer), source=SWITCH, destination=WORKER) + answer
    elsewhere = encapsulation(len(answer), source=SWITCH, destination=(*WORKER[:2], 40001)) + answer
    other = encapsulation(len(answer), source=(*SWITCH[:2], 53), destination=WORKER) + answer
    arp = bytes.fromhex("ffffffffffff0200000000050806") + bytes(46)
    for frame in (elsewhere, arp, b"x", other, ours):
        peer.sendto(frame, worker)
    got: list[bytes] = []
    while not got:
        rows, lengths = frames.receive(5)
        got += [row[:length].tobytes() for row, length in zip(rows, lengths, strict=True)]
    assert got == [answer]


def test_missing_welcome_names_the_addresses_of_the_packets(kernel: tuple[UdpTransport, socket.socket]) -> None:
    """A wrong address of the switch is the most likely reason."""
    transport, switch = kernel
    with pytest.raises(NoAnswer) as caught:
        Client(transport, job=0, worker=0, vector_length=1).join(timeout_s=0.1)
    source, here = switch.recvfrom(9999)[1], switch.getsockname()
    route = f"UDP from {source[0]}:{source[1]} to {here[0]}:{here[1]}"
    assert str(caught.value).endswith(f"check that the controller runs and that {route} reaches the switch")


def test_sending_to_an_absent_switch_is_a_loss(peer: socket.socket) -> None:
    address = peer.getsockname()
    peer.close()
    transport = FrameTransport(0, local=("127.0.0.1", 0), switch=address)
    for _ in range(3):
        transport.send(PAYLOADS)
        assert len(transport.receive(0.01)[0]) == 0
    transport.close()


def test_transport_error_names_a_port_in_use(peer: socket.socket) -> None:
    with pytest.raises(TransportError, match=rf"127.0.0.1.*{peer.getsockname()[1]}.*Address already in use"):
        UdpTransport("127.0.0.1", bind_ip="127.0.0.1", port=peer.getsockname()[1])


def test_frame_transport_sends_from_an_inherited_socket(peer: socket.socket) -> None:
    """A worker without Mininet sends from the port that was reserved for it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as kept:
        kept.bind(("127.0.0.1", 0))
        transport = FrameTransport(0, local=os.dup(kept.fileno()), switch=peer.getsockname())
        transport.send(PAYLOADS[:1])
        assert peer.recvfrom(9999)[1] == kept.getsockname()
        transport.close()


@pytest.mark.parametrize(("kind", "why"), [("closed", "is no socket: Bad file"), ("pipe", "operation on non-socket")])
def test_transport_error_names_a_bad_descriptor(peer: socket.socket, kind: str, why: str) -> None:
    here, there = os.pipe()
    os.close(there)
    if kind == "closed":
        os.close(here)
    with pytest.raises(TransportError, match=rf"{here}.*{why}"):
        FrameTransport(0, local=here, switch=peer.getsockname())


def test_transport_works_with_many_open_files(peer: socket.socket) -> None:
    with many_open():
        transport = FrameTransport(2, local=("127.0.0.1", 0), switch=peer.getsockname())
        try:
            link = transport.link(PAYLOADS.shape[1])
            assert link is not None and link.descriptor >= MOST_OF_SELECT
            assert not len(transport.receive(0.0)[0])
            transport.send(PAYLOADS[:1])
            _, back = peer.recvfrom(9999)
            answer = encapsulation(PAYLOADS.shape[1], source=SWITCH, destination=WORKER)
            peer.sendto(answer + PAYLOADS[0].tobytes(), back)
            payloads, lengths = transport.receive(60.0)
            assert payloads[0, : lengths[0]].tobytes() == PAYLOADS[0].tobytes()
        finally:
            transport.close()
