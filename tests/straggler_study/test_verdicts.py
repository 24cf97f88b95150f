"""From results to verdicts. Each exchange and strategy takes a different time here, so that a number from the wrong
cell is noticed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from serene.experiments.straggler_study import agreement, grid, headline, names
from serene.experiments.straggler_study.cell import SOFTMAX, Cell
from serene.experiments.straggler_study.grid import CHOOSING, REPORTED, Grid
from serene.experiments.straggler_study.measures import numbers
from serene.experiments.straggler_study.pictures import choice
from serene.experiments.straggler_study.store import Store
from serene.experiments.straggler_study.study import Spread, Study
from serene.experiments.straggler_study.trace import Trace
from tests.straggler_study import studies
from tests.straggler_study.studies import SHARE, STEPS, trace

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


def claimed(study: Study) -> list[dict[str, str]]:
    head, rows = headline.claims(study)
    return [dict(zip(head, row, strict=True)) for row in rows]


def one(study: Study, theirs: str, engine: str, ours: str = "") -> dict[str, str]:
    """The row of a claim."""
    (row,) = (
        row for row in claimed(study)
        if row["theirs"].startswith(theirs) and row["engine"] == engine and ours in row["ours"]
    )  # fmt: skip
    return row


ON_EMBEDDED, ON_BMV2 = "emulated, embedded switch", "emulated, BMv2"


@pytest.mark.parametrize(
    ("theirs", "engine", "at_65", "verdict"),
    [
        ("Aggregation", ON_EMBEDDED, "-75.0 % [-75.0, -75.0]", "holds"),
        ("Aggregation", ON_BMV2, "-50.0 % [-50.0, -50.0]", "holds"),
        ("Stragglers", ON_EMBEDDED, "-50.0 % [-50.0, -50.0]", "holds"),
        ("Hybrid", ON_EMBEDDED, "-10.0 % [-10.0, -10.0]", "holds; -40 % not reached: at most -10 %"),
        ("Hybrid", ON_BMV2, "-20.0 % [-20.0, -20.0]", "holds; -40 % not reached: at most -20 %"),
        ("...", ON_EMBEDDED, "-16.7 % [-16.7, -16.7]", "holds; -50 % not reached: at most -17 %"),
        ("...", ON_BMV2, "-25.0 % [-25.0, -25.0]", "holds; -50 % not reached: at most -25 %"),
        ("The same", ON_EMBEDDED, "-96.7 % [-96.7, -96.7]", "holds; -50 % reached: at most -97 %"),
        ("Without", ON_EMBEDDED, "-6.0 % [-6.0, -6.0]", "holds; -12 % not reached: at most -6 %"),
    ],
)
def test_claim_uses_the_numbers_of_its_own_cells(
    study: Study, theirs: str, engine: str, at_65: str, verdict: str
) -> None:
    row = one(study, theirs, engine)
    assert (row["5 %"], row["30 %"], row["65 %"], row["verdict"]) == ("", "", at_65, verdict)


def test_hot_swap_and_prototype_claims_have_verdicts(study: Study) -> None:
    swaps, prototype = one(study, "A hot-swapping", "emulated"), one(study, "A prototype", ON_BMV2)
    assert swaps["ours"].startswith("8 swaps while training ran; in 26 of 26 runs (of 26 wanted) the")
    assert swaps["verdict"] == "holds"
    assert prototype["ours"].startswith("10 of 10 runs through BMv2")
    assert prototype["verdict"].startswith("BMv2: holds; Tofino: not tried")
    assert headline.swapped(0, 0) == "not tried: nothing was swapped"


def test_headline_answer_matches_the_traces(study: Study) -> None:
    head, rows = headline.answer(study)
    changed = ["-50.0 % [-50.0, -50.0]", "+60.0 % [+60.0, +60.0]", "-20.0 % [-20.0, -20.0]"]
    assert rows == [
        ["the embedded switch", "65 %", "-75.0 % [-75.0, -75.0]", "-20.0 % [-20.0, -20.0]", "-10.0 % [-10.0, -10.0]",
         "the switch"],
        ["BMv2", "65 %", *changed, "the switch"],
    ]  # fmt: skip
    assert len(head) == len(rows[0])


def test_claims_cover_only_the_requested_switches(study: Study) -> None:
    assert len(claimed(study)) == 12
    without = tuple(cell for cell in study.grid.headline if names.way(cell) != names.BMV2)
    study = Study(replace(study.grid, headline=without), study.store)
    (prototype,) = (row for row in claimed(study) if row["engine"] == ON_BMV2)
    assert prototype["verdict"].startswith("BMv2: not all runs are there")


def test_missing_seed_is_mentioned_in_every_verdict(study: Study) -> None:
    study.store.path(cell_of(study, names.SERVER, "bsp", 2)).unlink()
    study.store.path(cell_of(study, names.BMV2, "asp", 2)).unlink()
    study = again(study)
    accelerates = one(study, "Aggregation", ON_EMBEDDED)
    assert accelerates["65 %"] == "-75.0 % [-75.0, -75.0], 1 of 2 seeds"
    assert accelerates["verdict"] == "holds; results are missing at 65 %"
    prototype = one(study, "A prototype", ON_BMV2)
    assert "9 of 10 runs" in prototype["ours"] and "BMv2: not all runs" in prototype["verdict"]
    assert "25 of 25 runs (of 26 wanted)" in one(study, "A hot-swapping", "emulated")["ours"]
    assert one(study, "Hybrid", ON_EMBEDDED)["verdict"] == "holds; -40 % not reached: at most -10 %"


@pytest.mark.parametrize("facts", [{"miscounted": 1.0}, {"contributions_applied": 47.0}])
def test_lost_or_repeated_contribution_fails_the_verdict(study: Study, facts: dict[str, float]) -> None:
    cell = cell_of(study, names.SCAPY, "bsp")
    study.store.keep(cell, trace(cell, 7.0, facts=facts))
    found = one(again(study), "A hot-swapping", "emulated")
    assert "in 25 of 26 runs" in found["ours"]
    assert found["verdict"] == "does not hold: contributions were lost or repeated in 1 runs"


def spread(*values: float, bounds: int = 0) -> Spread:
    return Spread.of(values, len(values), bounds)


HALF, TENTH, NONE = spread(-0.5, -0.52, -0.48), spread(-0.1, -0.12, -0.08), spread(0.01, -0.02, 0.0)
WORSE, TORN, NEVER = spread(0.3, 0.2, 0.4), spread(-0.2, 0.1, -0.1), spread(NAN, NAN, -0.1)
UNKNOWN, AT_LEAST = Spread.of(()), spread(-0.3, -0.2, bounds=1)


def test_spread_is_less_only_if_all_seeds_clearly_improve() -> None:
    assert HALF.less and AT_LEAST.less
    assert not any(each.less for each in (WORSE, TORN, NONE, NEVER, UNKNOWN, spread(-0.01, -0.02)))


@pytest.mark.parametrize(
    ("switch", "strategy", "said"),
    [
        (HALF, TENTH, "the switch"), (TENTH, HALF, "the strategy"), (WORSE, HALF, "the strategy"),
        (TORN, WORSE, "neither, clearly"), (NEVER, NONE, "neither, clearly"), (HALF, HALF, "neither, clearly"),
        (HALF, spread(-0.1, bounds=1), "neither, clearly"), (UNKNOWN, HALF, "not measured"),
    ],
)  # fmt: skip
def test_saves_more_is_undecided_without_a_clear_difference(switch: Spread, strategy: Spread, said: str) -> None:
    assert headline.saves_more(switch, strategy) == said


@pytest.mark.parametrize(
    ("found", "amount", "said"),
    [
        ({0.05: TENTH, 0.65: HALF}, None, "holds"),
        ({0.05: NONE, 0.65: HALF}, None, "holds at 65 %, not elsewhere"),
        ({0.05: WORSE, 0.65: TORN}, None, "does not hold here"),
        ({0.05: TENTH, 0.65: HALF}, -0.4, "holds; -40 % reached at 65 %, not elsewhere: at most -50 %"),
        ({0.05: NONE, 0.65: TENTH}, -0.5, "holds at 65 %, not elsewhere; -50 % not reached: at most -10 %"),
        ({0.05: NEVER}, -0.4, "does not hold here"),
        ({0.05: UNKNOWN}, -0.4, "not measured"),
        ({}, None, "not measured"),
        ({0.05: UNKNOWN, 0.3: HALF}, None, "holds; results are missing at 5 %"),
        ({0.05: WORSE, 0.3: Spread.of([-0.5], 2)}, None, "holds at 30 %, not elsewhere; results are missing at 30 %"),
    ],
)
def test_verdict_words_follow_the_changes(found: dict[float, Spread], amount: float | None, said: str) -> None:
    assert headline.verdict(found, amount) == said


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
        ("sharded", "", "compiled"): "sharded servers", ("gloo", "", "compiled"): "gloo all-reduce",
    }  # fmt: skip


def test_spread_text_counts_seeds_if_some_are_missing() -> None:
    assert Spread.of([-0.1], wanted=2).percent() == "-10.0 % [-10.0, -10.0], 1 of 2 seeds"
    assert Spread.of([-0.1, -0.2], wanted=2).percent() == "-15.0 % [-20.0, -10.0]"


def test_headline_row_compares_its_way_with_our_bsp(study: Study) -> None:
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
    _, (row,) = choice.map_rows(study)
    assert row[3:] == ["ASP", "+20.0 % [+20.0, +20.0]"]


def test_agreement_is_relative_to_the_emulation(study: Study) -> None:
    pairs = agreement.pairs(study)
    assert len(pairs) == len(study.grid.twins) == 14
    assert pairs["step_s_simulated"].tolist() == pytest.approx([0.45] * 14)
    assert pairs["step_s"].tolist() == pytest.approx([lasts(cell) for cell in pairs["cell"]])
    made_up = pairs[:3].assign(step_s=1.0, step_s_simulated=[2.0, 1.1, 0.9])
    found = agreement.errors(made_up, "step_s")
    assert (found.median(), found.max()) == pytest.approx((0.1, 1.0))
    assert agreement.summary(made_up)[1][0][:3] == ["65 %", "3", "10% (at most 100%)"]
