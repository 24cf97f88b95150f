"""Exchange methods: each one's sums, and its times compared with closed forms and SimGrid."""

from collections.abc import Callable

import numpy as np
import pytest

from serene.experiments.network_study import closed_forms, reference
from serene.experiments.network_study.exchange import BadMethod, Exchange, SwitchSizes
from serene.experiments.network_study.flows import simgrid_engine, solver
from serene.experiments.network_study.flows.clos import SIZES, Clos
from serene.experiments.network_study.flows.solver import IDEAL, LV08, Model
from serene.experiments.network_study.methods import METHODS, Origin, method, names
from serene.program import Program

SIZE = 100e6
SWITCH = SwitchSizes(320, 8192)


def exchange(layers: int, hosts: int, ratio: float = 1.0) -> Exchange:
    return Exchange(Clos.of_size(hosts, ratio, layers=layers), SIZE, SWITCH)


def formula(name: str) -> Callable[[Exchange, Model], float]:
    found = method(name).closed_form
    assert found is not None
    return found


@pytest.mark.parametrize("name", ["flat-butterfly", "layered-butterfly", "layered-butterfly-fixed-heads"])
@pytest.mark.parametrize(("layers", "hosts"), [(2, 128), (3, 256)])
def test_methods_leave_every_host_with_the_sum_of_all(name: str, layers: int, hosts: int) -> None:
    """Played with sets of contributors: a flow carries what its sender had when the step began. A flow up adds; a flow
    down a tree replaces."""
    asked = exchange(layers, hosts)
    have = [{host} for host in range(hosts)]
    for step in METHODS[name].steps(asked):
        before = [set(each) for each in have]
        for source, target in zip(step.source.tolist(), step.target.tolist(), strict=True):
            added = before[source]
            assert not added & before[target] or len(added) == hosts  # nothing is added twice
            have[target] = have[target] | added
    assert all(len(each) == hosts for each in have)


@pytest.mark.parametrize("name", ["servers-packed", "servers-distributed", "servers-same-order"])
def test_each_worker_exchanges_once_with_every_server(name: str) -> None:
    asked = exchange(2, 512)
    flows = [
        (a, b)
        for step in METHODS[name].steps(asked)
        for a, b in zip(step.source.tolist(), step.target.tolist(), strict=True)
    ]
    servers = 512 // 8
    assert len(flows) == len(set(flows)) == 2 * servers * (512 - servers)
    assert {(b, a) for a, b in flows} == set(flows)


@pytest.mark.parametrize("name", names(lambda method: method.closed_form is not None))
@pytest.mark.parametrize(("layers", "hosts"), reference.NETWORKS)
def test_simulation_without_contention_matches_closed_forms(name: str, layers: int, hosts: int) -> None:
    asked = exchange(layers, hosts)
    for constants in (LV08, IDEAL) if hosts == 128 else (LV08,):
        simulated = solver.run(asked.network, method(name).steps(asked), constants)
        known = formula(name)(asked, constants)
        # Routes that meet are all that leaf aggregation on small leaves has on top; rings begin with short paths.
        assert simulated == pytest.approx(known, rel=0.12 if name == "leaf-aggregation" else 0.015)


@pytest.mark.parametrize("name", ["flat-butterfly", "layered-butterfly", "servers-packed", "leaf-spine-aggregation"])
@pytest.mark.parametrize("ratio", [0.5, 0.25, 0.125])
@pytest.mark.parametrize(("layers", "hosts"), [(2, 128), (3, 256)])
def test_simulation_with_thin_bisection_matches_closed_forms(name: str, ratio: float, layers: int, hosts: int) -> None:
    asked = exchange(layers, hosts, ratio)
    simulated = solver.run(asked.network, method(name).steps(asked), LV08)
    assert simulated == pytest.approx(formula(name)(asked, LV08), rel=0.005)


