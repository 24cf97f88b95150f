"""Made-up answers: each method takes a different time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest

from serene.experiments.network_study import figures, findings
from serene.experiments.network_study.cells import Cell, TrainingCell
from serene.experiments.network_study.findings import Findings
from serene.experiments.network_study.flows.clos import Clos
from serene.experiments.network_study.grid import GRIDS
from serene.experiments.network_study.methods import MAIN, METHODS
from serene.experiments.shared import style
from serene.experiments.straggler_study import agreement, headline, pictures
from tests.straggler_study.studies import SHARE, paced_study

UNIT_S = 0.025  # of 100 MB over 4 GB/s


# In units at r = 1, and how many times that at r = 1/8.
TAKES = {
    "servers-packed": (9.0, 8.0), "servers-distributed": (8.0, 1.25), "flat-butterfly": (6.0, 4.0),
    "layered-butterfly": (7.5, 1.1), "ring": (3.0, 2.0), "hierarchical-ring": (4.0, 1.2),
    "leaf-aggregation": (2.5, 3.0), "leaf-spine-aggregation": (2.0, 1.05),
}  # fmt: skip


OTHER = (20.0, 1.0)  # of a variant


CLOSED = {1.0: 1.0, 0.5: 0.99, 0.25: 1.5, 0.125: 1.01}  # the closed form's time is so many times as long


class MadeUp(dict[Cell, dict[str, Any]]):
    """Made-up answers in place of simulated ones."""

    def __missing__(self, cell: Cell) -> dict[str, Any]:
        if isinstance(cell, TrainingCell):
            return _training(cell)
        whole, growth = TAKES.get(cell.method, OTHER)
        seconds = UNIT_S * whole * (growth if cell.network.ratio == 0.125 else 1.0)
        seconds *= 4.0 / cell.network.bandwidth_gb * cell.gradient_mb / 100
        if cell.network.routing == "ecmp":
            seconds *= 1.5
        return {"seconds": seconds, "closed_form_s": CLOSED[cell.network.ratio] * seconds, "engine_s": 1.0}


def _training(cell: TrainingCell) -> dict[str, Any]:
    """The third seed is far from the others, and stragglers halve everything."""
    speed = {1: 4.0, 2: 5.0, 3: 30.0}[cell.seed] * (1.0 if cell.straggler == "none" else 0.5)
    speed *= 0.8 if cell.how == "servers" else 1.0
    return {"rounds_per_s": speed, "ahead_max": 7 if cell.seed == 2 and cell.straggler == "slow_worker" else 3}


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
    cells = row(found.times(), "128 (2 layers)", "ring")
    assert cells[2:] == ["3.00", "3.00", "3.00", "6.00", "3.00", "-33.3%"]


def test_savings_are_relative_to_the_best_method_of_hosts_alone(found: Findings) -> None:
    cells = row(found.savings(), "512 (2 layers)")
    assert cells[1:6] == ["2.10", "hierarchical-ring 4.80", "2.29", "ring 3.00", "1.43"]
    thin, whole = (Clos.of_size(512, ratio, layers=2).equivalents for ratio in (0.125, 1.0))
    assert cells[6:] == [f"{thin:,}", f"{whole:,}", f"{1 - thin / whole:.0%}"]
    assert row(found.break_even(), "512 (2 layers)")[1:] == ["x2.86", "x2.29", "x3.93"]


def test_training_rows_compare_median_seed_with_bsp(found: Findings) -> None:
    cells = row(found.training(512), "servers", "ssp:3")
    assert cells[2:] == ["4.00 (-20%)", "2.00 (-20%)", "2.00 (-20%)", "2.00 (-20%)", "7"]
    assert row(found.training(512), "switch", "bsp")[2] == "5.00 (+0%)"


def test_ring_around_one_switch_wins_only_with_two_hosts() -> None:
    rows = findings.small()[1]
    assert [float(row[3]) > 1 for row in rows] == [False, *[True] * (len(rows) - 1)]
    for _, ring, ours, faster in rows:
        assert float(faster) == pytest.approx(float(ring) / float(ours), rel=0.01)


# -- pictures ------------------------------------------------------------------------------------------------------


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Figures instead of files."""
    found: list[Any] = []

    def save(figure: Any, path: Path, dpi: int = 0) -> Path:
        figure.draw_without_rendering()
        found.append(figure)
        plt.close(figure)
        return path

    for module in (figures, pictures, agreement):
        monkeypatch.setattr(module, "save", save)
    return found


