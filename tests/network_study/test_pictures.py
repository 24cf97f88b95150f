"""Pictures are legible: no legend hides a curve or crosses the edge, and ticks are plain numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest

from serene.experiments.network_study import figures
from serene.experiments.network_study.methods import MAIN, METHODS
from serene.experiments.shared import style
from serene.experiments.straggler_study import agreement, grid
from serene.experiments.straggler_study.pictures import choice, learning
from tests.network_study.made_up import MadeUp
from tests.straggler_study.studies import SHARE, paced_study


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Figures instead of files."""
    found: list[Any] = []

    def save(figure: Any, path: Path, dpi: int = 0) -> Path:
        figure.draw_without_rendering()
        found.append(figure)
        plt.close(figure)
        return path

    for module in (figures, learning, choice, agreement):
        monkeypatch.setattr(module, "save", save)
    return found


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
    learning.accuracy(made, made.headline("mlp", grid.SLOW, SHARE)[:5], "t", "title", tmp_path / "accuracy.png")
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
    for axes in drawn[0].axes[:-1]:
        named = [label.get_text() for label in axes.get_yticklabels(which="both") if label.get_text()]
        assert set(named) <= {str(tick) for tick in figures.TICKS}
