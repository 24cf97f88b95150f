"""The simulated engine against closed forms that know nothing of packets, protocols or queues."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from serene.experiments.straggler_study.cases import Case
from serene.experiments.straggler_study.cell import NOTHING, SOFTMAX, BadCell, Cell, Network
from serene.experiments.straggler_study.learners import learner
from serene.experiments.straggler_study.measures import curve
from serene.experiments.straggler_study.simulated import Simulation, simulate
from serene.workers.train import EVALUATED
from serene.workers.training import Trainer
from tests.straggler_study.timing import SLOW, compute_times, ended

LATENCY_S = 50e-6
ROUND_TRIP = 2 * LATENCY_S
TIMING = Cell(model=NOTHING, straggler=SLOW, steps=60, workers=5, compute_ms=250)


def test_bsp_step_takes_as_long_as_its_slowest_worker() -> None:
    expected = np.cumsum(compute_times(TIMING).max(axis=0) + ROUND_TRIP)
    trace = simulate(TIMING)
    for worker in range(TIMING.workers):
        assert np.allclose(ended(trace, worker), expected, atol=1e-9)


@pytest.mark.parametrize("bound", [1, 3, 10])
def test_ssp_times_follow_their_recurrence(bound: int) -> None:
    """Worker w ends round r when its own push has arrived, and every worker's push of round r - bound."""
    cell = replace(TIMING, strategy=f"ssp:{bound}")
    times = compute_times(cell)
    pushed, end = np.zeros_like(times), np.zeros_like(times)
    for step in range(cell.steps):
        before = end[:, step - 1] if step else np.zeros(cell.workers)
        pushed[:, step] = before + times[:, step]
        # Round r may be ended while r < base + bound, and base is r - bound + 1 once round r - bound is complete.
        others = pushed[:, step - bound].max() if step >= bound else 0.0
        end[:, step] = np.maximum(pushed[:, step], others) + ROUND_TRIP
    trace = simulate(cell)
    first_to_leave = end[:, -1].min()  # from then on the job has fewer workers, in a new epoch
    for worker in range(cell.workers):
        upto = end[worker] <= first_to_leave
        assert np.allclose(ended(trace, worker)[upto], end[worker][upto], atol=1e-9)


def test_simulated_asp_never_waits() -> None:
    trace = simulate(replace(TIMING, strategy="asp"))
    expected = np.cumsum(compute_times(TIMING) + ROUND_TRIP, axis=1)
    for worker in range(TIMING.workers):
        assert np.allclose(ended(trace, worker), expected[worker], atol=1e-9)
    assert trace.steps["waited"].sum() == 0


@pytest.mark.parametrize("worker_pps", [75_000, 9_000, 900])  # 1 Gbit/s, 100 and 10 Mbit/s
@pytest.mark.parametrize("strategy", ["bsp", "ssp:1", "quorum:3"])
def test_identical_workers_do_not_wait_for_each_other(worker_pps: float, strategy: str) -> None:
    """However slow the links are: that is network time, also for workers whose packets never arrive last."""
    cell = Cell(steps=6, strategy=strategy, compute_ms=20, network=Network(worker_pps=worker_pps))
    steps = simulate(cell).steps
    steps = steps[steps["step"] > 1]  # in the first one nothing is known of the network yet
    exchanged = steps["ended"] - steps["pushed"]
    assert exchanged.min() > 248 / worker_pps
    assert steps["waited"].sum() < 0.03 * exchanged.sum()


@pytest.mark.parametrize("worker_pps", [75_000, 9_000])
def test_workers_wait_only_for_the_slower_one(worker_pps: float) -> None:
    cell = Cell(
        steps=6, compute_ms=40, straggler="heterogeneous:factor=5,workers=3", network=Network(worker_pps=worker_pps)
    )
    steps = simulate(cell).steps
    for worker in range(4):
        waited = steps["waited"][(steps["worker"] == worker) & (steps["step"] > 1)]
        assert waited.mean() == pytest.approx(0.0 if worker == 3 else 4 * 0.040, rel=0.1)