def test_ideal_closed_forms_match_known_values() -> None:
    """In units of gradient / bandwidth, without latency: log2 h + log2 m / r; 2 log2 h + log2 m; 14."""
    network = Clos.of_size(2048, 0.25, switch_latency=0.0)
    asked = Exchange(network, SIZE, SWITCH)
    unit = SIZE / network.bandwidth
    assert closed_forms.flat_butterfly(asked, IDEAL) / unit == pytest.approx(5 + 6 / 0.25)
    assert closed_forms.layered_butterfly(asked, IDEAL) / unit == pytest.approx(2 * 5 + 6)
    assert closed_forms.servers_distributed(asked, IDEAL) / unit == pytest.approx(14)
    assert closed_forms.servers_packed(asked, IDEAL) / unit == pytest.approx(14 / 0.25)


RECORDED = reference.recorded()


@pytest.mark.parametrize("pair", RECORDED, ids=lambda pair: f"{pair.cell.network.hosts}-{pair.cell.method}")
def test_solver_matches_recorded_simgrid_times(pair: reference.Pair) -> None:
    """SimGrid sends whole bytes, so a part of a gradient may differ by half a byte. For a ring's parts of 7,812.5 bytes
    of 1 MB, a sixth of its time, the difference is 1.1e-5 of the total."""
    assert pair.error() < 1.2e-5


def test_simgrid_record_covers_every_method() -> None:
    assert {pair.cell for pair in RECORDED} == set(reference.cells())
    assert {pair.cell.method for pair in RECORDED} == set(names(lambda method: method.recorded))
    assert set(names(lambda method: method.origin is Origin.PAPER)) < {pair.cell.method for pair in RECORDED}


@pytest.mark.skipif(not simgrid_engine.installed(), reason="needs SimGrid (make simgrid)")
def test_simgrid_reproduces_recorded_times() -> None:
    some = [pair for pair in RECORDED if pair.cell.network.hosts == 128 and pair.cell.network.ratio == 0.125]
    assert len(some) >= 8
    for then, now in zip(some, reference.simulate([pair.cell for pair in some]), strict=True):
        assert now.simgrid_s == pytest.approx(then.simgrid_s, rel=1e-7)


def test_slots_and_window_limit_a_workers_rate() -> None:
    network = Clos.of_size(128, bandwidth=4e9, switch_latency=1e-6)
    whole, few = (
        solver.run(
            network, method("leaf-spine-aggregation").steps(Exchange(network, SIZE, SwitchSizes(320, slots))), LV08
        )
        for slots in (8192, 2)
    )
    assert few > 2 * whole
    # Two packets of 1,362 bytes in each round trip of four links and three switches.
    trip = 3 * 1e-6 + 4 * 1362 / 4e9
    assert few == pytest.approx(SIZE * 1362 / 1280 / (2 * 1362 / trip), rel=0.001)
    assert SwitchSizes.of(Program.load()).packet == 1362


def test_methods_refuse_networks_of_unsuitable_sizes() -> None:
    odd = Exchange(Clos(2, 6, 6), SIZE, SWITCH)
    with pytest.raises(BadMethod, match="a butterfly over 18 hosts; expected a power of two"):
        list(METHODS["flat-butterfly"].steps(odd))
    with pytest.raises(BadMethod, match="leaves of 3 hosts have no room for one server in 8"):
        list(METHODS["servers-distributed"].steps(odd))


def test_aggregation_sends_a_gradient_once_over_every_link() -> None:
    """Link loads are summed from the flows: a worker's link carries its gradient once each way, and no thinned link
    more."""
    for layers, hosts in SIZES:
        asked = exchange(layers, hosts, 0.125)
        (step,) = METHODS["leaf-spine-aggregation"].steps(asked)
        load = np.zeros(asked.network.links)
        for path, size in zip(asked.network.paths(step.source, step.target), step.sizes, strict=True):
            load[path[path >= 0]] += size
        assert load.max() == pytest.approx(SIZE * SWITCH.overhead)
        assert (load > 0).all()
