"""The study's recorded runs, and the tables that its page has from them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pandas as pd
import pytest

from serene.errors import SereneError
from serene.experiments.shared import page_tables
from serene.experiments.straggler_study import grid, names, results
from serene.experiments.straggler_study.headline import SLOW
from serene.experiments.straggler_study.results import (
    COLUMNS,
    FILE,
    PAGE,
    WHICH,
    against,
    by_share,
    counted,
    first,
    others,
    parts,
    read,
    recorded,
    times,
)
from tests.commands import called


def runs(*rows: dict[str, object]) -> pd.DataFrame:
    same = dict.fromkeys(COLUMNS, 1.0) | {"straggler": grid.SLOW, "swaps": 0, "measured_share": 0.31, "workers": 4}
    return pd.DataFrame([
        same | {"way": names.EMBEDDED, "strategy": "bsp", "share": 0.30, "seed": 1, **row} for row in rows
    ])  # fmt: skip


def test_straggler_page_matches_the_committed_runs() -> None:
    """After a change run `python -m serene.experiments.straggler_study.results`, which writes it again."""
    assert page_tables.filled(PAGE, parts(read())) == PAGE.read_text()


def test_page_names_the_number_of_runs() -> None:
    page = PAGE.read_text()
    quick, full = ([cell.engine for cell in grid.GRIDS[name]().cells()] for name in ("quick", "full"))
    assert f" {quick.count('emulated')} emulated runs and {quick.count('simulated')} simulated ones" in page
    assert f" {full.count('emulated')} emulated runs; some" in page


def test_a_missed_target_is_counted_and_not_averaged() -> None:
    found = runs({"target_s": 6.0}, {"target_s": 7.0, "seed": 2}, {"way": names.SERVER, "target_s": None})
    _, rows = times(by_share(found))
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
    _, rows = against(by_share(found))
    assert {tuple(row[1:]) for row in rows[:4]} == {("-75.0 % [-75.0, -75.0]",) * 3}
    assert {tuple(row[1:]) for row in rows[4:]} == {("-50.0 % [-50.0, -50.0]",) * 3}
    found.loc[(found["way"] == names.GLOO) & (found["seed"] == 2), "target_s"] = None
    found.loc[(found["way"] == names.BMV2) & (found["share"] == grid.SHARES[0]), "target_s"] = None
    _, rows = against(by_share(found))
    assert [row[1] for row in rows[:4]] == [*["-75.0 % [-75.0, -75.0]"] * 3, "missed by 1 of 2 seeds"]
    assert [row[1] for row in rows[4:]] == ["missed by 2 of 2 seeds"] * 4


def test_trainings_are_shown_apart_and_by_whole_seeds() -> None:
    first = {"model": "mlp", "seed": 1, "target_s": 6.0}
    found = runs(
        first, first | {"straggler": grid.NONE}, first | {"workers": 8, "target_s": 7.0},
        first | {"workers": 8, "target_s": 9.0, "way": names.GLOO}, first | {"workers": 8, "target_s": 70.0, "seed": 2},
        first | {"straggler": grid.PAUSES, "target_s": 8.0},
    )  # fmt: skip
    head, rows = times(others(found))
    assert head[2:] == ["mlp, slow_worker (p 0.15, +0.5–2.0x), 8 workers, wanted 30 %",
                        "mlp, pauses (p 0.01, +7.6x), 4 workers, wanted 30 %"]  # fmt: skip
    assert rows == [[names.EMBEDDED, "BSP", "7.0 (31 %)", "8.0 (31 %)"], [names.GLOO, "BSP", "9.0 (31 %)", ""]]


def test_the_picture_has_every_whole_seed_of_the_first_training() -> None:
    found = read().fillna({"target_s": 0.0})  # NaN does not equal itself
    study, runs = recorded(found), first(found)
    for share in grid.SHARES:
        cells = study.headline(SLOW, share)
        drawn = {(names.way(cell), cell.strategy): list(study.of(cell)["target_s"]) for cell in cells}
        mine = runs[runs["share"] == share].sort_values("seed").groupby(["way", "strategy"])["target_s"]
        assert drawn == {key: list(its) for key, its in mine}


def test_a_lost_contribution_shows_on_the_page() -> None:
    found = runs({"swaps": 3}, {"contributions_applied": 2.0}, {"way": names.GLOO})
    assert "In 1 of 2 runs of both grids through a switch, with 3 live\n  swaps" in counted(found)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("target_s", "fast", "line 3 has target_s fast: expected a number, 0 or more"),
        ("target_s", "inf", "line 3 has target_s inf"),
        ("step_s", "-1", "line 3 has step_s -1"),
        ("seed", "", "line 3 has seed nan"),
        ("way", "", "line 3 has way nan: expected a text"),
    ],
)
def test_edited_runs_are_refused_before_they_are_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: str, value: str, message: str
) -> None:
    """Every number of the page follows from these. A run that missed its target has no time."""
    monkeypatch.setattr(results, "FILE", tmp_path / "straggler.csv")
    known = pd.read_csv(FILE, dtype=str, keep_default_na=False).head(2)
    known.assign(target_s="", retransmissions="").to_csv(results.FILE, index=False)
    known.loc[1, column] = value
    known.to_csv(tmp_path / "runs.csv", index=False)
    before = results.FILE.read_text()
    done = called(results.main, "--study", tmp_path)
    assert done.returncode == 1 and f"runs.csv: {message}" in done.stderr
    assert results.FILE.read_text() == before
    assert len(read(results.FILE)) == 2


def test_a_studys_runs_are_added_to_the_file_or_replace_those_that_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its simulated runs are not."""
    for name in ("FILE", "PAGE", "PICTURE"):
        copy = tmp_path / getattr(results, name).name
        copy.write_bytes(getattr(results, name).read_bytes())
        monkeypatch.setattr(results, name, copy)
    known, mine = read(FILE), read(FILE).head(3).assign(engine=["emulated", "emulated", "simulated"])
    mine["target_s"], mine["seed"] = [0.123456, 7.0, 8.0], [mine["seed"].iloc[0], 99, 98]
    mine.to_csv(tmp_path / "runs.csv", index=False)
    done = called(results.main, "--study", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    found = read(results.FILE)
    assert len(found) == len(known) + 1
    assert found.loc[found["seed"] == mine["seed"].iloc[0], "target_s"].min() == 0.1235
    assert found.loc[found["seed"] == 99, "target_s"].tolist() == [7.0]
    assert found[WHICH].to_csv() == found[WHICH].sort_values(WHICH).to_csv(), "in order"


def test_another_file_is_no_result(tmp_path: Path) -> None:
    incomplete = gzip.compress(b"way,share\n" * 99)[:-9]
    for name, content in {"runs.csv": b"way,share\n", "a.csv": b"\xff\n", "runs.csv.gz": incomplete}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(SereneError, match=rf"cannot read .*{name}"):
            read(tmp_path / name)
    with pytest.raises(SereneError, match=r"cannot read .*a\.csv"):
        page_tables.filled(tmp_path / "a.csv", {})
