"""A network that is down for a moment (a link, a route, the MTU) loses packets; the worker survives."""

from __future__ import annotations

import errno
import os
import re
import socket
import subprocess
from collections.abc import Iterator

import numpy as np
import pytest

import serene.client.compiled.fastpath
from serene.client.compiled.fastpath import FastPath, Outcome, library
from serene.client.protocol.protocol import Membership, Protocol
from serene.client.transport import transport as transports
from serene.client.transport.transport import UdpTransport
from serene.wire import ENCAPSULATION_BYTES, SWITCH_MAC, push_payloads
from tests.controller.processes import own_network

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="taking a link down needs root")

PAYLOADS = push_payloads(np.zeros((3, 320), np.int32), job=1)


SWITCH = "10.9.0.254"


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def up() -> None:
    ip("link", "set", "h1", "up")
    ip("neighbour", "replace", SWITCH, "lladdr", SWITCH_MAC, "dev", "h1", "nud", "permanent")


@pytest.fixture
def switch() -> Iterator[socket.socket]:
    """The other end of the worker's cable, in whole frames."""
    with own_network(), socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800)) as here:
        ip("address", "add", "10.9.0.1/24", "dev", "h1")
        up()
        here.bind(("s1", 0))
        here.settimeout(60)
        yield here


@pytest.fixture
def worker(switch: socket.socket) -> Iterator[UdpTransport]:
    transport = UdpTransport(SWITCH, bind_ip="10.9.0.1")
    yield transport
    transport.close()


def test_transport_survives_a_link_that_is_down(worker: UdpTransport, switch: socket.socket) -> None:
    ip("link", "set", "h1", "down")
    worker.send(PAYLOADS)
    assert len(worker.receive(0)[0]) == 0
    assert worker.trouble() is not None and "unreachable" in str(worker.trouble())
    up()
    worker.send(PAYLOADS)
    assert switch.recv(9999)[ENCAPSULATION_BYTES:] == PAYLOADS[0].tobytes()
    assert worker.trouble() is None


def test_transport_reports_packets_larger_than_the_path_mtu(worker: UdpTransport, switch: socket.socket) -> None:
    """Small packets pass, and do not clear the report."""
    ip("link", "set", "h1", "mtu", "600")
    worker.send(PAYLOADS[:, :100])
    worker.send(PAYLOADS)
    worker.send(PAYLOADS[:, :100])
    assert str(worker.trouble()) == (f"packets of {PAYLOADS.shape[1]} bytes exceed the MTU of the path to the switch")
    ip("link", "set", "h1", "mtu", "1500")
    worker.send(PAYLOADS)
    assert worker.trouble() is None


@pytest.mark.parametrize(("how", "refused"), [("down", errno.ENETUNREACH), ("mtu", errno.EMSGSIZE)])
def test_fast_path_survives_a_down_link_and_a_small_mtu(
    worker: UdpTransport, switch: socket.socket, how: str, refused: int
) -> None:
    protocol = Protocol(0, 0, Membership(7, 1, 960, 3, 320, 2**20, 2**23, 1))
    link, compiled = worker.link(protocol.payloads.shape[1]), library()
    assert compiled is not None
    fast = FastPath(compiled, protocol, link)
    ip("link", "set", "h1", *(["down"] if how == "down" else ["mtu", "600"]))
    protocol.push(np.zeros((3, 320), np.int32), 0.0)
    assert fast.run() is Outcome.SILENCE
    assert fast.refused == refused
    assert protocol.counts.sent == 3
    ip("link", "set", "h1", "mtu", "1500")
    up()
    worker.send(protocol.retransmissions(1e9))
    assert len(switch.recv(9999)) == ENCAPSULATION_BYTES + protocol.payloads.shape[1]


def test_c_and_python_tolerate_the_same_socket_errors() -> None:
    source = "".join(path.read_text() for path in serene.client.compiled.fastpath.SOURCES)
    listed = re.search(r"TRANSIENT\[\] = \{(.*?)\}", source, re.S)
    assert listed is not None
    assert {getattr(errno, name) for name in re.findall(r"E[A-Z]+", listed[1])} == transports.TRANSIENT
