"""From results to verdicts. Each exchange and strategy takes a different time here, so that a number from the wrong
cell is noticed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from serene.experiments.straggler_study import agreement, grid, headline, names, pictures
from serene.experiments.straggler_study.cell import SOFTMAX, Cell
from serene.experiments.straggler_study.grid import CHOOSING, REPORTED, Grid
from serene.experiments.straggler_study.measures import numbers
from serene.experiments.straggler_study.study import Spread, Study
from serene.experiments.straggler_study.trace import Store, Trace
from tests.straggler_study import studies
from tests.straggler_study.studies import SHARE, STEPS, trace

NAN = float("nan")

# Seconds a step with slow workers, and without.
SLOW = {
    (names.EMBEDDED, "bsp"): 1.0, (names.EMBEDDED, "ssp:10"): 0.9, (names.EMBEDDED, "asp"): 0.7,
    (names.EMBEDDED, "quorum:3"): 0.8, (names.EMBEDDED, grid.AUTOMATIC): 0.85,
    (names.EMBEDDED, grid.PACING): 0.82,
    (names.BMV2, "bsp"): 2.0, (names.BMV2, "ssp:10"): 1.6, (names.BMV2, "asp"): 1.1,
    (names.BMV2, "quorum:3"): 1.3, (names.BMV2, grid.AUTOMATIC): 1.2,
    (names.BMV2, grid.PACING): 1.25,
    (names.SERVER, "bsp"): 4.0, (names.SERVER, "ssp:10"): 3.9, (names.SERVER, "asp"): 3.8,
    (names.SHARDED, "bsp"): 3.0, (names.SHARDED, "ssp:10"): 2.9, (names.SHARDED, "asp"): 2.8,
    (names.RPC, "bsp"): 4.2, (names.RPC, "ssp:10"): 4.1, (names.RPC, "asp"): 4.0,
    (names.GLOO, "bsp"): 1.25, (names.SCAPY, "bsp"): 7.0,
}  # fmt: skip
CALM = {"bsp": 0.5, "ssp:10": 0.47}


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


def without_bmv2(study: Study) -> Study:
    shown = tuple(cell for cell in study.grid.headline if names.way(cell) != names.BMV2)
    return Study(replace(study.grid, headline=shown), study.store)


def two_results_missing(study: Study) -> Study:
    for way, strategy in ((names.SERVER, "bsp"), (names.BMV2, "asp")):
        study.store.path(cell_of(study, way, strategy, 2)).unlink()
    return again(study)


def a_contribution_counted_wrong(study: Study, **facts: float) -> Study:
    cell = cell_of(study, names.SCAPY, "bsp")
    study.store.keep(cell, trace(cell, 7.0, facts=facts))
    return again(study)


CHANGES: dict[str, Callable[[Study], Study]] = {
    "all results": lambda study: study,
    "without BMv2": without_bmv2,
    "two results missing": two_results_missing,
    "a repeated contribution": partial(a_contribution_counted_wrong, miscounted=1.0),
    "a lost contribution": partial(a_contribution_counted_wrong, contributions_applied=47.0),
}


@pytest.mark.parametrize("name", CHANGES)
def test_tables_of_the_page_are_as_in_verdicts_txt(study: Study, name: str) -> None:
    """A section of the file for each change: the claims that change, and without one all tables of the headline."""
    (head, before), (bsp, rows) = headline.claims(study), headline.rows(study, headline.SLOW, [SHARE])
    tables = [(head, before), (bsp, [row for row in rows if row[1] == "BSP"]), headline.scapy_rows(study)]
    if name != "all results":
        _, after = headline.claims(CHANGES[name](study))
        tables = [([], [row for row in after if row not in before])]
    else:
        tables.append(headline.answer(study))
    shown = "".join(f"{' | '.join(row)}\n" for head, rows in tables for row in (head, *rows) if row)
    section = Path(__file__).with_name("verdicts.txt").read_text().partition(f"# {name}\n")[2].partition("\n# ")[0]
    assert shown == section.rstrip("\n") + "\n"


def spread(*values: float, bounds: int = 0) -> Spread:
    return Spread.of(values, len(values), bounds)


HALF, TENTH, NONE = spread(-0.5, -0.52, -0.48), spread(-0.1, -0.12, -0.08), spread(0.01, -0.02, 0.0)
WORSE, TORN, NEVER = spread(0.3, 0.2, 0.4), spread(-0.2, 0.1, -0.1), spread(NAN, NAN, -0.1)
UNKNOWN, AT_LEAST = Spread.of(()), spread(-0.3, -0.2, bounds=1)


def test_spread_is_less_only_if_all_seeds_clearly_improve() -> None:
    assert HALF.less and AT_LEAST.less
    assert not any(each.less for each in (WORSE, TORN, NONE, NEVER, UNKNOWN, spread(-0.01, -0.02)))


@pytest.mark.parametrize(
    ("switch", "strategy", "verdict"),
    [
        (HALF, TENTH, "the switch"), (TENTH, HALF, "the strategy"), (WORSE, HALF, "the strategy"),
        (TORN, WORSE, "neither, clearly"), (NEVER, NONE, "neither, clearly"), (HALF, HALF, "neither, clearly"),
        (HALF, spread(-0.1, bounds=1), "neither, clearly"), (UNKNOWN, HALF, "not measured"),
    ],
)  # fmt: skip
def test_saves_more_is_undecided_without_a_clear_difference(switch: Spread, strategy: Spread, verdict: str) -> None:
    assert headline.saves_more(switch, strategy) == verdict


@pytest.mark.parametrize(
    ("found", "amount", "holds", "enough"),
    [
        ({0.05: TENTH, 0.65: HALF}, None, "2 of 2 shares", "-"),
        ({0.05: WORSE, 0.3: TORN, 0.65: NEVER}, None, "0 of 3 shares", "-"),
        ({0.05: TENTH, 0.3: NONE, 0.65: HALF}, -0.4, "2 of 3 shares", "-40 %: 1 of 3 shares"),
        ({0.05: UNKNOWN, 0.3: HALF}, None, "1 of 1 shares", "-"),
        ({}, -0.5, "0 of 0 shares", "-50 %: 0 of 0 shares"),
    ],
)
def test_verdict_counts_the_shares_with_a_clear_change(
    found: dict[float, Spread], amount: float | None, holds: str, enough: str
) -> None:
    assert headline.verdict(found, amount) == (holds, enough)


def test_saving_is_what_a_strategy_without_waiting_saves() -> None:
    one_slow = np.array([[3.0, 0.0, 0.0, 0.0]])  # BSP takes 4 compute times, without waiting 1 / 0.8125 in the mean
    assert headline.saving(0.0, one_slow) == pytest.approx(1 - 1 / 0.8125 / 4)
    in_turn = 4 * np.eye(4)  # each is slow every fourth step: 5 compute times and 2
    assert headline.saving(0.0, in_turn) == pytest.approx(0.6)
    assert headline.saving(0.5, in_turn) == pytest.approx(0.5)


def test_change_compares_the_named_metric_between_cells(study: Study) -> None:
    one, other = cell_of(study, names.EMBEDDED, "ssp:10"), cell_of(study, names.EMBEDDED, "bsp")
    for seed in (1, 2):
        study.store.keep(replace(one, seed=seed), trace(replace(one, seed=seed), 0.7, (0.1,) * 4, learns=0.2))
        study.store.keep(replace(other, seed=seed), trace(replace(other, seed=seed), 1.0, (0.5, 0.3, 0.1, 0.1)))
    # 0.5 is reached when the mean over three evaluations is: after 6 steps or, in the midst of the fourth, after 3.5.
    expected = {"target_steps": 3.5 / 6, "target_s": 4 * 0.7 / 6, "step_s": 0.7, "waited_sum_s": 0.4, "exchange_s": 0.5}
    study = again(study)
    for what, ratio in expected.items():
        assert study.change(one, other, what).middle == pytest.approx(ratio - 1), what


def test_steps_to_an_unreached_target_are_bounded(study: Study) -> None:
    one, other = cell_of(study, names.EMBEDDED, "ssp:10"), cell_of(study, names.SERVER, "bsp")
    study.store.keep(other, trace(other, 4.0, learns=0.01))
    study = again(study)
    steps, time = (study.change(one, other, what, seeds=(1,)) for what in ("target_steps", "target_s"))
    assert steps.middle == pytest.approx(6 / STEPS - 1) and (steps.bounds, steps.count, steps.wanted) == (1, 1, 1)
    assert time.middle == pytest.approx(6 * 0.9 / (4 * STEPS) - 1)
    assert "or less: the other never got there in 1 of 1" in time.percent()


def test_way_names_the_exchange_target_and_packet_code(study: Study) -> None:
    called = {
        (cell.exchange, cell.target if cell.exchange == "switch" else "", cell.packets): names.way(cell)
        for cell in study.grid.headline
    }
    assert called == {
        ("switch", "embedded", "compiled"): "Serene, embedded switch", ("switch", "bmv2", "compiled"): "Serene, BMv2",
        ("switch", "embedded", "scapy"): "Serene, scapy workers", ("server", "", "compiled"): "one parameter server",
        ("sharded", "", "compiled"): "sharded servers", ("rpc", "", "compiled"): "PyTorch's RPC server",
        ("gloo", "", "compiled"): "gloo all-reduce",
    }  # fmt: skip


def test_spread_text_counts_seeds_if_some_are_missing() -> None:
    assert Spread.of([-0.1], wanted=2).percent() == "-10.0 %, 1 of 2 seeds"
    assert Spread.of([-0.1, -0.2], wanted=2).percent() == "-15.0 % [-20.0, -10.0]"


def test_network_share_is_relative_to_nominal_compute_time() -> None:
    cell = Cell(model=SOFTMAX, straggler="none", compute_ms=320.0)
    found = numbers(trace(cell, 1.0, (0.1, 0.1, 0.1, 0.1)), 0.5)
    assert found.share == pytest.approx(0.5 / (0.5 + 0.32))
    assert found.late == pytest.approx(0.4 / 0.32 - 1)


def test_map_chooses_and_reports_with_different_seeds(tmp_path: Path) -> None:
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
    _, (row,) = pictures.map_rows(study)
    assert row[3:] == ["ASP", "+20.0 % [+20.0, +20.0]"]


def test_agreement_is_relative_to_the_emulation(study: Study) -> None:
    pairs = agreement.pairs(study)
    assert len(pairs) == len(study.grid.twins) == 16
    assert pairs["step_s_simulated"].tolist() == pytest.approx([0.45] * 16)
    assert pairs["step_s"].tolist() == pytest.approx([lasts(cell) for cell in pairs["cell"]])
    made_up = pairs[:3].assign(step_s=1.0, step_s_simulated=[2.0, 1.1, 0.9])
    found = agreement.errors(made_up, "step_s")
    assert (found.median(), found.max()) == pytest.approx((0.1, 1.0))
    assert agreement.summary(made_up)[1][0][:3] == ["65 %", "3", "10% (at most 100%)"]
