"""The NumPy engine compared with calculations by hand, and with SimGrid where it is installed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serene.experiments.network_study import cost
from serene.experiments.network_study.flows import simgrid_engine, solver
from serene.experiments.network_study.flows.clos import RATIOS, ROUTINGS, SIZES, BadNetwork, Clos
from serene.experiments.network_study.flows.solver import IDEAL, LV08, BadStep, Step, rates

NETWORK = Clos(2, 4, 4, bandwidth=1e9, switch_latency=1e-6)  # 8 hosts, 2 a leaf
needs_simgrid = pytest.mark.skipif(not simgrid_engine.installed(), reason="needs SimGrid (make simgrid)")


def step(pairs: list[tuple[int, int]], size: float = 1e6, **options: float) -> Step:
    return Step(np.array([a for a, _ in pairs]), np.array([b for _, b in pairs]), size, **options)  # type: ignore[arg-type]


def test_single_flow_takes_latency_plus_transfer_time() -> None:
    """First the latency of the one switch, then the bytes."""
    assert solver.run(NETWORK, [step([(0, 1)])], IDEAL) == pytest.approx(1e-6 + 1e-3)
    assert solver.run(NETWORK, [step([(0, 1)])], LV08) == pytest.approx(13.01 * 1e-6 + 1e-3 / 0.97)


def test_rates_rise_when_a_flow_ends() -> None:
    """Two flows to one host: half the rate each, until the shorter one has ended."""
    sizes = np.array([1e6, 3e6])
    ends = solver.finish_times(NETWORK, Step(np.array([2, 4]), np.array([0, 0]), sizes), IDEAL)
    assert ends - 3e-6 == pytest.approx([2e-3, 4e-3])


def test_steps_have_repetitions_delays_and_rate_limits() -> None:
    assert solver.run(NETWORK, [step([(0, 1)], times=3)], IDEAL) == pytest.approx(3 * (1e-6 + 1e-3))
    assert solver.run(NETWORK, [step([(0, 1)], delay=1.0)], IDEAL) == pytest.approx(1 + 1e-6 + 1e-3)
    assert solver.run(NETWORK, [step([(0, 1)], limit=1e8)], IDEAL) == pytest.approx(1e-6 + 1e-2)


@needs_simgrid
@pytest.mark.parametrize("routing", ["d-mod-k", "ecmp"])
@pytest.mark.parametrize(("layers", "hosts", "ratio"), [(2, 128, 1.0), (2, 128, 0.125), (3, 256, 0.25)])
def test_random_flows_take_as_long_as_in_simgrid(layers: int, hosts: int, ratio: float, routing: str) -> None:
    network = Clos.of_size(hosts, ratio, layers=layers, routing=routing)
    random = np.random.default_rng((hosts, round(8 * ratio)))
    steps = []
    for _ in range(3):
        source = random.integers(0, hosts, 200)
        target = (source + random.integers(1, hosts, 200)) % hosts
        steps.append(Step(source, target, np.round(random.uniform(1e5, 1e8, 200))))
    assert solver.run(network, steps, LV08) == pytest.approx(simgrid_engine.run(network, steps, LV08), rel=1e-9)


@needs_simgrid
def test_simgrid_engine_rejects_ideal_model_and_rate_limits() -> None:
    with pytest.raises(simgrid_engine.NoSimGrid, match="the model 'ideal' does not: use the engine 'numpy'"):
        simgrid_engine.run(NETWORK, [step([(0, 1)])], IDEAL)
    with pytest.raises(simgrid_engine.NoSimGrid, match="cannot limit a flow's rate"):
        simgrid_engine.run(NETWORK, [step([(0, 1)], limit=1e8)], LV08)


def test_missing_simgrid_names_make_simgrid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simgrid_engine, "installed", lambda: False)
    with pytest.raises(simgrid_engine.NoSimGrid, match="make simgrid"):
        simgrid_engine.run(NETWORK, [step([(0, 1)])], LV08)


@pytest.mark.parametrize("options", [{"size": 0.0}, {"size": np.inf}, {"limit": 0.0}, {"times": 0}, {"delay": -1.0}])
def test_impossible_steps_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(BadStep):
        step([(0, 1)], **options)


def test_step_with_mismatched_ends_is_refused() -> None:
    with pytest.raises(BadStep, match="expected as many, at least one"):
        Step(np.array([1, 2]), np.array([3]), 1.0)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_random_max_min_rates_satisfy_the_definition(data: st.DataObject) -> None:
    """Each flow is at its limit, or has a full link on which its rate over weight is the largest."""
    seed = data.draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    links, flows = int(random.integers(1, 8)), int(random.integers(1, 12))
    capacity = random.uniform(1, 10, links)
    uses = [
        (flow, link, random.choice([0.05, 0.5, 1.0]))
        for flow in range(flows)
        for link in random.choice(links, int(random.integers(1, links + 1)), replace=False)
    ]
    weight = random.uniform(0.5, 2, flows)
    limit = np.where(random.random(flows) < 0.3, random.uniform(0.1, 5, flows), np.inf)
    of, over, shares = (np.array(column) for column in zip(*uses, strict=True))
    found = rates(capacity, of, over, shares.astype(float), weight, limit)
    load = np.zeros(links)
    for flow, link, share in uses:
        load[link] += share * found[flow]
    assert (load <= capacity * (1 + 1e-9)).all()
    assert (found > 0).all()
    for flow in range(flows):
        tight = [
            link
            for who, link, _ in uses
            if who == flow
            and load[link] >= capacity[link] * (1 - 1e-9)
            and all(
                found[other] / weight[other] <= found[flow] / weight[flow] * (1 + 1e-9)
                for other, where, _ in uses
                if where == link
            )
        ]
        assert tight or found[flow] >= limit[flow] * (1 - 1e-9)


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize(("layers", "ports"), [(2, 16), (2, 32), (2, 64), (3, 16), (3, 32)])
def test_clos_has_the_papers_number_of_switches(layers: int, ports: int, ratio: float) -> None:
    network = Clos(layers, ports, ports, ratio)
    switches = ports * (1 + ratio / 2) if layers == 2 else ports**2 * (1 + ratio / 4)
    assert network.hosts == (ports**2 // 2 if layers == 2 else ports**3 // 4)
    assert network.switches == cost.switches(layers, ports, ratio) == switches
    assert network.equivalents == cost.equivalents(network.switches, ports)


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
        (lambda: Clos.of_size(128, layers=3), "128 hosts on 3 layers; expected one of"),
        (lambda: Clos(2, 8, 8).paths(np.array([0]), np.array([0])), "a flow from a node to itself"),
        (lambda: Clos(2, 8, 8).paths(np.array([0]), np.array([999])), "nodes that do not exist"),
        (lambda: Clos(2, 8, 8).paths(np.array([0]), np.array([Clos(2, 8, 8).top(0)])), "that no single link makes"),
    ],
)
def test_impossible_sizes_and_paths_of_clos_networks_are_refused(make, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(BadNetwork, match=message.replace("(", r"\(")):
        make()