def test_figures_use_one_name_and_colour_per_method(drawn: list[Any], tmp_path: Path) -> None:
    """In every figure of exchanges."""
    figures.exchanges(MadeUp(), tmp_path / "x.png")
    figures.exchange(MadeUp(), tmp_path / "y.png")
    seen = [(line, axes.get_title()) for figure in drawn for axes in figure.axes for line in axes.lines]
    for line, title in seen:
        name = line.get_label()
        assert line.get_color() == METHODS[name].colour
        units = 4 * UNIT_S if title.startswith("Figure 9") else UNIT_S if title.startswith("Figure") else 1.0
        assert line.get_ydata()[0] == pytest.approx(TAKES[name][0] * units)
    assert {line.get_label() for line, _ in seen} == set(TAKES)


def fits(figure: Any) -> bool:
    """All legends are on the page, and on none of the axes that have curves."""
    legends = [*figure.legends, *(axes.get_legend() for axes in figure.axes if axes.get_legend())]
    assert legends
    page = figure.bbox
    for legend in legends:
        box = legend.get_window_extent()
        if box.x0 < page.x0 or box.x1 > page.x1 or box.y0 < page.y0 or box.y1 > page.y1:
            return False
        if any(axes.lines and box.overlaps(axes.bbox) for axes in figure.axes):
            return False
    return True


def test_legend_is_complete_and_hides_no_curve(drawn: list[Any], tmp_path: Path) -> None:
    answers = MadeUp()
    scaled = [
        {"hosts": hosts, "method": method, "engine_s": 1.0, "memory_mb": 40.0}
        for hosts in (128, 512)
        for method in METHODS
    ]
    figures.scaling(scaled, tmp_path / "scaling.png")
    assert {line.get_label() for line in drawn[-1].axes[0].lines} == set(MAIN), "each has a colour of its own"
    figures.exchange(answers, tmp_path / "exchange.png")
    figures.gradients(answers, tmp_path / "gradients.png")
    figures.exchanges(answers, tmp_path / "exchanges.png")
    made = paced_study(tmp_path, {})
    pictures.accuracy(made, made.headline(headline.SLOW, SHARE)[:5], "t", "title", tmp_path / "accuracy.png")
    assert [fits(figure) for figure in drawn] == [True] * 5


def test_legend_with_long_names_uses_fewer_columns(drawn: list[Any]) -> None:
    figure, axes = style.panels(1, 1)
    for number in range(9):
        axes[0, 0].plot([0, 1], label=f"{number} is a name of some length, that there may be")
    style.one_legend(figure, axes)
    figure.draw_without_rendering()
    assert fits(figure)
    plt.close(figure)


def test_axis_ticks_are_plain_numbers(drawn: list[Any], tmp_path: Path) -> None:
    made = paced_study(tmp_path, {"asp": 1.4})
    agreement.draw(agreement.pairs(made), "step_s", tmp_path / "agreement.png")
    (axes,) = drawn.pop().axes
    named = [label.get_text() for label in axes.get_xticklabels(which="both") if label.get_text()]
    assert len(named) > 1 and all(f"{float(text):g}" == text for text in named)
    figures.exchange(MadeUp(), tmp_path / "exchange.png")
    shown = [label.get_text() for axes in drawn[0].axes[:-1] for label in axes.get_yticklabels(which="both")]
    assert {text for text in shown if text} == {str(tick) for tick in figures.TICKS}
