"""A process between the switch and its links. It drops, duplicates, reorders and delays packets according to a fault
file.

    serene-shim faults.toml 0:s1-eth1:s1-in1 1:s1-eth2:s1-in2

For each worker it opens the interface at the end of the link, creates another one for the switch, and forwards packets
between them. A leaf's uplink is the link of its rack: rack0:leaf1-eth33:leaf1-in33. Unlike netem, it needs no kernel
module and recognises Serene's packets. Its ends of the new veth pairs are in a network namespace of its own. So when it
dies in any way, these ends and the interfaces that it created disappear. Needs root.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import fcntl
import heapq
import os
import selectors
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from serene.arguments import Parser, add_version, command
from serene.errors import SereneError
from serene.faults.links import Links, kind_of
from serene.faults.plan import OTHER, Direction, Faults, uplink
from serene.faults.toml import load
from serene.process.interrupts import Interrupted, coming, ended, held

CLONE_NEWNET = 0x40000000
ETH_P_ALL = 3
PACKET_OUTGOING = 4
SIOCGIFMTU = 0x8921
SO_RCVBUFFORCE = 33
SOCKET_BUFFER = 8 << 20
LARGEST_FRAME = 65536
LINK = "WORKER:HOST_SIDE:SWITCH_SIDE"
BATCH = 64  # packets read from one socket before the next one


class ShimError(SereneError):
    """An interface is missing, or cannot be created."""


@dataclass(frozen=True)
class Link:
    """A worker's link, or a rack's uplink: the interface at its end, and the interface that the switch opens."""

    number: int
    host_side: str
    switch_side: str


@dataclass(frozen=True)
class End:
    """One of a link's two ends. Packets that arrive here leave at the peer."""

    link: int
    direction: Direction
    packets: socket.socket
    peer: socket.socket


def _open(interface: str) -> socket.socket:
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    try:
        end.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, SOCKET_BUFFER)
        end.bind((interface, 0))
    except OSError as error:
        end.close()
        raise ShimError(f"cannot open interface {interface}: {error.strerror}") from None
    end.setblocking(False)
    return end


def _mtu(interface: str) -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        answer = fcntl.ioctl(asker, SIOCGIFMTU, struct.pack("16sI12x", interface.encode(), 0))
    return int(struct.unpack_from("16sI", answer)[1])


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ShimError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")


class Shim:
    """Forwards packets with faults. It opens its sockets, then moves this process into a new network namespace."""

    def __init__(self, faults: Faults, links: Sequence[Link]) -> None:
        self._links = Links(faults)
        self._made = [f"shim{at}" for at in range(len(links))]
        self._late: list[tuple[float, int, socket.socket, bytes]] = []  # heap
        self._held = 0
        self._began: float | None = None  # time of Serene's first packet: by then network and controller are running
        self._ends: list[End] = []
        outside = [(_open(link.host_side), _mtu(link.host_side)) for link in links]
        libc = ctypes.CDLL(None, use_errno=True)
        with open("/proc/self/ns/net") as before:
            if libc.unshare(CLONE_NEWNET):
                raise ShimError(f"cannot create a network namespace: {os.strerror(ctypes.get_errno())} (it needs root)")
            Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")
            there = f"/proc/{os.getpid()}/fd/{before.fileno()}"
            for link, name, (host, mtu) in zip(links, self._made, outside, strict=True):
                size = ("mtu", str(mtu))
                _ip("link", "add", name, *size, "type", "veth", "peer", link.switch_side, *size, "netns", there)
                _ip("link", "set", name, "up")
                switch = _open(name)
                inwards, outwards = Direction.TO_SWITCH, Direction.TO_WORKER
                if link.number < 0:  # on an uplink, the outer end leads to the root
                    inwards, outwards = outwards, inwards
                self._ends += [End(link.number, inwards, host, switch), End(link.number, outwards, switch, host)]

    def run(self, stop: int) -> None:
        """Forwards packets until the descriptor ``stop`` becomes readable."""
        with selectors.DefaultSelector() as ready:
            ready.register(stop, selectors.EVENT_READ)
            for end in self._ends:
                ready.register(end.packets, selectors.EVENT_READ, end)
            while True:
                wait = max(self._late[0][0] - time.monotonic(), 0.0) if self._late else None
                for key, _ in ready.select(wait):
                    if key.data is None:
                        return
                    self._receive(key.data)
                self._send_due()

    def _receive(self, end: End) -> None:
        for _ in range(BATCH):
            try:
                packet, address = end.packets.recvfrom(LARGEST_FRAME)
            except (BlockingIOError, OSError):  # no more packets, or the interface is down at present
                return
            if address[2] == PACKET_OUTGOING:
                continue
            now = time.monotonic()
            if self._began is None and kind_of(packet) != OTHER:
                self._began = now
            since = 0.0 if self._began is None else now - self._began
            for delay, outcome in self._links.fate(packet, end.link, end.direction, since):
                if delay:
                    self._held += 1
                    heapq.heappush(self._late, (now + delay, self._held, end.peer, outcome))
                else:
                    _send(end.peer, outcome)

    def _send_due(self) -> None:
        now = time.monotonic()
        while self._late and self._late[0][0] <= now:
            _, _, peer, packet = heapq.heappop(self._late)
            _send(peer, packet)

    def counts(self) -> str:
        links = self._links
        return f"{links.carried} packets: {links.lost} lost, {links.duplicated} duplicated, {links.reordered} reordered"

    def close(self) -> None:
        for end in self._ends:
            end.packets.close()
        for name in self._made:
            with contextlib.suppress(ShimError):
                _ip("link", "delete", name)


def _send(peer: socket.socket, packet: bytes) -> None:
    with contextlib.suppress(OSError):  # a full queue, or no program listens: the packet is lost, as on a network
        peer.send(packet)


def _link(text: str) -> Link:
    name, *interfaces = text.split(":")
    rack, number = name.startswith("rack"), name.removeprefix("rack")
    if not number.isdecimal() or len(interfaces) != 2 or not all(interfaces):
        raise argparse.ArgumentTypeError(f"{text!r}: expected {LINK}, as 0:s1-eth1:s1-in1, or rack0 for a worker")
    return Link(uplink(int(number)) if rack else int(number), *interfaces)


def main() -> int:
    parser = Parser("Passes packets between interfaces and injects the faults of a file.")
    add_version(parser)
    parser.add_argument("faults", type=Path, help="a fault file, docs/faults.md")
    parser.add_argument("links", type=_link, nargs="+", metavar=LINK)
    options = parser.parse_args()
    return ended(lambda: _run(options.faults, options.links))


@command
def _run(path: Path, links: list[Link]) -> None:
    with contextlib.suppress(Interrupted), held():
        shim = Shim(load(path), links)
        try:
            shim.run(coming())
        finally:
            shim.close()
        print(shim.counts(), file=sys.stderr)


if __name__ == "__main__":
    raise SystemExit(main())
