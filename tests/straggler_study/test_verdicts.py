"""From results to verdicts, all the way. Every way and strategy takes a time of its own here, so that a number that
comes from another one is seen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from serene.experiments.shared.machine import Conditions
from serene.experiments.straggler_study import agreement, grid, headline, names, tables
from serene.experiments.straggler_study.agreement import Pair
from serene.experiments.straggler_study.cell import SOFTMAX, Cell
from serene.experiments.straggler_study.claims import Claim, claims
from serene.experiments.straggler_study.grid import CHOOSING, REPORTED, Grid
from serene.experiments.straggler_study.measures import numbers
from serene.experiments.straggler_study.store import Store
from serene.experiments.straggler_study.study import Spread, Study
from serene.experiments.straggler_study.trace import STEP, Swap, Trace
from tests.straggler_study import studies
from tests.straggler_study.studies import SHARE, STEPS

COMPUTED_S = 0.4
NAN = float("nan")

# Seconds a step with slow workers, and without.
SLOW = {
    (names.EMBEDDED, "bsp"): 1.0, (names.EMBEDDED, "ssp:10"): 0.9, (names.EMBEDDED, "asp"): 0.7,
    (names.EMBEDDED, "quorum:3"): 0.8, (names.EMBEDDED, grid.AUTOMATIC): 0.85,
    (names.BMV2, "bsp"): 2.0, (names.BMV2, "ssp:10"): 1.6, (names.BMV2, "asp"): 1.1,
    (names.BMV2, "quorum:3"): 1.3, (names.BMV2, grid.AUTOMATIC): 1.2,
    (names.SERVER, "bsp"): 4.0, (names.SERVER, "ssp:10"): 3.9, (names.SERVER, "asp"): 3.8,
    (names.SHARDED, "bsp"): 3.0, (names.SHARDED, "ssp:10"): 2.9, (names.SHARDED, "asp"): 2.8,
    (names.GLOO, "bsp"): 1.25, (names.SCAPY, "bsp"): 7.0,
}  # fmt: skip
CALM = {"bsp": 0.5, "ssp:10": 0.47}


def trace(
    cell: Cell, step_s: float, waited_s: tuple[float, ...] = (0.01,) * 4, *, learns: float = 0.1,
    facts: dict[str, float] | None = None,
) -> Trace:  # fmt: skip
    """All workers' steps last as long; accuracy grows by ``learns`` with each. waited_s: each worker's, of a step."""
    rows = [
        (worker, step, began, began + COMPUTED_S, began + step_s, waited_s[worker], 1, 4, 0.0, min(step * learns, 1.0))
        for step in range(1, STEPS + 1)
        for began in [(step - 1) * step_s]
        for worker in range(cell.workers)
    ]
    counted = 48.0 if cell.exchange == "switch" else NAN
    known = {"contributions_sent": counted, "contributions_applied": counted, "miscounted": 0.0, "retransmissions": 0.0}
    swaps = [Swap(0.0, "BSP"), *([Swap(1.0, "SSP(3)"), Swap(2.0, "SSP(1)")] if cell.automatic else [])]
    return Trace(
        cell, np.array(rows, STEP), np.zeros((cell.workers, 16)), tuple(swaps), 0.0,
        {**known, "engine_s": 1.0, **(facts or {})}, Conditions("some machine", 0.5, 0.5, 0.1),
    )  # fmt: skip


def lasts(cell: Cell) -> float:
    if cell.engine == "simulated":
        return 0.45  # far from what was emulated
    return CALM[cell.strategy] if cell.straggler == grid.NONE else SLOW[names.way(cell), cell.strategy]


@pytest.fixture
def study(tmp_path: Path) -> Study:
    def slow(cell: Cell) -> Trace:
        waits = (0.3,) * 4 if cell.strategy == "bsp" and lasts(cell) > 0.7 else (0.01,) * 4
        return trace(cell, lasts(cell), waits)

    return studies.study(tmp_path, slow)


def again(study: Study) -> Study:
    """After results have changed."""
    return Study(study.grid, study.store)


def cell_of(study: Study, way: str, strategy: str, seed: int = 1) -> Cell:
    return next(
        cell for cell in study.grid.headline
        if (names.way(cell), cell.strategy, cell.seed, cell.straggler) == (way, strategy, seed, grid.SLOW)
    )  # fmt: skip


def claimed(study: Study) -> dict[tuple[str, str], Claim]:
    """By the first word, and by the engine."""
    return {(claim.theirs.split()[0], claim.engine): claim for claim in claims(study)}


ON_EMBEDDED, ON_BMV2 = "emulated, embedded switch", "emulated, BMv2"


@pytest.mark.parametrize(
    ("first", "engine", "ours", "verdict"),
    [
        ("Aggregation", ON_EMBEDDED, "65 %: -75.0 % [-75.0, -75.0]", "holds"),
        ("Aggregation", ON_BMV2, "65 %: -50.0 % [-50.0, -50.0]", "holds"),
        ("Stragglers", ON_EMBEDDED, "65 %: -50.0 % [-50.0, -50.0]", "holds"),
        ("Hybrid", ON_EMBEDDED, "65 %: -10.0 %", "the direction holds; the amount does not: at most -10 %"),
        ("Hybrid", ON_BMV2, "65 %: -20.0 %", "the direction holds; the amount does not: at most -20 %"),
        ("...", ON_EMBEDDED, "as theirs: 65 %: -16.7 %", "the direction holds; the amount does not: at most -17 %"),
        ("...", ON_BMV2, "as theirs: 65 %: -25.0 %", "the direction holds; the amount does not: at most -25 %"),
        ("...", ON_EMBEDDED, "round trips not included: 65 %: -96.7 %", "the direction holds; the amount does not"),
        ("A", "emulated", "8 swaps while training ran; in 26 of 26 runs (of 26 wanted) the", "holds"),
        ("A", ON_BMV2, "10 of 10 runs through BMv2", "BMv2: holds; Tofino: not tried"),
        ("Without", ON_EMBEDDED, "65 %: -6.0 %", "the direction holds; the amount does not: at most -6 %"),
    ],
)
def test_a_claim_gets_its_own_numbers(study: Study, first: str, engine: str, ours: str, verdict: str) -> None:
    claim = claimed(study)[first, engine]
    assert ours in claim.ours
    assert claim.verdict.startswith(verdict)


def test_each_claim_is_there_once_and_of_the_switches_that_were_asked_for(study: Study) -> None:
    assert len(claimed(study)) == len(claims(study)) == 10
    without = tuple(cell for cell in study.grid.headline if names.way(cell) != names.BMV2)
    study = Study(replace(study.grid, headline=without), study.store)
    assert [claim.engine for claim in claims(study)].count(ON_BMV2) == 1, (
        "the prototype's, which says that it is missing"
    )
    assert "BMv2: not all runs are there" in claimed(study)["A", ON_BMV2].verdict


def test_a_seed_that_is_missing_is_in_every_verdict(study: Study) -> None:
    study.store.path(cell_of(study, names.SERVER, "bsp", 2)).unlink()
    study.store.path(cell_of(study, names.BMV2, "asp", 2)).unlink()
    found = claimed(again(study))
    accelerates = found["Aggregation", ON_EMBEDDED]
    assert accelerates.ours.endswith("65 %: -75.0 % [-75.0, -75.0], 1 of 2 seeds")
    assert accelerates.verdict == "holds; seeds are missing at 65 %"
    assert "9 of 10 runs" in found["A", ON_BMV2].ours and "BMv2: not all runs" in found["A", ON_BMV2].verdict
    assert "25 of 25 runs (of 26 wanted)" in found["A", "emulated"].ours
    assert found["Hybrid", ON_EMBEDDED].verdict.startswith("the direction holds; the amount does not: at most -10 %")


@pytest.mark.parametrize("facts", [{"miscounted": 1.0}, {"contributions_applied": 47.0}])
def test_a_contribution_that_is_lost_or_repeated_is_in_the_verdict(study: Study, facts: dict[str, float]) -> None:
    cell = cell_of(study, names.SCAPY, "bsp")
    study.store.keep(cell, trace(cell, 7.0, facts=facts))
    found = claimed(again(study))["A", "emulated"]
    assert "in 25 of 26 runs" in found.ours
    assert found.verdict == "does not hold: contributions were lost or repeated in 1 runs"


def test_a_change_is_of_what_its_name_says(study: Study) -> None:
    one, other = cell_of(study, names.EMBEDDED, "ssp:10"), cell_of(study, names.EMBEDDED, "bsp")
    for seed in (1, 2):
        study.store.keep(replace(one, seed=seed), trace(replace(one, seed=seed), 0.7, (0.1,) * 4, learns=0.2))
        study.store.keep(replace(other, seed=seed), trace(replace(other, seed=seed), 1.0, (0.5, 0.3, 0.1, 0.1)))
    found = again(study).against(one, other)
    # 0.5 is reached when the mean over three evaluations is: after 6 steps or, in the midst of the fourth, after 3.5.
    assert found.steps.middle == pytest.approx(3.5 / 6 - 1)
    assert found.time.middle == pytest.approx(4 * 0.7 / 6 - 1)
    assert found.step.middle == pytest.approx(0.7 - 1)
    assert found.waiting.middle == pytest.approx(0.4 / 1.0 - 1)
    assert found.exchange.middle == pytest.approx(0.3 / 0.6 - 1)


def test_steps_to_a_target_that_the_other_never_reached_are_bounded_by_its_steps(study: Study) -> None:
    one, other = cell_of(study, names.EMBEDDED, "ssp:10"), cell_of(study, names.SERVER, "bsp")
    study.store.keep(other, trace(other, 4.0, learns=0.01))
    found = again(study).against(one, other, seeds=(1,))
    assert found.steps.middle == pytest.approx(6 / STEPS - 1) and found.steps.bounds == 1
    assert found.time.middle == pytest.approx(6 * 0.9 / (4 * STEPS) - 1)


def test_a_way_is_called_what_the_gradients_go_through(study: Study) -> None:
    called = {
        (cell.exchange, cell.target if cell.exchange == "switch" else "", cell.packets): names.way(cell)
        for cell in study.grid.headline
    }
    assert called == {
        ("switch", "embedded", "compiled"): "Serene, embedded switch", ("switch", "bmv2", "compiled"): "Serene, BMv2",
        ("switch", "embedded", "scapy"): "Serene, scapy workers", ("server", "", "compiled"): "one parameter server",
        ("sharded", "", "compiled"): "sharded servers", ("gloo", "", "compiled"): "gloo all-reduce",
    }  # fmt: skip


def test_what_some_seeds_do_not_say() -> None:
    assert Spread.of([-0.1], wanted=2).percent() == "-10.0 % [-10.0, -10.0], 1 of 2 seeds"
    assert Spread.of([-0.1, -0.2], wanted=2).percent() == "-15.0 % [-20.0, -10.0]"


def test_a_row_of_the_headline_is_of_its_way_and_against_our_bsp(study: Study) -> None:
    head, rows = headline.rows(study, "mlp", grid.SLOW, [SHARE])
    found = {(row[0], row[1]): dict(zip(head, row, strict=True)) for row in rows}
    gloo, ours = found[names.GLOO, "BSP"], found[names.EMBEDDED, "BSP"]
    assert (gloo["time to the target [s]"], gloo["against Serene's BSP"]) == (
        "7.5 [7.5, 7.5]",
        "+25.0 % [+25.0, +25.0]",
    )
    assert (ours["time to the target [s]"], ours["against Serene's BSP"]) == ("6.0 [6.0, 6.0]", "")
    assert (ours["step [ms]"], ours["computing"], ours["network"], ours["waiting"]) == ("1000", "400", "300", "300")
    assert (ours["steps to it"], ours["stalled"], ours["runs"]) == ("6", "10 %", "2 of 2")
    assert [row[1] for row in headline.scapy_rows(study)[1]] == ["C", "scapy"]
    assert [row[3] for row in headline.scapy_rows(study)[1]] == ["1000", "7000"]


def test_a_share_is_of_the_network_and_of_what_should_have_been_computed() -> None:
    cell = Cell(model=SOFTMAX, straggler="none", compute_ms=320.0)
    found = numbers(trace(cell, 1.0, (0.1, 0.1, 0.1, 0.1)), 0.5)
    assert found.share == pytest.approx(0.5 / (0.5 + 0.32))
    assert found.late == pytest.approx(0.4 / 0.32 - 1)


def test_who_wins_the_map_is_chosen_by_other_seeds_than_those_that_say_by_how_much(tmp_path: Path) -> None:
    seconds = {
        ("bsp", CHOOSING): 1.0, ("ssp:3", CHOOSING): 0.8, ("asp", CHOOSING): 0.7,
        ("bsp", REPORTED): 1.0, ("ssp:3", REPORTED): 0.5, ("asp", REPORTED): 1.2,
    }  # fmt: skip
    cells, store = [], Store(tmp_path)
    for (strategy, seeds), step_s in seconds.items():
        for seed in seeds:
            cell = Cell(model=SOFTMAX, straggler=grid.SLOW, strategy=strategy, seed=seed, share=SHARE)
            store.keep(cell, trace(cell, step_s))
            cells.append(cell)
    study = Study(Grid("small", (), (), tuple(cells), (), {SOFTMAX: 0.5}, {}), store)
    _, (row,) = tables.map_rows(study)
    assert row[3:] == ["ASP", "+20.0 % [+20.0, +20.0]"]


def test_the_simulator_is_held_to_the_emulation_not_the_other_way_round(study: Study) -> None:
    pairs = agreement.pairs(study)
    assert len(pairs) == len(study.grid.twins) == 14
    for pair in pairs:
        assert pair.simulated["step_s"] == pytest.approx(0.45)
        assert pair.emulated["step_s"] == pytest.approx(lasts(pair.cell))
    cell = pairs[0].cell
    made_up = [Pair(cell, {"step_s": each}, {"step_s": 1.0}) for each in (2.0, 1.1, 0.9)]
    assert agreement.difference(made_up, "step_s") == pytest.approx((0.1, 1.0))
