"""The study's recorded runs, and the tables that its page has from them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from serene.errors import SereneError
from serene.experiments.shared import page_tables
from serene.experiments.straggler_study import grid, names
from serene.experiments.straggler_study.results import COLUMNS, PAGE, against, counted, parts, read, times


def runs(*rows: dict[str, object]) -> pd.DataFrame:
    same = dict.fromkeys(COLUMNS, 1.0) | {"straggler": grid.SLOW, "swaps": 0, "measured_share": 0.31}
    return pd.DataFrame([
        same | {"way": names.EMBEDDED, "strategy": "bsp", "share": 0.30, "seed": 1, **row} for row in rows
    ])  # fmt: skip


def test_straggler_page_matches_the_committed_runs() -> None:
    """After a change run `python -m serene.experiments.straggler_study.results`, which writes it again."""
    assert page_tables.filled(PAGE, parts(read())) == PAGE.read_text()


def test_a_missed_target_is_counted_and_not_averaged() -> None:
    found = runs({"target_s": 6.0}, {"target_s": 7.0, "seed": 2}, {"way": names.SERVER, "target_s": None})
    _, rows = times(found)
    assert rows == [
        [names.EMBEDDED, "BSP", "", "6.5 (31 %)", ""], [names.SERVER, "BSP", "", "missed by 1 of 1 seeds", ""],
    ]  # fmt: skip


def test_changes_compare_the_same_seeds() -> None:
    ways = {(way, seed): took for seed, factor in ((1, 1.0), (2, 10.0)) for way, took in (
        (names.EMBEDDED, factor), (names.BMV2, 2 * factor), (names.SERVER, 4 * factor), (names.RPC, 4 * factor),
        (names.SHARDED, 4 * factor), (names.GLOO, 4 * factor))}  # fmt: skip
    found = runs(*(
        {"way": way, "seed": seed, "share": share, "target_s": took}
        for share in grid.SHARES for (way, seed), took in ways.items()
    ))  # fmt: skip
    _, rows = against(found)
    assert {tuple(row[1:]) for row in rows[:4]} == {("-75.0 % [-75.0, -75.0]",) * 3}
    assert {tuple(row[1:]) for row in rows[4:]} == {("-50.0 % [-50.0, -50.0]",) * 3}


def test_a_lost_contribution_shows_on_the_page() -> None:
    found = runs({"swaps": 3}, {"contributions_applied": 2.0}, {"way": names.GLOO})
    assert "In 1 of 2 runs through a switch, with 3 live swaps" in counted(found)


def test_another_file_is_no_result(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text("way,share\n")
    with pytest.raises(SereneError, match=r"cannot read .*runs\.csv"):
        read(tmp_path / "runs.csv")
