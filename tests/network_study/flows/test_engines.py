"""The NumPy engine compared with calculations by hand, and with SimGrid where it is installed."""

import numpy as np
import pytest

from serene.experiments.network_study.flows import simgrid_engine, solver
from serene.experiments.network_study.flows.clos import Clos
from serene.experiments.network_study.flows.model import IDEAL, LV08, NoSuchModel, model
from serene.experiments.network_study.flows.steps import BadStep, Step

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


def test_flow_over_a_longer_path_starts_later() -> None:
    slow = Clos(2, 4, 4, bandwidth=1e9, switch_latency=1e-3)
    ends = solver.finish_times(slow, step([(1, 0), (2, 0)]), IDEAL)
    # 1 MB at 1 GB/s, after one switch and after three.
    assert ends == pytest.approx([2e-3, 4e-3])


def test_steps_have_repetitions_delays_and_rate_limits() -> None:
    assert solver.run(NETWORK, [step([(0, 1)], times=3)], IDEAL) == pytest.approx(3 * (1e-6 + 1e-3))
    assert solver.run(NETWORK, [step([(0, 1)], delay=1.0)], IDEAL) == pytest.approx(1 + 1e-6 + 1e-3)
    assert solver.run(NETWORK, [step([(0, 1)], limit=1e8)], IDEAL) == pytest.approx(1e-6 + 1e-2)


def test_acknowledgements_use_bandwidth_of_the_reverse_path() -> None:
    """One flow in each direction over the same links: each link carries 1 and the other flow's 0.05."""
    assert solver.run(NETWORK, [step([(0, 1), (1, 0)])], LV08) == pytest.approx(13.01 * 1e-6 + 1.05e-3 / 0.97)


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


def test_mismatched_ends_and_unknown_models_are_refused() -> None:
    with pytest.raises(BadStep, match="expected as many, at least one"):
        Step(np.array([1, 2]), np.array([3]), 1.0)
    with pytest.raises(NoSuchModel, match="expected LV08 or ideal"):
        model("TCP")
