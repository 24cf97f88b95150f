"""Parts of random runs: what ``make schedules`` writes, and which of them add up."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.correctness import schedules, tallies
from experiments.correctness.tallies import BadPart, Part, Tally, added_up

PAIR = ("bsp", "ssp")
PART = Part("abc", "serene", 2, 0, 10, 1.5, {PAIR: Tally(runs=10, contributions=70, happened={"evicted": 2})})


def test_a_part_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "part.json"
    PART.write(path)
    assert Part.read(path) == PART
    assert json.loads(path.read_text())["build"] == "abc"


def test_parts_of_one_build_add_up() -> None:
    later = replace(PART, first=10, tallies={PAIR: Tally(runs=10, lost=1, failed=[13], happened={"evicted": 1})})
    total = added_up({Path("one"): PART, Path("two"): later})[PAIR]
    assert (total.runs, total.contributions, total.lost, total.failed, total.happened) == (
        20, 70, 1, [13], {"evicted": 3},
    )  # fmt: skip
    assert PART.tallies[PAIR].runs == 10, "the parts stay as they are"


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (replace(PART, first=10, build="abd"), "two: build abd, that of one is abc"),
        (replace(PART, first=10, racks=3), "two: racks 3, that of one is 2"),
        (replace(PART, first=10, program="serene_jumbo"), "two: program serene_jumbo, that of one is serene"),
        (replace(PART, first=9), "two: runs 9 to 18, of which one has some: expected others"),
    ],
)
def test_others_are_refused_by_name(other: Part, said: str) -> None:
    with pytest.raises(BadPart, match=said):
        added_up({Path("one"): PART, Path("two"): other})


def test_the_same_runs_of_another_pair_are_others() -> None:
    other = replace(PART, tallies={("ssp", "bsp"): Tally(runs=10)})
    assert set(added_up({Path("one"): PART, Path("two"): other})) == {PAIR, ("ssp", "bsp")}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"pairs": {"bsp": {}}}', '{"pairs": {}, "build": "abc"}'])
def test_what_is_no_part_is_refused(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "part.json"
    path.write_text(text)
    assert tallies.main([str(path)]) == 2
    assert capsys.readouterr().err.startswith(f"error: {path}: not what make schedules has written")


def test_the_command_counts_what_two_commands_have_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [tmp_path / "first.json", tmp_path / "second.json"]
    for first, path in enumerate(paths):
        given = ["--racks", "2", "--runs", "1", "--first", str(first), "--pair", "bsp,asp", "--processes", "1"]
        monkeypatch.setattr("sys.argv", ["schedules", *given, "--out", str(path)])
        assert schedules.main() == 0
    played = [Part.read(path) for path in paths]
    assert [(part.build, part.racks, part.first) for part in played] == [
        (tallies.build(), 2, 0),
        (tallies.build(), 2, 1),
    ]
    capsys.readouterr()
    assert tallies.main([str(path) for path in paths]) == 0
    assert "2 runs in 2 parts: 0 contributions lost, 0 repeated, 0 runs stuck, 0 runs failed" in capsys.readouterr().out
    assert played[0].tallies["bsp", "asp"].contributions > 0
