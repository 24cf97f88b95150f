"""Ordinary traffic: a learning switch, ARP for its own address, and the controller's packets."""

from __future__ import annotations

import pytest
from scapy.layers.inet import IP, TCP, UDP, fragment
from scapy.layers.inet import IPOption_NOP as Nop
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether
from scapy.packet import Packet

from serene.entries import forward, known_source, number
from serene.wire import SERENE_UDP_PORT, SWITCH_IP, SWITCH_MAC, Op, control_payload, mac_bytes
from tests.dataplane.conftest import DataPlane, arp
from tests.frames import ip, mac

HOST, SWITCH = (mac(1), ip(1)), (SWITCH_MAC, SWITCH_IP)
NOBODY, EVERYBODY = "00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff"


def ordinary(source: str, destination: str, payload: bytes = b"x" * 60) -> bytes:
    return mac_bytes(destination) + mac_bytes(source) + b"\x88\xb6" + payload


def test_unknown_destination_is_flooded_except_to_its_source(plane: DataPlane) -> None:
    data = ordinary(mac(0), mac(1))
    assert plane.send(1, data) == [(2, data), (3, data)]
    assert plane.send(3, data) == [(1, data), (2, data)]


def test_known_destination_is_sent_to_its_port_unless_it_came_from_there(plane: DataPlane) -> None:
    """A switch at that port might flood: it would then learn that the sender is behind this switch."""
    plane.insert(forward(mac(1), 2))
    data = ordinary(mac(0), mac(1))
    assert plane.send(2, data) == []
    assert plane.send(1, data) == [(2, data)]
    assert plane.drops() == {}
    plane.delete(forward(mac(1), 2))
    assert len(plane.send(1, data)) == 2


def test_arp_for_the_switch_address_is_answered(plane: DataPlane) -> None:
    question = arp(1, HOST, (NOBODY, SWITCH_IP), EVERYBODY)
    assert plane.send(2, question) == [(2, arp(2, SWITCH, HOST, mac(1)))]


def test_arp_for_others_is_flooded(plane: DataPlane) -> None:
    question = arp(1, HOST, (NOBODY, ip(2)), EVERYBODY)
    assert plane.send(1, question) == [(2, question), (3, question)]
    reply = arp(2, HOST, SWITCH, SWITCH_MAC)
    assert plane.send(1, reply) == [(2, reply), (3, reply)]


def test_short_and_malformed_frames_are_flooded(plane: DataPlane) -> None:
    for data in (
        bytes(14),
        ordinary(mac(0), mac(1), b""),
        bytes.fromhex("ffffffffffff0200000000010800") + b"\x45" + bytes(50),
    ):
        assert [port for port, _ in plane.send(1, data)] == [2, 3]


@pytest.mark.parametrize("damaged", [False, True])
@pytest.mark.parametrize(
    "transport",
    [UDP(sport=7, dport=9), UDP(sport=SERENE_UDP_PORT, dport=40000), TCP(sport=7, dport=9)],
    ids=["UDP", "from the switch's port", "TCP"],
)
def test_ip_traffic_between_hosts_is_forwarded_unchanged(plane: DataPlane, transport: Packet, damaged: bool) -> None:
    """Also with a wrong checksum, which the receiver must detect: the switch must not correct it."""
    data = bytearray(bytes(Ether(src=mac(0), dst=mac(1)) / IP(src=ip(0), dst=ip(1)) / transport / b"between hosts"))
    data[24] ^= damaged
    assert plane.send(1, bytes(data)) == [(2, bytes(data)), (3, bytes(data))]
    assert plane.drops() == {}


def test_unknown_source_mac_is_reported_until_entry_exists(plane: DataPlane) -> None:
    plane.send(2, ordinary(mac(0), mac(1)))
    plane.send(2, ordinary(mac(0), mac(2)))
    assert plane.learned() == [(number(mac(0)), 2)] * 2
    plane.insert(known_source(mac(0), 2))
    plane.send(2, ordinary(mac(0), mac(1)))
    assert plane.learned() == []
    plane.send(3, ordinary(mac(0), mac(1)))  # it has moved
    plane.send(2, ordinary(mac(1), mac(0)))
    assert plane.learned() == [(number(mac(0)), 3), (number(mac(1)), 2)]


def test_packet_out_is_sent_to_the_port_it_names(plane: DataPlane) -> None:
    data = ordinary(SWITCH_MAC, mac(1))
    assert plane.packet_out(2, data) == [(2, data)]


TO_WORKER: Packet = Ether(src=mac(0), dst=mac(1))
NUDGE = control_payload(Op.NUDGE, session=7, epoch=2**32 - 1, worker=1)
FORGED: Packet = UDP(sport=SERENE_UDP_PORT, dport=40000) / NUDGE
CLAIM: Packet = IP(src=SWITCH_IP, dst=ip(1))
FRAGMENTS: list[Packet] = fragment(CLAIM / FORGED, 16)  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(
    ("how", "data", "reason"),
    [
        ("UDP", TO_WORKER / CLAIM / FORGED, "impostor"),
        ("IP options", TO_WORKER / IP(src=SWITCH_IP, dst=ip(1), options=[Nop()] * 4) / FORGED, "impostor"),
        ("fragments", TO_WORKER / FRAGMENTS[0], "impostor"),
        ("the last fragment", TO_WORKER / FRAGMENTS[-1], "impostor"),
        ("the MAC alone", Ether(src=SWITCH_MAC, dst=mac(1)) / IP(src=ip(0), dst=ip(1)) / FORGED, "impostor"),
        ("an ARP reply", arp(2, (mac(0), SWITCH_IP), (mac(1), ip(1)), mac(1)), "impostor"),
        ("an ARP announcement", arp(1, (mac(0), SWITCH_IP), (NOBODY, SWITCH_IP), EVERYBODY), "impostor"),
        ("a priority tag, which hosts take off", TO_WORKER / Dot1Q(vlan=0) / CLAIM / FORGED, "tagged"),
        ("a provider's tag", TO_WORKER / Dot1AD(vlan=0) / Dot1Q(vlan=0) / CLAIM / FORGED, "tagged"),
    ],
)
def test_packets_forging_the_switch_address_are_dropped(
    plane: DataPlane, how: str, data: Ether | bytes, reason: str
) -> None:
    """Workers trust packets from that address, so nobody else may send them."""
    assert plane.send(1, bytes(data)) == [], how
    assert plane.drops() == {reason: 1}, how
