"""Rounds that training needs, and the network that each strategy needs: the cost model's fit and the verdicts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from serene.errors import SereneError
from serene.experiments.network_study import efficiency
from serene.experiments.network_study.cells import Cell, ExchangeCell, NetworkCell, TrainingCell
from serene.experiments.network_study.efficiency import COLUMNS, MEASURED, REPLAYED, Cost, costs, replay
from serene.experiments.network_study.emulated.plan import Emulated
from serene.experiments.network_study.grid import GRIDS
from serene.experiments.network_study.results import EMULATED, FOLDER, PAGE, ROUNDS, parts, recorded
from serene.experiments.network_study.thinness import LESS, NO_LESS, NONE, NOT_KNOWN, VERDICTS, Thinness
from serene.experiments.network_study.training import lateness
from serene.experiments.shared import page_tables
from serene.experiments.straggler_study.cell import SOFTMAX
from serene.experiments.straggler_study.cell import Cell as StragglerCell
from serene.experiments.straggler_study.measures import curve
from serene.experiments.straggler_study.simulated import simulate
from serene.experiments.straggler_study.trace import Store

GRID = GRIDS["quick"]


def test_lateness_is_0_under_bsp_and_1_without_a_barrier() -> None:
    bsp = [(worker, 4 * turn) for turn in range(5) for worker in range(4)]
    assert lateness(bsp, 4) == pytest.approx(0)
    asp = [(place % 4, place - 3) for place in range(4, 400)]  # each reads when it has sent
    assert lateness([(worker, read - 4) for worker, read in asp], 4) == pytest.approx(1)
    assert lateness([(0, 0), (0, 1)], 1) == 0


@pytest.mark.parametrize("strategy", ["bsp", "asp"])
def test_replayed_gradient_order_reproduces_a_runs_accuracy(strategy: str) -> None:
    """A run simulated with the compiled program, and its replay: the same accuracy after as many rounds."""
    cell = StragglerCell(
        workers=4, model=SOFTMAX, dataset="digits", strategy=strategy, steps=40, eval_every=4, learning_rate=0.5
    )
    trace = simulate(cell)
    learned = curve(trace)
    target = 0.9 * float(learned.accuracy[-1])
    reached = learned.reaches(target)
    assert reached is not None
    assert replay(efficiency.contributions(trace), cell, target) == pytest.approx(reached[1], rel=0.05)


def test_rounds_are_of_the_comparisons_own_cells_alone(tmp_path: Path) -> None:
    """The folder also has runs of make compare with a straggler of the user's, with other steps, and in Mininet."""
    with pytest.raises(SereneError, match="has no runs of the straggler study"):
        efficiency.of_folder(tmp_path)
    cell = StragglerCell(
        workers=2, model=SOFTMAX, dataset="digits", steps=100, eval_every=4, learning_rate=0.5, until=0.3
    )
    trace = simulate(cell)
    for each in [
        *(replace(cell, seed=seed) for seed in efficiency.SEEDS),
        replace(cell, straggler="failure"), replace(cell, steps=50), replace(cell, engine="emulated"),
    ]:  # fmt: skip
        Store(tmp_path).keep(each, replace(trace, cell=each))
    found = efficiency.of_folder(tmp_path)
    assert found[["optimiser", "strategy", "straggler"]].to_numpy().tolist() == [["softmax mild", "bsp", "none"]]


def made(slope: float, far: float) -> pd.DataFrame:
    """Runs of which the rounds are known: exp(3 + 2 / n + slope d), with another slope for many workers."""
    rows = []
    for engine, workers, each in ((MEASURED, 4, slope), (MEASURED, 8, slope), (REPLAYED, 128, far)):
        for strategy, late in (("bsp", 0.0), ("ssp:3", 0.5), ("asp", 1.0)):
            for straggler in ("none", "random"):
                rounds = float(np.exp(3 + 2 / workers + each * late))
                rows.append((engine, "it", 0.5, workers, strategy, straggler, 0.3, late, rounds))
    return pd.DataFrame(rows, columns=COLUMNS)


def test_cost_model_fits_runs_and_reports_its_error() -> None:
    found = costs(made(0.4, 0.4))["it"]
    assert (found.slope, found.constant, found.noise) == pytest.approx((0.4, 3, 2))
    assert (found.error, found.far) == pytest.approx((0, 0), abs=1e-9)
    assert costs(made(0.4, 0.1))["it"].far == pytest.approx(0.3 * np.sqrt((1 + 0.25) / 2))
    bent = made(0.4, 0.4)
    bent.loc[bent["strategy"] == "asp", "rounds"] *= 2
    assert costs(bent)["it"].error > 0.3, "a strategy that was left out is not foreseen"


