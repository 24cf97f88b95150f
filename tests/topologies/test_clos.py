"""The Clos network: the simulator's routes, traffic between all hosts, and clean-up."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serene.experiments.network_study.flows.clos import Clos
from serene.topologies.processes import NotReady
from tests.controller.processes import until
from tests.runs import ROOT, Marked, interfaces, missing, private_network

pytestmark = pytest.mark.mininet

CLOS = str(ROOT / "topologies" / "clos.py")
MN = ["mn", "--custom", CLOS, "--topo", "clos,4,3,0.5", "--switch", "router", "--controller", "none"]


@pytest.fixture(autouse=True)
def mininet() -> None:
    lacking = missing(None)
    if lacking:
        pytest.skip(f"needs {lacking}")


@pytest.mark.parametrize("ratio", [1.0, 0.5, 0.25])
def test_clos_routes_equal_the_simulators(ratio: float) -> None:
    """For every pair of hosts, from switch to switch along the static routes."""
    from serene.topologies.clos import Clos as Topology
    from serene.topologies.clos import address

    simulated, topology = Clos(2, 8, 4, ratio), Topology(8, 4, ratio)
    routes = {name: dict(topology.nodeInfo(name)["routes"]) for name in topology.switches()}
    behind = {
        (name, topology.port(name, other)[0]): other
        for a, b in topology.links()
        for name, other in ((a, b), (b, a))
    }  # fmt: skip
    lower, upper = simulated.ends()
    ends = np.concatenate([upper, lower])

    def node(number: int) -> str:
        if number < simulated.hosts:
            return f"h{number + 1}"
        leaf = number - simulated.hosts
        return f"leaf{leaf + 1}" if leaf < simulated.leaves else f"spine{leaf - simulated.leaves + 1}"

    for source in range(simulated.hosts):
        for target in set(range(simulated.hosts)) - {source}:
            (path,) = simulated.paths(np.array([source]), np.array([target]))
            wanted = [node(int(ends[link])) for link in path if link >= 0]
            at, walked = f"leaf{source // 4 + 1}", []
            while at in routes:
                walked.append(at)
                at = behind[at, routes[at][address(target)]]
            assert [*walked, at] == wanted


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ports": 7}, "switches of 7 ports: expected an even number"),
        ({"ratio": 0.3}, "bisection ratio 0.3 with 8 ports: expected one of 0.25, 0.5, 0.75, 1"),
        ({"ratio": "1/2"}, "bisection ratio 1/2 with 8 ports: expected one of 0.25, 0.5, 0.75, 1"),
        ({"leaves": 9}, "9 leaves of 4 hosts: expected 1 to 8"),
        ({"bw": 10}, "clos has no option bw: expected ports, leaves, ratio, link_mbit or small_first"),
    ],
)
def test_impossible_clos_networks_are_refused(options: dict[str, Any], message: str) -> None:
    from serene.topologies.clos import Clos as Topology

    with pytest.raises(NotReady, match=message):
        Topology(**options)


def test_spine_ratio_of_a_third_may_be_a_decimal() -> None:
    from serene.topologies.clos import spines_of

    assert [spines_of(6, ratio) for ratio in (0.333333, 0.666667, 1)] == [1, 2, 3]


def test_mn_command_pings_over_clos() -> None:
    with private_network():
        run = subprocess.run([*MN, "--test", "pingall"], capture_output=True, text=True, timeout=240, cwd="/")
        assert "0% dropped (30/30 received)" in run.stderr + run.stdout, run.stderr
        assert interfaces() == set()


def test_killed_clos_network_leaves_nothing_behind(tmp_path: Path) -> None:
    with private_network():
        process = Marked(MN, tmp_path / "log")
        try:
            until(lambda: "Starting CLI" in process.output or process.process.poll() is not None, "the prompt", 240)
            assert process.process.poll() is None, process.output
            process.process.kill()
            process.wait()
            until(lambda: not process.alive(), "every process has ended")
            until(lambda: not interfaces(), "every interface is gone")
        finally:
            process.end()


@pytest.mark.parametrize(
    ("method", "small_first"), [("flat-butterfly", False), ("flat-butterfly", True), ("leaf-spine-aggregation", False)]
)
def test_hosts_exchange_over_clos(method: str, small_first: bool, tmp_path: Path) -> None:
    """Eight hosts of the network study; each checks its sum."""
    lacking = missing()
    if lacking:
        pytest.skip(f"an emulated network needs {lacking}")
    from serene.experiments.network_study.emulated.measure import measure
    from serene.experiments.network_study.emulated.plan import Emulated

    with private_network():
        row = measure(
            Emulated(method, 0.5, 10.0, 5000, ports=8, leaves=2, small_first=small_first), tmp_path, repeats=1
        )
        assert interfaces() == set()
    # Links let nothing pass faster than they are, but for two packets of each after a pause.
    assert row["emulated_s"] > 0.8 * row["simulated_s"] > 0
    assert len(row["samples_s"]) == 1
