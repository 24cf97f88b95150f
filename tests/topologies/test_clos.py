"""The Clos network: the simulator's routes, traffic between all hosts, and clean-up."""

from __future__ import annotations

import numpy as np
import pytest

from serene.experiments.network_study.flows.clos import Clos
from tests.runs import interfaces, missing, private_network

pytestmark = [pytest.mark.mininet, pytest.mark.usefixtures("mininet")]


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


def test_spine_ratio_of_a_third_may_be_a_decimal() -> None:
    from serene.topologies.clos import spines_of

    assert [spines_of(6, ratio) for ratio in (0.333333, 0.666667, 1)] == [1, 2, 3]


@pytest.mark.parametrize(
    ("method", "small_first"), [("flat-butterfly", False), ("flat-butterfly", True), ("leaf-spine-aggregation", False)]
)
def test_hosts_exchange_over_clos(method: str, small_first: bool) -> None:
    """Eight hosts of the network study; each checks its sum."""
    if lacking := missing():
        pytest.skip(f"needs {lacking}")
    from serene.experiments.network_study.emulated.measure import measure
    from serene.experiments.network_study.emulated.plan import Emulated

    with private_network():
        row = measure(Emulated(method, 0.5, 10.0, 5000, ports=8, leaves=2, small_first=small_first), repeats=1)
        assert interfaces() == set()
    # Links let nothing pass faster than they are, but for two packets of each after a pause.
    assert row["emulated_s"] > 0.8 * row["simulated_s"] > 0
    assert len(row["samples_s"]) == 1
