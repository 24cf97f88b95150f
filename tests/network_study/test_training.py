"""Training on large networks: the barrier against the P4 program's, bundles against single flows, sums in time."""

from dataclasses import replace

import numpy as np
import pytest

from serene.experiments.network_study.exchange import BadMethod, Exchange, SwitchSizes
from serene.experiments.network_study.flows import solver
from serene.experiments.network_study.flows.clos import Clos
from serene.experiments.network_study.flows.solver import IDEAL, LV08, rates
from serene.experiments.network_study.methods import METHODS
from serene.experiments.network_study.training import (
    PACKED,
    SERVERS,
    SWITCH,
    Bundles,
    Training,
    _Run,
    train,
)
from serene.experiments.straggler_study.cell import NOTHING, Cell, Network
from serene.experiments.straggler_study.simulated import simulate
from serene.strategy import ASP, BSP, SSP, Mixed, Quorum, Strategy, parse
from serene.workers import stragglers

SWITCH_SIZES = SwitchSizes(320, 8192)


def exchange(hosts: int = 128, ratio: float = 0.25, size: float = 100e6) -> Exchange:
    return Exchange(Clos.of_size(hosts, ratio), size, SWITCH_SIZES)


@pytest.mark.parametrize("straggler", ["slow_worker", "heterogeneous:factor=3", "failure:iteration=5,pause_s=1"])
@pytest.mark.parametrize("strategy", ["bsp", "ssp:2", "asp", "quorum:6", "mixed:0,3:1"])
def test_simulated_barrier_timing_matches_the_p4_program(strategy: str, straggler: str) -> None:
    """The same compute times run through the compiled program in virtual time, with an ideal network: every step of
    every worker ends at the same time."""
    steps, workers = 12, 8
    cell = Cell(model=NOTHING, workers=workers, steps=steps, compute_ms=100.0, network=Network(latency_us=0.0))
    trace = simulate(replace(cell, straggler=straggler, strategy=strategy, eval_every=steps))
    star = Exchange(Clos(2, 2 * workers, 1, switch_latency=0.0, bandwidth=1e15), 1.0, SWITCH_SIZES)
    slow = stragglers.parse(straggler)
    run = _Run(Training(star, SWITCH, parse(strategy), slow, 0.1, jitter=0.0, iterations=4 * steps), IDEAL)
    run.play()
    for worker in range(workers):
        theirs = np.sort(trace.steps["ended"][trace.steps["worker"] == worker])
        ours = np.array([when for who, when, _ in run.went if who == worker])[:steps]
        # A worker that has done its steps leaves, and from then on holds nobody back: compare while all are there.
        first_to_leave = min(trace.steps["ended"][trace.steps["worker"] == each].max() for each in range(workers))
        both = min(theirs.size, ours.size)
        there = theirs[:both] <= first_to_leave
        assert there.sum() >= 3
        assert ours[:both][there] == pytest.approx(theirs[:both][there], abs=2e-4)


def test_bundled_flows_get_max_min_fair_rates() -> None:
    """A leaf's flows as one variable get the rates that they get one by one."""
    network = Clos.of_size(256, 0.125)
    random = np.random.default_rng(1)
    leaf = random.integers(0, network.leaves, 300)
    bundles = Bundles(network, IDEAL, servers=32)
    for worker, where in enumerate(leaf.tolist()):
        bundles.add(where, worker, 1e6)
    bundles.next_in()
    speed, number = network.bandwidth, np.arange(leaf.size)
    pods = network.leaves + leaf // network.half
    last = network.leaves + network.groups
    sizes = (network.leaves, network.groups, 1)
    capacity = np.repeat(speed * np.array([network.half, network.half * network.up, 32]), sizes)
    over = np.concatenate([leaf, pods, np.full(leaf.size, last)])
    shares = np.repeat([1 - 1 / network.leaves, 1 - 1 / network.groups, 1], leaf.size)
    alone = rates(capacity, np.tile(number, 3), over, shares, np.ones(leaf.size), np.full(leaf.size, speed))
    assert bundles._rate[leaf] == pytest.approx(alone)


@pytest.mark.parametrize(
    ("how", "method", "hosts", "ratio"),
    [
        (SERVERS, "servers-distributed", 512, 1.0), (PACKED, "servers-packed", 128, 0.25),
        (PACKED, "servers-packed", 256, 0.25), (PACKED, "servers-packed", 512, 1.0),
    ],
)  # fmt: skip
def test_bsp_server_round_time_matches_simulated_exchange(how: str, method: str, hosts: int, ratio: float) -> None:
    """Under BSP without a straggler a round is compute time plus the exchange, as simulated flow by flow."""
    asked = exchange(hosts, ratio)
    found = train(Training(asked, how, BSP(), stragglers.parse("none"), 0.1, jitter=0.0, iterations=5), LV08)
    seconds = solver.run(asked.network, METHODS[method].steps(asked), LV08)
    assert 1 / found.rounds_per_s == pytest.approx(0.1 + seconds, rel=0.01)


@pytest.mark.parametrize("how", [SWITCH, "ring", "layered-butterfly"])
def test_bsp_round_takes_as_long_as_the_slowest_worker(how: str) -> None:
    slow = stragglers.parse("heterogeneous:factor=3")
    asked = exchange()
    found = train(Training(asked, how, BSP(), slow, 0.1, jitter=0.0, iterations=5), LV08)
    name = "leaf-spine-aggregation" if how == SWITCH else how
    assert 1 / found.rounds_per_s == pytest.approx(
        0.3 + solver.run(asked.network, METHODS[name].steps(asked), LV08), rel=0.01
    )


@pytest.mark.parametrize("how", [SWITCH, SERVERS])
@pytest.mark.parametrize("strategy", [BSP(), SSP(3), ASP(), Quorum(100), Mixed((0, 1))])
def test_training_time_shares_add_up_and_staleness_is_bounded(how: str, strategy: Strategy) -> None:
    run = _Run(Training(exchange(), how, strategy, stragglers.parse("slow_worker"), iterations=8), LV08)
    run.play()
    found = run.outcome()
    assert found.computing + found.waiting + found.network == pytest.approx(1)
    assert run.spent.sum() == pytest.approx(found.seconds * found.workers)
    if isinstance(strategy, BSP | SSP):
        bound = getattr(strategy, "staleness", 0)
        assert min(bound, 1) <= found.ahead_max <= bound
    if isinstance(strategy, ASP):
        assert found.waiting == 0


def test_training_is_reproducible_from_its_seed() -> None:
    runs = [
        train(Training(exchange(), SERVERS, SSP(3), stragglers.parse("slow_worker"), iterations=5, seed=seed), LV08)
        for seed in (1, 1, 2)
    ]
    assert runs[0] == runs[1] != runs[2]


def test_impossible_trainings_are_refused() -> None:
    none = stragglers.parse("none")
    with pytest.raises(BadMethod, match="no way to exchange 'gossip'; expected servers, servers-packed, switch, "):
        train(Training(exchange(), "gossip", BSP(), none), LV08)
    with pytest.raises(
        BadMethod, match=r"ring supports BSP only, not SSP\(3\); expected BSP, or servers, servers-packed"
    ):
        train(Training(exchange(), "ring", SSP(3), none), LV08)
