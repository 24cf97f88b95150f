"""The simulated engine against closed forms that know nothing of packets, protocols or queues."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from serene.controller.automatic import BadAutomatic, loading
from serene.experiments.straggler_study import grid, simulated
from serene.experiments.straggler_study.cases import Case
from serene.experiments.straggler_study.cell import NOTHING, SOFTMAX, Cell, Network, RackNetwork
from serene.experiments.straggler_study.dataplane import DataPlane, Tree
from serene.experiments.straggler_study.learners import learner
from serene.experiments.straggler_study.measures import curve, numbers
from serene.experiments.straggler_study.simulated import Simulation, simulate
from serene.experiments.straggler_study.trace import Trace
from serene.fixedpoint import DEFAULT_SCALE, FixedPoint
from serene.workers.reference import train
from serene.workers.stragglers import parse
from serene.workers.train import EVALUATED
from serene.workers.training import Recipe, Trainer

SLOW = "slow_worker:probability=0.3,low=0.5,high=2.0"
LATENCY_S = 50e-6
ROUND_TRIP = 2 * LATENCY_S
TIMING = Cell(model=NOTHING, straggler=SLOW, steps=60, workers=5, compute_ms=250)


def compute_times(cell: Cell) -> np.ndarray:
    """float64[workers, steps], seconds."""
    profile, mean = parse(cell.straggler), cell.compute_ms / 1e3
    return np.array(
        [
            [mean + profile.delay(worker, step, mean, cell.seed) for step in range(1, cell.steps + 1)]
            for worker in range(cell.workers)
        ]
    )


def ended(trace: Trace, worker: int) -> np.ndarray:
    rows = trace.steps[trace.steps["worker"] == worker]
    return np.asarray(rows["ended"][np.argsort(rows["step"])])


@pytest.mark.parametrize("workers", [5, 32])
def test_bsp_step_takes_as_long_as_its_slowest_worker(workers: int) -> None:
    cell = replace(TIMING, workers=workers)
    expected = np.cumsum(compute_times(cell).max(axis=0) + ROUND_TRIP)
    trace = simulate(cell)
    for worker in range(workers):
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


@pytest.mark.parametrize(  # 1 Gbit/s, 100 and 10 Mbit/s
    ("worker_pps", "strategy"), [(75_000, "bsp"), (9_000, "ssp:1"), (900, "quorum:3"), (900, "bsp")]
)
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
    workers, steps, p, low, high = 8, 300, 0.3, 0.5, 2.0
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


@pytest.mark.parametrize("share", [0.05, 0.65])
def test_packet_groups_take_as_long_as_single_packets(share: float) -> None:
    """The exchange has the share of a step that the cell asks for, and nothing is retransmitted where nobody waits."""
    trace = simulate(replace(Case(SOFTMAX, "mild", share, "none", 4).cell("bsp", 1), steps=8))
    steps = trace.steps
    exchange_s, compute_s = (steps["ended"] - steps["pushed"]).mean(), (steps["pushed"] - steps["began"]).mean()
    assert exchange_s / (exchange_s + compute_s) == pytest.approx(share, abs=0.01)
    assert trace.facts["retransmissions"] == 0


@pytest.mark.parametrize("share", [0.05, 0.65])
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


@pytest.mark.parametrize(
    ("decides", "message"),
    [
        ("raise ValueError('two\\nlines')", r"ValueError('two\nlines') in line 5"),
        ("raise RuntimeError('not stuck')", "RuntimeError('not stuck') in line 5"),
        ("raise SystemExit(3)", "SystemExit(3) in line 5"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt() in line 5"),
        ("return 5", "returned 5: expected a Strategy, a Decision or None"),
        ("return Quorum(6)", "a quorum of 6 of 5 workers: expected 1 to 5"),
        ("return Decision(BSP(), frozenset([9]))", "worker 9 cannot be evicted: expected 0, 1, 2, 3 or 4"),
        ("return Decision(BSP(), frozenset(range(5)))", "the last member cannot be evicted"),
        ("while True: pass", "no answer within 0.2 s"),
        ("threading.Event().wait()", "no answer within 0.2 s"),
        ("try: threading.Event().wait()\n    except Exception: raise ValueError", "no answer within 0.2 s"),
        ("try: threading.Event().wait()\n    except BaseException: return", "no answer within 0.2 s"),
    ],
)
def test_strategy_that_a_controller_would_end_has_no_result(
    tmp_path: Path, decides: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not another strategy's result under its name."""
    monkeypatch.setattr(simulated, "DECISION_TIMEOUT_S", 0.2)
    file = tmp_path / "mine.py"
    file.write_text(
        "import threading\nfrom serene.controller.automatic import Decision\nfrom serene.strategy import BSP, Quorum\n"
        f"def Mine(seen):\n    {decides}\n"
    )
    with pytest.raises(BadAutomatic) as ended:
        simulate(replace(TIMING, strategy=f"auto:{file}:Mine"))
    assert str(ended.value).startswith(f"auto:{file}:Mine: ") and message in str(ended.value)