class Made(dict[Cell, dict[str, Any]]):
    """Rounds a second that are made up: servers that are packed suffer from a thin network, under ASP half as much."""

    def __init__(self, asp: float) -> None:
        super().__init__()
        self._asp = asp

    def __missing__(self, cell: Cell) -> dict[str, Any]:
        assert isinstance(cell, TrainingCell)
        slow = 1 / cell.network.ratio if cell.how == "servers-packed" else 1.0
        factor = 1.0 if cell.strategy == "bsp" else self._asp
        return {"rounds_per_s": factor / slow, "lateness": 0.0 if cell.strategy == "bsp" else 1.0}


@pytest.mark.parametrize(
    ("asp", "cost", "packed", "text"),
    [
        (2.0, Cost(0.0, 0.0, 3, 0, 0.0), LESS, "1/2"),
        (8.0, Cost(np.log(2), 0.0, 3, 0, 0.0), LESS, "1/4"),  # eight times as fast, with twice as many rounds
        (1.0, Cost(0.1, 0.0, 3, 0, 0.0), NO_LESS, "more"),
        (2.0, Cost(0.0, 0.8, 3, 0, float("nan")), NOT_KNOWN, "1/4 to more"),
    ],
)  # fmt: skip
def test_network_verdict_follows_times_rounds_and_error(asp: float, cost: Cost, packed: str, text: str) -> None:
    thin = Thinness(Made(asp), GRID, {"it": cost})
    cases = thin.cases().query("strategy != 'bsp'")
    assert len(cases) == 2 * 3 * 3 * 3 + 3, "on the larger network ASP alone, without stragglers"
    by_servers = cases["how"] == "servers-packed"
    assert set(cases["verdict"][by_servers]) == {packed} and set(cases["bsp"][by_servers]) == {1.0}
    assert set(cases["verdict"][~by_servers]) == {NO_LESS} and set(cases["bsp"][~by_servers]) == {1 / 8}
    assert set(cases["high"][~by_servers]) <= {1 / 8, NONE}
    shown = {row[-1] for row in thin.table()[1] if row[2] == "servers-packed"}
    assert shown == {f"**{text}**" if packed == LESS else text}
    _, rows = thin.verdict()
    assert [row[0] for row in rows] == ["switch", "servers", "servers-packed", "all"]
    counts = {verdict: "19" if verdict == packed else "0" for verdict in VERDICTS}
    assert rows[2][1:] == [*counts.values(), "19"] and rows[3][-1] == "57"
    assert len(thin.table()[1]) == 3 * (3 + 4), "stragglers that change nothing are one row"


def test_recorded_rounds_round_trip_through_csv() -> None:
    runs = page_tables.read(FOLDER / ROUNDS)
    assert runs.to_csv(index=False) == (FOLDER / ROUNDS).read_text()
    assert set(runs["workers"]) == {4, 8, 128}
    assert all(0 < cost.error < 0.5 for cost in costs(runs).values())


def test_study_page_matches_the_committed_results() -> None:
    """After a change run `python -m serene.experiments.network_study.results`, which writes both again."""
    assert page_tables.filled(PAGE, parts()) == PAGE.read_text()


def test_recorded_network_results_match_a_new_simulation() -> None:
    """Asks some of the recorded answers again, and the simulations of the emulated networks."""
    known = recorded(FOLDER)
    network = NetworkCell(2, 128, 0.125)
    for cell in (
        ExchangeCell(network, "flat-butterfly"), ExchangeCell(network, "leaf-spine-aggregation"),
        TrainingCell(network, "switch", "ssp:3", "slow_worker", iterations=30),
    ):  # fmt: skip
        now = cell.answer()
        assert all(now[name] == pytest.approx(value, rel=1e-6) for name, value in known[cell].items())
    for row in page_tables.read(FOLDER / EMULATED).query("network == 'clos'").to_dict("records"):
        asked = Emulated(row["method"].partition(",")[0], row["ratio"], row["link_mbit"], row["values"])
        assert asked.simulated_s() == pytest.approx(row["simulated_s"], abs=0.006)


def test_missing_results_and_page_markers_are_reported(tmp_path: Path) -> None:
    with pytest.raises(SereneError, match=r"cannot read .*network-exchanges\.csv"):
        recorded(tmp_path)
    (tmp_path / "page.md").write_text("no table here")
    with pytest.raises(SereneError, match="has no line <!-- it: begin -->"):
        page_tables.filled(tmp_path / "page.md", {"it": "| table |"})
