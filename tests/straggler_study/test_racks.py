"""The simulated engine over a tree of switches, against one process, one switch, and closed forms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from serene.experiments.straggler_study.cell import NOTHING, SOFTMAX, BadCell, Cell, Network, RackNetwork
from serene.experiments.straggler_study.dataplane import Tree
from serene.experiments.straggler_study.simulated import Simulation, simulate
from serene.experiments.straggler_study.trace import Trace
from serene.fixedpoint import DEFAULT_SCALE, FixedPoint
from serene.strategy import BadStrategy
from serene.workers.reference import train
from serene.workers.training import Recipe, Trainer
from tests.straggler_study.timing import SLOW, compute_times, ended

UPLINK_US = 30.0
ROUND_TRIP = 2 * (50e-6 + UPLINK_US * 1e-6)
TWO = RackNetwork(2, uplink_latency_us=UPLINK_US)
TIMING = Cell(model=NOTHING, straggler=SLOW, steps=12, workers=64, compute_ms=250, racks=TWO)
STRATEGIES = ["bsp", "ssp:3", "asp", "quorum:48", "mixed:0,40", "auto:waiting", "auto:evict:silent=1"]


def played(cell: Cell) -> tuple[Trace, Simulation, Tree]:
    """With the switches as they are at the end."""
    simulation = Simulation(cell)
    plane = simulation.plane
    assert isinstance(plane, Tree)
    close, plane.close = plane.close, lambda: None  # type: ignore[method-assign]
    trace = simulation.run()
    plane.close = close  # type: ignore[method-assign]
    return trace, simulation, plane


def test_bsp_of_64_workers_in_two_racks_equals_one_process() -> None:
    cell = Cell(workers=64, steps=2, compute_ms=20, straggler=SLOW, racks=TWO)
    simulation = Simulation(cell)
    simulation.run()
    reference = train(Recipe(workers=64, steps=2, seed=cell.seed))
    for worker in simulation.workers:
        assert isinstance(worker.learner, Trainer)
        assert worker.learner.parameters.tobytes() == reference.tobytes()


def test_bsp_step_over_racks_takes_slowest_worker_plus_links() -> None:
    expected = np.cumsum(compute_times(TIMING).max(axis=0) + ROUND_TRIP)
    trace = simulate(TIMING)
    for worker in range(TIMING.workers):
        took = ended(trace, worker)
        # In its first round a leaf is asked once more, when the root begins the epoch.
        assert np.allclose(np.diff(took), np.diff(expected), atol=1e-9)
        assert expected[0] <= took[0] + 1e-9 < expected[0] + 4 * UPLINK_US * 1e-6 + 1e-9


def test_asp_over_racks_never_waits_and_leaves_answer_locally() -> None:
    trace = simulate(replace(TIMING, strategy="asp"))
    times = compute_times(TIMING)
    # From then on the job has fewer workers, in a new epoch, which the root tells of.
    first_to_leave = min(ended(trace, worker)[-1] for worker in range(TIMING.workers))
    for worker in range(TIMING.workers):
        end = ended(trace, worker)
        upto = end[1:] <= first_to_leave
        assert np.allclose(np.diff(end)[upto], times[worker, 1:][upto] + 2 * 50e-6, atol=1e-9)
    assert trace.steps["waited"].sum() == 0


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_contributions_over_racks_count_once_and_reach_the_root(strategy: str) -> None:
    straggler = "failure:worker=40,iteration=3,pause_s=3" if strategy.startswith("auto:evict") else SLOW
    cell = replace(TIMING, model=SOFTMAX, strategy=strategy, straggler=straggler)
    trace, _, plane = played(cell)
    assert trace.facts["contributions_sent"] == trace.facts["contributions_applied"] == 64 * 12 * 2  # two slots
    totals = plane.root.switch.register_read_all(plane.root.names["totals_of"], 0, 2)
    assert [total >> 32 for total in totals] == [64 * 12] * 2
    plane.close()
    if strategy.startswith("auto:"):
        assert len(trace.swaps) > 1
    if strategy.startswith("auto:evict"):
        assert trace.swaps[1].strategy == "BSP, without 40", "a worker of the second rack, by its number in the job"


def test_bsp_over_racks_learns_exactly_as_at_one_switch() -> None:
    star = Cell(model=SOFTMAX, workers=8, steps=12, straggler=SLOW, eval_every=1)
    one, tree = simulate(star), simulate(replace(star, racks=RackNetwork(3)))
    for worker in range(8):
        rows = [trace.steps[trace.steps["worker"] == worker] for trace in (one, tree)]
        for name in ("step", "loss", "accuracy", "contributions"):
            assert np.array_equal(rows[0][name], rows[1][name]), name


def test_simulated_uplinks_add_their_delay() -> None:
    racks = RackNetwork(2, uplink_pps=500, uplink_latency_us=UPLINK_US)
    cell = Cell(model=NOTHING, workers=2, steps=5, compute_ms=40, stands_for=320 * 8, racks=racks)
    trace = simulate(replace(cell, network=Network(worker_pps=1000, latency_us=50)))
    # Eight packets follow one another over each link, each way; the slowest link sets the pace of the last seven.
    expected = 0.040 + 2 * 1 / 1000 + 2 * 1 / 500 + 7 / 500 + ROUND_TRIP
    for worker in range(2):
        # In the first two rounds there is more on the links, as the epoch has begun.
        assert np.allclose(np.diff(ended(trace, worker))[1:], expected, atol=1e-9)


def test_simulated_tree_of_256_workers_loses_nothing() -> None:
    cell = replace(TIMING, model=SOFTMAX, workers=256, steps=3, strategy="ssp:1", racks=replace(TWO, count=8))
    trace, simulation, plane = played(cell)
    assert trace.facts["contributions_sent"] == trace.facts["contributions_applied"] == 256 * 3 * 2
    assert sorted(set(trace.steps["worker"].tolist())) == list(range(256))
    assert plane.numbers == [number for _ in range(8) for number in range(32)]
    assert simulation.workers[0].protocol.membership.scale == DEFAULT_SCALE // 2, "256 of the largest values fit"
    plane.close()


def test_scale_shrinks_so_that_one_contribution_each_fits() -> None:
    assert [FixedPoint.of(workers).scale for workers in (1, 255, 256, 511, 512)] == [
        DEFAULT_SCALE, DEFAULT_SCALE, DEFAULT_SCALE // 2, DEFAULT_SCALE // 2, DEFAULT_SCALE // 4
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        (Cell(workers=33), "workers 33: expected 1 to 32; more are in racks"),
        (Cell(workers=65, racks=TWO), "65 workers in 2 racks: expected 2 to 64"),
        (Cell(workers=9, racks=RackNetwork(9)), "9 racks: expected 1 to 8"),
        (replace(TIMING, engine="emulated", model="mlp"), "racks are simulated only"),
        (replace(TIMING, racks=RackNetwork(2, uplink_pps=-1)), "uplink_pps -1: expected 0 or more"),
    ],
)
def test_impossible_racks_are_refused(cell: Cell, said: str) -> None:
    with pytest.raises((BadCell, BadStrategy), match=said):
        cell.check()


def test_cell_without_racks_keeps_its_digest() -> None:
    assert "racks" not in Cell().to_dict()
    assert Cell.from_dict(Cell().to_dict()) == Cell()
    assert Cell.from_dict(TIMING.to_dict()) == TIMING