def test_strategy_file_may_load_slowly_beside_other_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver alone refuses a slow file. Several cells that load it at once take longer than one."""
    monkeypatch.setattr(loading, "DECISION_TIMEOUT_S", 0.2)
    file = tmp_path / "mine.py"
    file.write_text("import time\ntime.sleep(0.3)\ndef Mine(seen): ...\n")
    cell = Cell(model=NOTHING, workers=1, steps=1, strategy=f"auto:{file}:Mine")
    with pytest.raises(BadAutomatic, match="no answer within"):
        cell.check()
    assert len(simulate(cell).steps) == 1


def test_what_a_strategys_module_keeps_does_not_reach_another_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise results would depend on which process ran which cells before."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "kept_by_mine.py").write_text("asked = 0\n")
    file = tmp_path / "mine.py"
    file.write_text(
        "import kept_by_mine\nfrom serene.strategy import ASP, BSP\n"
        "def Mine(seen):\n    kept_by_mine.asked += 1\n    return ASP() if kept_by_mine.asked > 5 else BSP()\n"
    )
    first, second = (simulate(replace(TIMING, strategy=f"auto:{file}:Mine")) for _ in range(2))
    assert [swap.strategy for swap in first.swaps] == ["BSP", "ASP"]
    assert first.swaps == second.swaps and first.steps.tobytes() == second.steps.tobytes()


def test_decision_that_names_nobody_keeps_workers_evicted(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from serene.controller.automatic import Decision\nfrom serene.strategy import BSP, SSP\n"
        "def Mine(seen):\n    return Decision(SSP(1), reason='late') if seen.epoch > 1 else Decision(BSP(), {2})\n"
    )
    swaps = simulate(replace(TIMING, strategy=f"auto:{file}:Mine", steps=12)).swaps
    assert [swap.strategy for swap in swaps] == ["BSP", "BSP, without 2", "SSP(1), without 2"]


def test_waiting_before_a_swap_is_not_that_of_the_new_strategy(tmp_path: Path) -> None:
    """The workers' reports have an epoch, as those of a session."""
    file = tmp_path / "mine.py"
    file.write_text(
        "from serene.strategy import ASP, SSP\n"
        "def Mine(seen):\n"
        "    if (seen.waiting_share or 0) > 0.1:\n        return ASP() if seen.epoch == 1 else SSP(1)\n"
    )
    slow = replace(TIMING, strategy=f"auto:{file}:Mine", straggler="heterogeneous:factor=3,workers=0", steps=40)
    assert [swap.strategy for swap in simulate(slow).swaps] == ["BSP", "ASP"]


def test_strategy_that_changes_its_period_keeps_the_first_as_in_a_controller(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from serene.controller.automatic import Automatic\nfrom serene.strategy import SSP\n"
        "class Mine(Automatic):\n    period_s = 0.1\n    bound = 1\n"
        "    def decide(self, seen):\n        self.period_s, self.bound = 1e3, self.bound + 1\n"
        "        return SSP(self.bound)\n"
    )
    trace = simulate(replace(TIMING, steps=2, strategy=f"auto:{file}:Mine"))
    assert [swap.strategy for swap in trace.swaps[:3]] == ["BSP", "SSP(2)", "SSP(3)"]


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


def test_packet_grouping_changes_times_only_slightly() -> None:
    network = Network(worker_pps=60_000, switch_pps=75_000)
    cell = Cell(model="cnn", steps=2, straggler=SLOW, network=network, compute_ms=20)
    one, many = Simulation(cell, group=1).run(), Simulation(cell, group=64).run()
    longest_group = 11 * 29 / 11 / 75_000  # a cnn's 11 packets, each charged as 29 / 11 of 320 values
    difference = np.abs(np.sort(one.steps["ended"]) - np.sort(many.steps["ended"]))
    assert difference.max() < 4 * cell.steps * longest_group


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