def test_mean_bsp_step_is_the_expected_maximum() -> None:
    """E[max of n] of 1 + B * U: computed from the distribution, not from the delays drawn."""
    workers, steps, p, low, high = 8, 600, 0.3, 0.5, 2.0
    grid = np.linspace(0, high, 20001)
    below = (1 - p) + p * np.clip((grid - low) / (high - low), 0, 1)  # P(delay <= x)
    expected = 1 + np.trapezoid(1 - below**workers, grid)
    trace = simulate(replace(TIMING, workers=workers, steps=steps))
    measured = trace.steps["ended"].max() / steps / 0.25
    deviation = np.sqrt(np.trapezoid(2 * grid * (1 - below**workers), grid) - (expected - 1) ** 2)
    assert abs(measured - expected) < 4 * deviation / np.sqrt(steps)


def test_packets_queue_at_links_and_switch() -> None:
    """One worker: its packets queue first at its link, then at the switch."""
    network = Network(worker_pps=1000, switch_pps=4000, latency_us=50)
    cell = Cell(model=NOTHING, workers=1, steps=3, compute_ms=10, stands_for=320 * 8, network=network)
    trace = simulate(cell)
    # Eight packets' worth on the way up. When the last one is there, the switch and the way down have the first seven
    # behind them.
    expected = 0.010 + 8 / 1000 + 1 / 4000 + 1 / 1000 + ROUND_TRIP
    assert np.allclose(ended(trace, 0), expected * np.arange(1, 4), atol=1e-9)


@pytest.mark.parametrize("share", [0.05, 0.30, 0.65])
def test_packet_groups_take_as_long_as_single_packets(share: float) -> None:
    """The exchange has the share of a step that the cell asks for, and nothing is retransmitted where nobody waits."""
    trace = simulate(replace(Case(SOFTMAX, "mild", share, "none", 4).cell("bsp", 1), steps=8))
    steps = trace.steps
    exchange_s, compute_s = (steps["ended"] - steps["pushed"]).mean(), (steps["pushed"] - steps["began"]).mean()
    assert exchange_s / (exchange_s + compute_s) == pytest.approx(share, abs=0.01)
    assert trace.facts["retransmissions"] == 0


@pytest.mark.parametrize("share", [0.05, 0.30, 0.65])
def test_worker_is_not_silent_while_its_packets_are_in_transit(share: float) -> None:
    """Otherwise pacing would judge all workers as late when an exchange takes long."""
    trace = simulate(replace(Case(SOFTMAX, "mild", share, "none", 4).cell("auto:pacing", 1), steps=20))
    assert [swap.strategy for swap in trace.swaps] == ["BSP"]


@pytest.mark.parametrize(("rate", "expected"), [("mild", "ASP"), ("edge", "3-of-n"), ("momentum", "BSP")])
def test_pacing_picks_strategy_by_value_of_late_gradients(rate: str, expected: str) -> None:
    """The strategy in force in the middle of a run in which two of four workers take 1.5 times as long."""
    trace = simulate(replace(Case(SOFTMAX, rate, 0.05, "heterogeneous", 4).cell("auto:pacing", 101), steps=40))
    middle = trace.steps["ended"].max() / 2
    assert [swap.strategy for swap in trace.swaps if swap.t < middle][-1] == expected


def test_run_ended_at_its_accuracy_has_the_whole_runs_time() -> None:
    cell = Cell(model=SOFTMAX, straggler=SLOW, strategy="ssp:3", steps=40, eval_every=2)
    whole = curve(simulate(cell))
    until = float(whole.accuracy[whole.steps <= 20].max())
    short = simulate(replace(cell, until=until))
    assert curve(short).reaches(until) == whole.reaches(until)
    assert short.steps["step"].max() < 40


