"""Frames from and to interfaces, in network namespaces of the tests' own."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tests.embedded.attachments import CASES, Case, outcome

ROOT = Path(__file__).parents[2]
TAGGED = bytes.fromhex("020000000002020000000001810020648888") + b"a frame with a VLAN tag" * 3
DOUBLY = bytes.fromhex("02000000000202000000000188a80005810020648888") + b"a frame with two tags" * 3
PLAIN = bytes.fromhex("0200000000020200000000018888") + b"a frame without one" * 3
LONG = PLAIN + bytes(range(256)) * 20  # no slot for received frames is so large
LONG_TAGGED = TAGGED + bytes(range(256)) * 20

# Sends frames to a switch that sends each back by the port where it came; prints what comes back, tags in their places.
# Then the interface goes down, and comes up again.
REFLECTED = """
import json, os, socket, struct, subprocess, sys, time
from pathlib import Path
from serene.embedded import Switch
def link(*commands):
    for command in commands:
        subprocess.run(["ip", "link", *command.split()], check=True)
def reflected(end, frames):
    back = []
    for frame in frames:
        end.send(frame)
    while len(back) < len(frames):
        data, said, _, _ = end.recvmsg(16384, 256)
        status, _, _, _, _, tci, tpid = struct.unpack("IIIHHHH", said[0][2])
        if status & 16:
            data = data[:12] + struct.pack(">HH", tpid, tci) + data[12:]
        if data[:12] == frames[0][:12]:
            back.append(data.hex())
    return back
def states():
    others = (task for task in Path("/proc/self/task").iterdir() if int(task.name) != os.getpid())
    return {(task / "stat").read_text().rpartition(")")[2].split()[0] for task in others}
frames = [bytes.fromhex(frame) for frame in sys.argv[2:]]
link("add sw type veth peer name host", "set sw up", "set host up")
def opened():
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    end.bind(("host", 0))
    end.settimeout(20)
    end.setsockopt(263, 8, 1)  # PACKET_AUXDATA
    end.setsockopt(263, 23, 1)  # PACKET_IGNORE_OUTGOING
    return end
with Switch.load(sys.argv[1]) as switch:
    switch.add_interface(1, "sw")
    switch.start()
    link("set sw mtu 9000", "set host mtu 9000")
    back = reflected(opened(), frames)
    link("set sw down")
    deadline = time.monotonic() + 20
    while states() != {"S"} and time.monotonic() < deadline:
        time.sleep(0.01)
    sleeps = states() == {"S"}
    link("set sw up")
    print(json.dumps([back, sleeps, reflected(opened(), frames)]))
"""


def test_interface_keeps_tags_and_the_order_of_frames_of_any_length(tmp_path: Path) -> None:
    """The kernel removes VLAN tags and reports them separately. Frames that fit into a slot and frames that do not keep
    their order. The switch waits while the interface is down."""
    if os.geteuid() != 0 or shutil.which("unshare") is None or shutil.which("ip") is None:
        pytest.skip("needs root, unshare and ip, to make interfaces")
    program = Path(__file__).with_name("programs") / "profiles.json"  # it sends packets back
    frames = [TAGGED, PLAIN, LONG, DOUBLY, LONG_TAGGED, LONG, PLAIN]
    done = subprocess.run(
        ["unshare", "-n", sys.executable, "-c", REFLECTED, str(program), *(frame.hex() for frame in frames)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    sent = [frame.hex() for frame in frames]
    assert json.loads(done.stdout) == [sent, True, sent]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make interfaces")
@pytest.mark.parametrize(
    "case", [Case("macvlan passthru"), Case(offloads="gro on, forwarding UDP runs")], ids=lambda case: case.name
)
def test_workers_and_tcp_work_through_interfaces(case: Case, tmp_path: Path) -> None:
    """Two rows of docs/switches.md; `python -m tests.embedded.attachments` prints all rows."""
    assert case in CASES
    assert outcome(case, tmp_path) == {"training": "yes", "TCP": "yes"}


# A datagram whose checksum the kernel leaves to the interface, and frames; prints how each comes back. All wait when
# the switch starts, which then has them in one batch.
BATCH = """
import json, socket, subprocess, sys
from serene.embedded import Switch
for command in ("link add sw type veth peer name host", "link set sw up", "link set host up address 020000000001",
                "addr add 10.9.9.1/24 dev host", "neigh add 10.9.9.2 lladdr 02:00:00:00:00:02 dev host"):
    subprocess.run(["ip", *command.replace("020000000001", "02:00:00:00:00:01").split()], check=True)
end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
end.bind(("host", 0))
end.settimeout(20)
end.setsockopt(263, 23, 1)  # PACKET_IGNORE_OUTGOING
datagram, *frames = map(bytes.fromhex, sys.argv[2:])
with Switch.load(sys.argv[1]) as switch, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
    switch.add_interface(1, "sw", join_udp=True)
    sender.bind(("10.9.9.1", 4000))
    sender.sendto(datagram, ("10.9.9.2", 4001))
    for frame in frames:
        end.send(frame)
    switch.start()
    back = []
    while len(back) <= len(frames):
        frame = end.recv(16384)
        if frame[:14] == bytes.fromhex("0200000000020200000000010800"):
            back.append(frame.hex())
    print(json.dumps(back))
"""


def udp_frame(identification: int, payload: bytes) -> bytes:
    """From 10.9.9.1:4000 to 10.9.9.2:4001, without a UDP checksum, and may be fragmented."""
    head = struct.pack(
        ">BBHHHBBH4B4B", 0x45, 0, 28 + len(payload), identification, 0, 64, 17, 0, 10, 9, 9, 1, 10, 9, 9, 2
    )
    udp = struct.pack(">4H", 4000, 4001, 8 + len(payload), 0)
    return bytes.fromhex("0200000000020200000000010800") + head[:10] + checksum(head) + head[12:] + udp + payload


def checksum(data: bytes) -> bytes:
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    return (~(total % 0xFFFF or 0xFFFF) & 0xFFFF).to_bytes(2, "big")


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None or shutil.which("ip") is None,
    reason="needs root, unshare and ip, to make interfaces",
)
def test_zero_udp_checksums_and_packet_ids_pass_an_interface_unchanged() -> None:
    """A checksum that is computed as 0 is sent as 0xffff: 0 means that there is none. The kernel numbers the packets of
    one buffer in order: those with other numbers go alone."""
    pseudo = bytes([10, 9, 9, 1, 10, 9, 9, 2, 0, 17, 0, 10]) + struct.pack(">4H", 4000, 4001, 10, 0)
    datagram = checksum(pseudo)  # with it, all sums to 0xffff
    frames = [udp_frame(identification, bytes([identification]) * 200) for identification in (5, 9, 2)]
    program = Path(__file__).with_name("programs") / "profiles.json"
    command = ["unshare", "-n", sys.executable, "-c", BATCH, str(program), datagram.hex()]
    done = subprocess.run(
        [*command, *(frame.hex() for frame in frames)], capture_output=True, text=True, timeout=120, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    first, *others = json.loads(done.stdout)
    assert bytes.fromhex(first)[40:] == b"\xff\xff" + datagram
    assert others == [frame.hex() for frame in frames]
