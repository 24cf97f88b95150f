"""Networks and paths, compared with counts and walks computed here."""

import numpy as np
import pytest

from serene.experiments.network_study import cost
from serene.experiments.network_study.flows.clos import RATIOS, ROUTINGS, SIZES, BadNetwork, Clos


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("ports", [16, 32, 64])
def test_two_layer_clos_has_the_papers_number_of_switches(ports: int, ratio: float) -> None:
    network = Clos(2, ports, ports, ratio)
    assert network.hosts == ports**2 // 2
    assert network.switches == cost.switches(2, ports, ratio) == ports * (1 + ratio / 2)
    assert network.equivalents == cost.equivalents(network.switches, ports)


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("ports", [16, 32])
def test_three_layer_clos_has_the_papers_number_of_switches(ports: int, ratio: float) -> None:
    network = Clos(3, ports, ports, ratio)
    assert network.hosts == ports**3 // 4
    assert network.switches == cost.switches(3, ports, ratio) == ports**2 * (1 + ratio / 4)


def test_fat_tree_with_fewer_pods_needs_fewer_top_switches() -> None:
    network = Clos.of_size(256, 0.5)
    assert (network.groups, network.leaves, network.middles) == (4, 32, 32)
    # 32 upper switches with 4 links up each, 16 to a switch.
    assert network.top_switches == 32 * 4 // 16


@pytest.mark.parametrize("routing", ROUTINGS)
@pytest.mark.parametrize("ratio", [1.0, 0.125])
@pytest.mark.parametrize(("layers", "hosts"), SIZES)
def test_path_follows_existing_links_from_source_to_target(layers: int, hosts: int, ratio: float, routing: str) -> None:
    network = Clos.of_size(hosts, ratio, layers=layers, routing=routing)
    lower, upper = network.ends()
    assert lower.size == upper.size == network.links // 2 == network.levels.size
    random = np.random.default_rng(1)
    source = random.integers(0, hosts, 500)
    target = (source + random.integers(1, hosts, 500)) % hosts
    start, end = np.concatenate([lower, upper]), np.concatenate([upper, lower])
    for a, b, path in zip(source, target, network.paths(source, target), strict=True):
        links = path[path >= 0]
        assert start[links[0]] == a
        assert end[links[-1]] == b
        assert np.array_equal(end[links[:-1]], start[links[1:]])
        same_leaf, same_pod = a // network.half == b // network.half, a // network.half**2 == b // network.half**2
        assert links.size == (2 if same_leaf else 4 if layers == 2 or same_pod else 6)
        switches = set(end[links[:-1]].tolist())
        assert network.latencies[links].sum() == pytest.approx(len(switches) * network.switch_latency)


def test_reverse_returns_the_other_direction_of_a_link() -> None:
    network = Clos.of_size(128)
    links = np.array([0, 5, network.links - 1, -1])
    back = network.reverse(links)
    assert back.tolist() == [network.links // 2, network.links // 2 + 5, network.links // 2 - 1, -1]
    assert network.reverse(back).tolist() == links.tolist()


def test_each_link_has_a_path_of_its_own() -> None:
    """Aggregating switches communicate over single links."""
    for layers, hosts in SIZES:
        network = Clos.of_size(hosts, 0.5, layers=layers)
        lower, upper = network.ends()
        up, down = network.paths(lower, upper), network.paths(upper, lower)
        number = np.arange(lower.size)
        assert np.array_equal(up.max(axis=1), number)
        assert np.array_equal(down.max(axis=1), number + lower.size)
        assert ((up >= 0).sum(axis=1) == 1).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Clos(4, 8, 8), "4 layers; expected 2 or 3"),
        (lambda: Clos(2, 7, 7), "7 ports; expected an even number"),
        (lambda: Clos(2, 8, 9), "9 groups of 8-port switches; expected 1 to 8"),
        (lambda: Clos(2, 8, 8, 0.3), "bisection ratio 0.3 with 8 ports; expected one of 1/4, 2/4, 3/4, 4/4"),
        (lambda: Clos(2, 8, 8, bandwidth=0), "bandwidth 0 B/s"),
        (lambda: Clos(2, 8, 8, switch_latency=-1), "switch latency -1 s"),
        (lambda: Clos(2, 8, 8, routing="best"), "routing 'best'; expected d-mod-k or ecmp"),
        (lambda: Clos.of_size(100), "100 hosts; expected one of 128"),
        (lambda: Clos.of_size(128, layers=3), "128 hosts on 3 layers; expected one of"),
        (lambda: Clos(2, 8, 8).paths(np.array([0]), np.array([0])), "a flow from a node to itself"),
        (lambda: Clos(2, 8, 8).paths(np.array([0]), np.array([999])), "nodes that do not exist"),
        (lambda: Clos(2, 8, 8).paths(np.array([0]), np.array([Clos(2, 8, 8).top(0)])), "that no single link makes"),
    ],
)
def test_impossible_clos_networks_are_refused(make, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(BadNetwork, match=message.replace("(", r"\(")):
        make()