def test_momentum_is_added_once_per_read() -> None:
    plain, heavy = (learner(Cell(model=SOFTMAX, workers=1, learning_rate=0.5, momentum=m), 0) for m in (0.0, 0.5))
    gradient = plain.gradient(1)[0]
    for each in (plain, heavy):
        for _ in range(2):
            each.apply(gradient)
    assert np.allclose(heavy._weights, 2.5 / 2 * plain._weights), "1 + 1.5 steps, not 2"  # type: ignore[attr-defined]
    with pytest.raises(BadCell, match="only softmax has it"):
        Cell(model="mlp", momentum=0.9).check()


def test_packet_grouping_changes_times_only_slightly() -> None:
    network = Network(worker_pps=60_000, switch_pps=75_000)
    cell = Cell(model="cnn", steps=2, straggler=SLOW, network=network, compute_ms=20)
    one, many = Simulation(cell, group=1).run(), Simulation(cell, group=64).run()
    longest_group = 11 * 29 / 11 / 75_000  # a cnn's 11 packets, each charged as 29 / 11 of 320 values
    difference = np.abs(np.sort(one.steps["ended"]) - np.sort(many.steps["ended"]))
    assert difference.max() < 4 * cell.steps * longest_group


@pytest.mark.parametrize("strategy", ["bsp", "ssp:3", "asp", "quorum:3", "mixed:0", "auto:waiting", "auto:dssp"])
def test_simulated_contributions_count_exactly_once(strategy: str) -> None:
    cell = Cell(model=SOFTMAX, strategy=strategy, straggler=SLOW, steps=30, compute_ms=250)
    facts = simulate(cell).facts
    assert facts["contributions_sent"] == facts["contributions_applied"] == 4 * 30 * 2  # two slots
    assert facts["dropped"] == 0


def test_simulation_is_reproducible_from_its_cell() -> None:
    cell = Cell(model=SOFTMAX, strategy="ssp:3", straggler=SLOW, steps=30)
    first, again, other = simulate(cell), simulate(cell), simulate(replace(cell, seed=2))
    assert first.steps.tobytes() == again.steps.tobytes()
    assert first.steps.tobytes() != other.steps.tobytes()


def test_simulated_staleness_stays_within_its_bound() -> None:
    """By the P4 program's counters, in rounds: at most s + 1, including what the others contributed meanwhile."""
    bsp = simulate(replace(TIMING, strategy="bsp")).staleness.sum(axis=0)
    ssp = simulate(replace(TIMING, strategy="ssp:3")).staleness.sum(axis=0)
    asp = simulate(replace(TIMING, strategy="asp", straggler="heterogeneous:factor=9")).staleness.sum(axis=0)
    assert np.flatnonzero(bsp).max() == 0
    assert 1 <= np.flatnonzero(ssp).max() <= 4
    assert np.flatnonzero(asp).max() > 4


def test_automatic_strategy_swaps_in_the_simulation() -> None:
    trace = simulate(replace(TIMING, strategy="auto:waiting"))
    assert [swap.strategy for swap in trace.swaps][:2] == ["BSP", "SSP(1)"]
    assert trace.steps["ended"].max() < simulate(TIMING).steps["ended"].max()


def test_simulated_silent_worker_is_evicted_and_readmitted() -> None:
    cell = replace(TIMING, straggler="failure:worker=2,iteration=10,pause_s=6", strategy="auto:evict:silent=1")
    names = [swap.strategy for swap in simulate(cell).swaps]
    assert names == ["BSP", "BSP, without 2", "BSP"]


def test_both_engines_evaluate_on_the_same_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the engines would reach an accuracy at different times."""
    evaluated: list[int | None] = []

    def accuracy(self: Trainer, images: int | None = None) -> float:
        evaluated.append(images)
        return 0.5

    monkeypatch.setattr(Trainer, "accuracy", accuracy)
    simulate(Cell(model="mlp", steps=2, eval_every=1, workers=2))
    assert evaluated == [EVALUATED] * 5  # before the first step, and each of both workers' two


def test_simulation_supports_32_workers() -> None:
    trace = simulate(replace(TIMING, workers=32, steps=20))
    expected = np.cumsum(compute_times(replace(TIMING, workers=32, steps=20)).max(axis=0) + ROUND_TRIP)
    assert np.allclose(ended(trace, 31), expected, atol=1e-9)
