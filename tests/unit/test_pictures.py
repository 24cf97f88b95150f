"""The strategies above a picture: each in its own colour, without overlapping names."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from matplotlib.colors import to_hex

from serene.experiments.shared.style import fit_names, panels, strategy_band
from serene.palette import COLOUR_OF, COMPUTING, GREY, SENDING, WAITING, colour_of, look
from serene.strategy import parse

STRATEGIES = ("bsp", "ssp:1", "ssp:3", "ssp:7", "ssp:10", "asp", "quorum:3", "mixed:1,2", "mixed:1,2:4")
END_S = 60.0


def test_picture_names_a_quorum_by_its_family() -> None:
    assert (look("quorum:3").name, look("quorum").name) == ("3-of-n", "k-of-n")
    assert look("quorum:3").kind == look("quorum").kind == "k-of-n"


@pytest.mark.parametrize("text", STRATEGIES)
def test_strategy_has_one_name_and_colour_in_all_pictures(text: str) -> None:
    assert look(text).name == str(parse(text))
    expected = COLOUR_OF.get(text) or COLOUR_OF.get(text.partition(":")[0], GREY)
    assert colour_of(str(parse(text))) == look(text).colour == expected


def test_worker_activity_colours_differ_from_strategy_colours() -> None:
    doing = {COMPUTING, SENDING, WAITING}
    assert len(doing) == 3 and not doing & {*COLOUR_OF.values(), GREY}


@pytest.mark.parametrize("seed", range(5))
def test_strategy_names_in_a_picture_never_overlap(seed: int) -> None:
    chance = random.Random(seed)
    times = [0.0, *sorted(chance.uniform(0, END_S) for _ in range(12))]
    changes = [(t, str(parse(chance.choice(STRATEGIES)))) for t in times]
    figure, axes = panels(1, 1, width=9)
    names = strategy_band(axes[0, 0], changes, END_S)
    axes[0, 0].set_xlim(0, END_S)
    hidden = fit_names(figure, names, END_S)
    shown = [name for name in names if name.get_visible()]
    assert shown, "some fit"
    for one, next_ in pairwise(shown):
        assert one.get_window_extent().x1 < next_.get_window_extent().x0
    assert shown[-1].get_window_extent().x1 < figure.bbox.x1
    assert {name.get_text() for name in shown} | set(hidden) == {name for _, name in changes}, "all are named somewhere"
    drawn = [to_hex(line.get_color()).lower() for line in axes[0, 0].lines]
    assert drawn == [colour_of(name).lower() for _, name in changes]


def test_strategy_band_without_changes_shows_no_names() -> None:
    figure, axes = panels(1, 1)
    assert fit_names(figure, strategy_band(axes[0, 0], [], END_S), END_S) == []
