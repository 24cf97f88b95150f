"""Ordinary traffic: a learning switch, ARP for its own address, and the controller's packets."""

from __future__ import annotations

from serene.wire import SWITCH_IP, SWITCH_MAC, mac_bytes
from tests.dataplane.conftest import DataPlane, arp
from tests.frames import ip, mac, mac_number

HOST, SWITCH = (mac(1), ip(1)), (SWITCH_MAC, SWITCH_IP)
NOBODY, EVERYBODY = "00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff"


def ordinary(source: str, destination: str, payload: bytes = b"x" * 60) -> bytes:
    return mac_bytes(destination) + mac_bytes(source) + b"\x88\xb6" + payload


def test_unknown_destinations_are_flooded_but_not_back(plane: DataPlane) -> None:
    data = ordinary(mac(0), mac(1))
    assert plane.send(1, data) == [(2, data), (3, data)]
    assert plane.send(3, data) == [(1, data), (2, data)]


def test_known_destinations_get_their_port(plane: DataPlane) -> None:
    plane.insert("forward", [mac_number(mac(1))], "to_port", [2])
    data = ordinary(mac(0), mac(1))
    assert plane.send(1, data) == [(2, data)]
    plane.delete("forward", [mac_number(mac(1))])
    assert len(plane.send(1, data)) == 2


def test_arp_for_the_switch_is_answered(plane: DataPlane) -> None:
    question = arp(1, HOST, (NOBODY, SWITCH_IP), EVERYBODY)
    assert plane.send(2, question) == [(2, arp(2, SWITCH, HOST, mac(1)))]


def test_arp_for_others_is_flooded(plane: DataPlane) -> None:
    question = arp(1, HOST, (NOBODY, ip(2)), EVERYBODY)
    assert plane.send(1, question) == [(2, question), (3, question)]
    reply = arp(2, HOST, SWITCH, SWITCH_MAC)
    assert plane.send(1, reply) == [(2, reply), (3, reply)]


def test_short_and_strange_frames_pass(plane: DataPlane) -> None:
    for data in (
        bytes(14),
        ordinary(mac(0), mac(1), b""),
        bytes.fromhex("ffffffffffff0200000000010800") + b"\x45" + bytes(50),
    ):
        assert [port for port, _ in plane.send(1, data)] == [2, 3]


def test_packet_out_leaves_by_the_port_it_names(plane: DataPlane) -> None:
    data = ordinary(SWITCH_MAC, mac(1))
    assert plane.packet_out(2, data) == [(2, data)]
