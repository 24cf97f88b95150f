"""The star as Mininet builds it: ports, addresses, interfaces, link rates, and traffic through either switch."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from serene.topologies.processes import NotReady
from tests.runs import interfaces, missing, private_network

pytestmark = [pytest.mark.mininet, pytest.mark.usefixtures("mininet")]


@contextmanager
def star(target: str, logs: Path, **options: Any) -> Iterator[Any]:
    """A started network, in a network namespace of its own; it is empty again afterwards."""
    from mininet.log import setLogLevel
    from mininet.net import Mininet

    from serene.topologies.nodes import SereneController
    from serene.topologies.star import Star, switches

    setLogLevel("error")
    program = "serene_jumbo" if options.get("mtu") else "serene"
    with private_network():
        net = Mininet(
            topo=Star(**options),
            build=False,
            switch=lambda name, **params: switches[target](name, log=logs / "switch.log", **params),
            controller=lambda name, **params: SereneController(
                name, log=logs / "controller.log", p4_program=program, **params
            ),
        )
        try:
            net.start()
            yield net
        finally:
            net.stop()
        assert interfaces() == set()


def ip_link(node: Any, interface: Any) -> dict[str, Any]:
    (link,) = json.loads(node.cmd("ip -d -j link show", interface))
    return dict(link)


def test_star_gives_worker_w_host_and_port_w_plus_1() -> None:
    from serene.topologies.star import Star

    topology = Star(workers=3)
    assert sorted(topology.hosts()) == ["h1", "h2", "h3"]
    assert topology.switches() == ["s1"]
    for number in (1, 2, 3):
        assert topology.port(f"h{number}", "s1") == (0, number)
        assert topology.nodeInfo(f"h{number}")["ip"] == f"10.0.0.{number}/24"


def tcp_passes(sender: Any, receiver: Any, folder: Path, size: int) -> None:
    """A file comes over as it is. size: in bytes."""
    sent, received = folder / "sent", folder / "received"
    sent.write_bytes(bytes(range(256)) * (size // 256))
    server = receiver.popen(["socat", "-u", "TCP-LISTEN:5001", f"CREATE:{received}"])
    sender.cmd(f"socat -u FILE:{sent} TCP:{receiver.IP()}:5001,retry=50,interval=0.1")
    assert server.wait(120) == 0
    assert received.read_bytes() == sent.read_bytes()


def test_tcp_passes_and_interfaces_have_no_offload_or_address(target: str, tmp_path: Path) -> None:
    with star(target, tmp_path, workers=2) as net:
        for number in (1, 2):
            host, switch = net[f"h{number}"], net["s1"]
            offered = host.cmd("ethtool -k", host.defaultIntf())
            for feature in ("tx-checksumming", "rx-checksumming", "tcp-segmentation-offload", "scatter-gather"):
                assert re.search(rf"^{feature}: off", offered, re.MULTILINE), feature
            assert not re.search(r"inet6? ", switch.cmd("ip address show dev", f"s1-eth{number}"))
        tcp_passes(net["h1"], net["h2"], tmp_path, 256_000)


def test_tcp_and_udp_pass_with_offloads_on(tmp_path: Path) -> None:
    """The hosts' kernels leave checksums and segmentation to the network card, as with a veth by default."""
    with star("embedded", tmp_path, workers=2) as net:
        h1, h2 = net["h1"], net["h2"]
        for host in (h1, h2):
            host.cmd("ethtool -K", host.defaultIntf(), "tx on rx on sg on tso on gso on gro on")
            offered = host.cmd("ethtool -k", host.defaultIntf())
            for feature in ("tx-checksumming", "tcp-segmentation-offload", "scatter-gather"):
                assert re.search(rf"^{feature}: on", offered, re.MULTILINE), offered
        tcp_passes(h1, h2, tmp_path, 1_024_000)
        echo = h2.popen(["socat", "UDP-RECVFROM:5002,fork", "EXEC:cat"])
        output = h1.cmd(f"for i in $(seq 50); do echo hello | socat -t5 - UDP:{h2.IP()}:5002 && break; sleep 0.1; done")
        echo.terminate()
        echo.wait(120)
        assert "hello" in output


def test_jumbo_frames_pass_through_the_star(tmp_path: Path, target: str) -> None:
    with star(target, tmp_path, workers=2, mtu=9000) as net:
        h1, h2 = net["h1"], net["h2"]
        assert ip_link(h1, h1.defaultIntf())["mtu"] == 9000
        assert ip_link(net["s1"], "s1-eth1")["mtu"] == 9000
        # 896 lanes of 4 bytes, and Serene's header.
        answer = h1.cmd(f"ping -c 3 -i 0.2 -W 30 -M do -s {896 * 4 + 40} {h2.IP()}")
        assert " 0% packet loss" in answer, answer


def test_impossible_link_rate_is_reported(tmp_path: Path) -> None:
    if lacking := missing():
        pytest.skip(f"needs {lacking}")
    # To tc, 1e30 is too much: the same answer as from a kernel without the queueing discipline.
    with pytest.raises(NotReady, match=r"cannot limit the rate of h1-eth0"), star("embedded", tmp_path, link_mbit=1e30):
        pass


def test_switch_avoids_a_taken_p4runtime_port(tmp_path: Path) -> None:
    if lacking := missing():
        pytest.skip(f"needs {lacking}")
    with private_network(), socket.create_server(("127.0.0.1", 9559)):
        from serene.topologies.nodes import EmbeddedSwitch

        switch = EmbeddedSwitch("s9", inNamespace=False, log=tmp_path / "log")
        assert switch.p4runtime_port != 9559
        switch.start([])
        switch.stop()
        switch.terminate()
