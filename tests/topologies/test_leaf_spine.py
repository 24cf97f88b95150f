"""Racks as Mininet builds them: ports, addresses, rates of links and uplinks, traffic between racks, an exchange."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from serene.program import Program
from serene.racks import Racks
from tests.runs import interfaces, missing, private_network

pytestmark = [pytest.mark.mininet, pytest.mark.usefixtures("mininet")]


@contextmanager
def bridged(**options: Any) -> Iterator[Any]:
    """A started network of Linux bridges; nothing of it is left."""
    from mininet.log import setLogLevel
    from mininet.net import Mininet

    from serene.topologies.leaf_spine import LeafSpine
    from serene.topologies.nodes import Bridge

    setLogLevel("error")
    with private_network():
        net = Mininet(topo=LeafSpine(**options), build=False, switch=Bridge, controller=None)
        try:
            net.start()
            yield net
        finally:
            net.stop()
        assert interfaces() == set()


@pytest.mark.parametrize(("workers", "racks"), [(2, 1), (7, 3), (256, 8)])
def test_leaf_spine_places_each_worker_as_its_racks_say(workers: int, racks: int) -> None:
    from serene.topologies.leaf_spine import LeafSpine
    from serene.topologies.nodes import UPLINK

    topology, sizes = LeafSpine(workers, racks, prefix="s1"), Racks.even(workers, racks)
    assert len(topology.hosts()) == workers
    assert set(topology.switches()) == {"s1root", *(f"s1leaf{rack + 1}" for rack in range(racks))}
    for worker in range(workers):
        rack, number = sizes.place(worker)
        assert topology.port(f"h{worker + 1}", f"s1leaf{rack + 1}") == (0, number + 1)
    for rack in range(racks):
        assert topology.port(f"s1leaf{rack + 1}", "s1root") == (UPLINK, rack + 1)
    addresses = {topology.nodeInfo(host)[what] for host in topology.hosts() for what in ("ip", "mac")}
    assert len(addresses) == 2 * workers and "10.0.0.254/16" not in addresses
    assert topology.nodeInfo("h1")["ip"] == "10.0.0.1/16"


def test_server_is_in_the_first_rack_and_moves_no_worker() -> None:
    from serene.topologies.leaf_spine import LeafSpine
    from serene.topologies.nodes import UPLINK

    topology, without = (LeafSpine(64, 2, server=server) for server in (True, False))
    assert set(topology.hosts()) - set(without.hosts()) == {"h65"}
    assert topology.port("h65", "leaf1") == (0, UPLINK + 1) and topology.nodeInfo("h65")["ip"] == "10.0.0.65/16"
    for worker in range(64):
        name, leaf = f"h{worker + 1}", f"leaf{worker // 32 + 1}"
        assert topology.port(name, leaf) == without.port(name, leaf)


def sent(node: Any, interface: str) -> tuple[int, int]:
    """Bytes that have left, and how often something had to wait for the rate."""
    counts = re.findall(r"htb .*\n\s*Sent (\d+) bytes.*overlimits (\d+)", node.cmd("tc -s qdisc show dev", interface))
    return int(counts[0][0]), int(counts[0][1])


def test_links_and_uplinks_have_their_own_rates() -> None:
    """Two hosts of a rack send to the other rack: packets queue at the uplink, which is slower than one host's link."""
    with bridged(workers=4, racks=2, link_mbit=200, uplink_mbit=50) as net:
        ends = {"leaf1": [("leaf1-eth1", 200), ("leaf1-eth33", 50)], "root": [("root-eth1", 50), ("root-eth2", 50)]}
        for name, shaped in {**ends, "h1": [("h1-eth0", 200)]}.items():
            for interface, rate in shaped:
                assert f"rate {rate}Mbit" in net[name].cmd("tc class show dev", interface)
        servers = [net[f"h{host}"].popen(["socat", "-u", "TCP-LISTEN:5001", "OPEN:/dev/null"]) for host in (3, 4)]
        feed = "head -c 5000000 /dev/zero | socat -u - TCP:{}:5001,retry=50,interval=0.1"
        clients = [
            net[name].popen(["sh", "-c", feed.format(net[other].IP())]) for name, other in (("h1", "h3"), ("h2", "h4"))
        ]
        assert [process.wait(60) for process in (*clients, *servers)] == [0] * 4
        passed, waited = sent(net["leaf1"], "leaf1-eth33")
        assert passed > 10_000_000 and waited > 100


RELAYED = 2 * 3  # packets a slot: three workers' pushes, and their answers


@pytest.mark.parametrize(("way", "packets"), [("combining", 2), ("relaying", RELAYED)])
def test_uplink_frame_count_in_an_all_reduce(way: str, packets: int) -> None:
    """A combining leaf sends a slot's sum up and down once; otherwise each worker's push and its answer pass. The hosts
    check their sums. Retransmissions are added."""
    if lacking := missing():
        pytest.skip(f"needs {lacking}")
    from serene.experiments.performance import racks

    question = racks.Question(2, 3, 100.0, 3200, repeats=1, series=2, patience_s=240)
    with private_network():
        measured = getattr(racks, way)(question)
        assert interfaces() == set()
    slots = 3200 // Program.load().lanes
    assert len(measured.frames) == 2 and min(measured.frames) >= packets * slots
    if way == "combining":
        assert min(measured.frames) < RELAYED * slots, "retransmissions alone are not so many at both uplinks"
    assert len(measured.seconds) == 1


@pytest.mark.timeout(600)
def test_racks_of_the_study_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One case for each ratio, on the study's smallest network, with few and short all-reduces."""
    if lacking := missing():
        pytest.skip(f"needs {lacking}")
    from serene.experiments.network_study import findings
    from serene.experiments.network_study.emulated import racks
    from serene.experiments.network_study.emulated.racks import METHODS, Case, measure
    from serene.experiments.shared.measurements import complete

    for name, value in {"VALUES": 50_000, "REPEATS": 2, "SERIES": 1}.items():
        monkeypatch.setattr(racks, name, value)
    chosen = [Case(2, ratio, method) for ratio, method in zip((1.0, 0.25), METHODS, strict=False)]
    with private_network():
        rows = complete(tmp_path / "racks.json", chosen, measure, print)
        assert interfaces() == set()
    assert [row["method"] for row in rows] == list(METHODS)[:2] and len(rows[0]["samples_s"]) == 2
    head, lines = findings.emulated(rows)
    assert [len(line) for line in lines] == [len(head)] * 2
    for row in rows:  # a link's rate cannot be beaten
        assert min(row["samples_s"]) > 0.9 * row["simulated_s"]
