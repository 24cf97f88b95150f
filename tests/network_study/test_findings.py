"""Tables and sentences use the cells that they name: here every cell has a different answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from serene.experiments.network_study import findings
from serene.experiments.network_study.cells import ExchangeCell
from serene.experiments.network_study.findings import Findings
from serene.experiments.network_study.flows.clos import Clos
from serene.experiments.network_study.grid import GRIDS
from serene.experiments.network_study.methods import METHODS
from tests.network_study.made_up import TAKES, UNIT_S, MadeUp


@pytest.fixture
def found() -> Findings:
    return Findings(MadeUp(), GRIDS["full"])


def row(table: findings.Table, first: str, second: str = "") -> list[str]:
    return next(row for row in table[1] if row[0] == first and (not second or row[1] == second))


def test_answer_table_compares_the_papers_methods(found: Findings) -> None:
    """On the thin network the hierarchical ring is the best of hosts alone."""
    thin, whole = (Clos.of_size(2048, ratio, layers=2).equivalents for ratio in (0.125, 1.0))
    saved = f"{1 - thin / whole:.0%}"
    assert row(found.answer(), "2,048 (2 layers)")[1:] == [saved, "x1.10", "x4.00", "x8.00", "x1.25", "x1.05", "2.3"]
    assert row(found.of_the_paper(), "2,048 (2 layers)")[1:] == ["1.33", "1.07", "+25%"]


def test_linearity_and_routing_tables_match_made_up_answers(found: Findings) -> None:
    assert {value for row in found.linearity()[1] for value in row[1:]} == {"4.000"}
    assert {value for row in found.routing()[1] for value in row[2:]} == {"x1.50"}


def test_times_table_shows_the_largest_gap_in_either_direction(found: Findings) -> None:
    said = row(found.times(), "128 (2 layers)", "ring")
    assert said[2:] == ["3.00", "3.00", "3.00", "6.00", "3.00", "-33.3%"]


def test_savings_are_relative_to_the_best_method_of_hosts_alone(found: Findings) -> None:
    said = row(found.savings(), "512 (2 layers)")
    assert said[1:6] == ["2.10", "hierarchical-ring 4.80", "2.29", "ring 3.00", "1.43"]
    thin, whole = (Clos.of_size(512, ratio, layers=2).equivalents for ratio in (0.125, 1.0))
    assert said[6:] == [f"{thin:,}", f"{whole:,}", f"{1 - thin / whole:.0%}"]
    assert row(found.break_even(), "512 (2 layers)")[1:] == ["x2.86", "x2.29", "x3.93"]


def test_training_rows_compare_median_seed_with_bsp(found: Findings) -> None:
    said = row(found.training(512), "servers", "ssp:3")
    assert said[2:] == ["4.00 (-20%)", "2.00 (-20%)", "2.00 (-20%)", "2.00 (-20%)", "7"]
    assert row(found.training(512), "switch", "bsp")[2] == "5.00 (+0%)"


def test_ring_around_one_switch_wins_only_with_two_hosts() -> None:
    rows = findings.small()[1]
    assert [float(row[3]) > 1 for row in rows] == [False, *[True] * (len(rows) - 1)]
    for _, ring, ours, faster in rows:
        assert float(faster) == pytest.approx(float(ring) / float(ours), rel=0.01)


def test_figures_use_one_name_and_colour_per_method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every figure of exchanges."""
    from serene.experiments.network_study import figures

    seen: list[tuple[Any, ...]] = []

    def save(figure: Any, path: Path, dpi: int = 0) -> Path:
        for axes in figure.axes:
            seen.extend((line.get_label(), line.get_color(), axes.get_title(), line.get_ydata()) for line in axes.lines)
        return path

    monkeypatch.setattr(figures, "save", save)
    figures.exchanges(MadeUp(), tmp_path / "x.png")
    figures.exchange(MadeUp(), tmp_path / "y.png")
    assert seen
    for name, colour, title, seconds in seen:
        assert colour == METHODS[name].colour
        units = 4 * UNIT_S if title.startswith("Figure 9") else UNIT_S if title.startswith("Figure") else 1.0
        assert seconds[0] == pytest.approx(TAKES[name][0] * units)
    assert {name for name, *_ in seen} == set(TAKES)


def test_made_up_answers_cover_every_cell_of_the_grid() -> None:
    assert all(MadeUp()[cell] for cell in GRIDS["full"].cells() if isinstance(cell, ExchangeCell))