def test_both_engines_evaluate_on_the_same_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the engines would reach an accuracy at different times."""
    evaluated: list[int | None] = []

    def accuracy(self: Trainer, images: int | None = None) -> float:
        evaluated.append(images)
        return 0.5

    monkeypatch.setattr(Trainer, "accuracy", accuracy)
    simulate(Cell(model="mlp", steps=2, eval_every=1, workers=2))
    assert evaluated == [EVALUATED] * 5  # before the first step, and each of both workers' two


# -- racks ---------------------------------------------------------------------------------------------------------


UPLINK_US = 30.0
OVER_UPLINKS = 2 * (LATENCY_S + UPLINK_US * 1e-6)
TWO = RackNetwork(2, uplink_latency_us=UPLINK_US)
IN_RACKS = Cell(model=NOTHING, straggler=SLOW, steps=12, workers=64, compute_ms=250, racks=TWO)
STRATEGIES = ("bsp", "ssp:3", "asp", "quorum:{quorum}", "mixed:0,{late}", "auto:waiting", "auto:evict:silent=1")
WHERE = [(strategy, TWO) for strategy in STRATEGIES] + [(strategy, None) for strategy in STRATEGIES[4:]]


def played(cell: Cell) -> tuple[Trace, Simulation, DataPlane]:
    """With the switches as they are at the end."""
    simulation = Simulation(cell)
    plane = simulation.plane
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
    expected = np.cumsum(compute_times(IN_RACKS).max(axis=0) + OVER_UPLINKS)
    trace = simulate(IN_RACKS)
    for worker in range(IN_RACKS.workers):
        took = ended(trace, worker)
        # In its first round a leaf is asked once more, when the root begins the epoch.
        assert np.allclose(np.diff(took), np.diff(expected), atol=1e-9)
        assert expected[0] <= took[0] + 1e-9 < expected[0] + 4 * UPLINK_US * 1e-6 + 1e-9


def test_asp_over_racks_never_waits_and_leaves_answer_locally() -> None:
    trace = simulate(replace(IN_RACKS, strategy="asp"))
    times = compute_times(IN_RACKS)
    # From then on the job has fewer workers, in a new epoch, which the root announces.
    first_to_leave = min(ended(trace, worker)[-1] for worker in range(IN_RACKS.workers))
    for worker in range(IN_RACKS.workers):
        end = ended(trace, worker)
        upto = end[1:] <= first_to_leave
        assert np.allclose(np.diff(end)[upto], times[worker, 1:][upto] + 2 * 50e-6, atol=1e-9)
    assert trace.steps["waited"].sum() == 0


@pytest.mark.parametrize(("strategy", "racks"), WHERE)
def test_contributions_count_exactly_once_and_reach_the_root(strategy: str, racks: RackNetwork | None) -> None:
    workers, late = (64, 40) if racks else (4, 2)
    strategy = strategy.format(late=late, quorum=workers * 3 // 4)
    straggler = f"failure:worker={late},iteration=3,pause_s=3" if strategy.startswith("auto:evict") else SLOW
    cell = replace(IN_RACKS, model=SOFTMAX, strategy=strategy, straggler=straggler, workers=workers, racks=racks)
    trace, _, plane = played(cell)
    assert trace.facts["contributions_sent"] == trace.facts["contributions_applied"] == workers * 12 * 2  # two slots
    assert trace.facts["dropped"] == 0
    if isinstance(plane, Tree):
        totals = plane.root.switch.register_read_all(plane.root.names["totals_of"], 0, 2)
        assert [total >> 32 for total in totals] == [workers * 12] * 2
    plane.close()
    swaps = [swap.strategy for swap in trace.swaps]
    assert (len(swaps) > 1) == strategy.startswith("auto:")
    if strategy.startswith("auto:evict"):
        assert swaps == ["BSP", f"BSP, without {late}", "BSP"], "by its number in the job"


@pytest.mark.parametrize("share", grid.SHARES)
def test_twin_of_an_emulated_cell_has_the_wanted_share(share: float) -> None:
    twin = grid.simulated(grid.cell("mlp", share, grid.NONE, "bsp", 1, grid.Length(5, 5)))
    trace = simulate(replace(twin, model=NOTHING, stands_for=grid.PARAMETERS["mlp"]))
    found = numbers(trace, np.nan)
    assert found.exchange_s / found.step_s == pytest.approx(share, abs=0.02)


def test_simulated_uplinks_add_their_delay() -> None:
    racks = RackNetwork(2, uplink_pps=500, uplink_latency_us=UPLINK_US)
    cell = Cell(model=NOTHING, workers=2, steps=5, compute_ms=40, stands_for=320 * 8, racks=racks)
    trace = simulate(replace(cell, network=Network(worker_pps=1000, latency_us=50)))
    # Eight packets follow one another over each link, each way; the slowest link sets the pace of the last seven.
    expected = 0.040 + 2 * 1 / 1000 + 2 * 1 / 500 + 7 / 500 + OVER_UPLINKS
    for worker in range(2):
        # In the first two rounds there is more on the links, as the epoch has begun.
        assert np.allclose(np.diff(ended(trace, worker))[1:], expected, atol=1e-9)


def test_simulated_tree_of_256_workers_loses_nothing() -> None:
    cell = replace(IN_RACKS, model=SOFTMAX, workers=256, steps=2, strategy="ssp:1", racks=replace(TWO, count=8))
    trace, simulation, plane = played(cell)
    assert trace.facts["contributions_sent"] == trace.facts["contributions_applied"] == 256 * 2 * 2
    assert sorted(set(trace.steps["worker"].tolist())) == list(range(256))
    assert plane.numbers == [number for _ in range(8) for number in range(32)]
    assert simulation.workers[0].protocol.membership.scale == DEFAULT_SCALE // 2, "256 of the largest values fit"
    plane.close()


def test_scale_shrinks_so_that_one_contribution_each_fits() -> None:
    assert [FixedPoint.of(workers).scale for workers in (1, 255, 256, 511, 512)] == [
        DEFAULT_SCALE, DEFAULT_SCALE, DEFAULT_SCALE // 2, DEFAULT_SCALE // 2, DEFAULT_SCALE // 4
    ]  # fmt: skip


def test_cell_without_racks_keeps_its_digest() -> None:
    assert "racks" not in Cell().to_dict()
    assert Cell.from_dict(Cell().to_dict()) == Cell()
    assert Cell.from_dict(IN_RACKS.to_dict()) == IN_RACKS
