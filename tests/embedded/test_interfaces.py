"""Frames from and to interfaces, in network namespaces of the tests' own."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import checksum

from serene.embedded import Switch
from tests.controller.hosts import packet_end
from tests.embedded.attachments import CASES, Case, outcome
from tests.embedded.p4rt_controller import PATIENCE_S, until
from tests.embedded.p4rt_programs import PROFILES
from tests.runs import private_network

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("ip") is None, reason="needs root and ip, to make interfaces"
)
ADDRESSES = bytes.fromhex("020000000002020000000001")
TAGGED = ADDRESSES + bytes.fromhex("810020648888") + b"a frame with a VLAN tag" * 3
DOUBLY = ADDRESSES + bytes.fromhex("88a80005810020648888") + b"a frame with two tags" * 3
PLAIN = ADDRESSES + bytes.fromhex("8888") + b"a frame without one" * 3
LONG = PLAIN + bytes(range(256)) * 20  # no slot for received frames is so large
LONG_TAGGED = TAGGED + bytes(range(256)) * 20
PACKET_AUXDATA, VLAN_VALID = 8, 16


def ip(*commands: str) -> None:
    for command in commands:
        subprocess.run(["ip", *command.split()], check=True)


@contextlib.contextmanager
def reflecting() -> Iterator[Switch]:
    """A switch that sends each frame back by the port where it came, not started, and its interface sw, whose other end
    is the interface host."""
    with private_network(), Switch.load(PROFILES) as switch:
        ip("link add sw type veth peer name host", "link set sw up", "link set host up address 02:00:00:00:00:01")
        yield switch


def reflected(frames: list[bytes]) -> list[bytes]:
    """What comes back of these frames, with tags in their places: the kernel removes them and reports them
    separately."""
    back: list[bytes] = []
    with packet_end("host") as end:
        end.settimeout(PATIENCE_S)
        end.setsockopt(263, PACKET_AUXDATA, 1)  # SOL_PACKET
        for frame in frames:
            end.send(frame)
        while len(back) < len(frames):
            data, ancillary, _, _ = end.recvmsg(16384, 256)
            status, _, _, _, _, tci, tpid = struct.unpack("IIIHHHH", ancillary[0][2])
            if status & VLAN_VALID:
                data = data[:12] + struct.pack(">HH", tpid, tci) + data[12:]
            if data[:12] == ADDRESSES:
                back.append(data)
    return back


def operational(interface: str) -> bool:
    shown = subprocess.run(["ip", "link", "show", interface], check=True, capture_output=True, text=True).stdout
    return " state UP " in shown


def threads() -> set[str]:
    return set(os.listdir("/proc/self/task"))


def state(stat: Path) -> str:
    return stat.read_text().rpartition(")")[2].split()[0]


def test_interface_keeps_tags_and_the_order_of_frames_of_any_length() -> None:
    """Of frames that fit into a slot and of frames that do not. The switch waits while the interface is down."""
    frames = [TAGGED, PLAIN, LONG, DOUBLY, LONG_TAGGED, LONG, PLAIN]
    with reflecting() as switch:
        before = threads()
        switch.add_interface(1, "sw")
        switch.start()
        files = [Path(f"/proc/self/task/{thread}/stat") for thread in threads() - before]
        ip("link set sw mtu 9000", "link set host mtu 9000")
        assert reflected(frames) == frames
        ip("link set sw down")
        until(lambda: {state(file) for file in files} == {"S"}, "its threads sleep")
        ip("link set sw up")
        # The kernel notices the carrier later; until then it drops what is sent.
        until(lambda: all(operational(name) for name in ("sw", "host")), "both ends are up")
        assert reflected(frames) == frames


@pytest.mark.parametrize(
    "case", [Case("macvlan passthru"), Case(offloads="gro on, forwarding UDP runs")], ids=lambda case: case.name
)
def test_workers_and_tcp_work_through_interfaces(case: Case, tmp_path: Path) -> None:
    """Two rows of docs/switches.md; `python -m tests.embedded.attachments` prints all rows."""
    assert case in CASES
    assert outcome(case, tmp_path) == {"training": "yes", "TCP": "yes"}


def test_zero_udp_checksums_and_packet_ids_pass_an_interface_unchanged() -> None:
    """A datagram whose checksum the kernel leaves to the interface, and frames, in one batch: all wait when the switch
    starts. A checksum that is computed as 0 is sent as 0xffff: 0 means that there is none. The kernel numbers the
    packets of one buffer in order: those with other numbers go alone."""
    pseudo = bytes([10, 9, 9, 1, 10, 9, 9, 2, 0, 17, 0, 10]) + struct.pack(">4H", 4000, 4001, 10, 0)
    datagram = struct.pack(">H", checksum(pseudo))  # with it, all sums to 0xffff
    head, udp = Ether(ADDRESSES + b"\x08\x00"), UDP(sport=4000, dport=4001, chksum=0)
    frames = [bytes(head / IP(src="10.9.9.1", dst="10.9.9.2", id=id_) / udp / bytes([id_] * 200)) for id_ in (5, 9, 2)]
    back: list[bytes] = []
    with reflecting() as switch:
        ip("addr add 10.9.9.1/24 dev host", "neigh add 10.9.9.2 lladdr 02:00:00:00:00:02 dev host")
        with packet_end("host") as end, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            end.settimeout(PATIENCE_S)
            switch.add_interface(1, "sw", join_udp=True)
            sender.bind(("10.9.9.1", 4000))
            sender.sendto(datagram, ("10.9.9.2", 4001))
            for frame in frames:
                end.send(frame)
            switch.start()
            while len(back) <= len(frames):
                frame = end.recv(16384)
                if frame[:14] == ADDRESSES + b"\x08\x00":
                    back.append(frame)
    assert back[0][40:] == b"\xff\xff" + datagram
    assert back[1:] == frames
