"""Parts of random runs: the files of ``make schedules``, and which of them may be added."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from serene.experiments.correctness import schedules, tallies
from serene.experiments.correctness.tallies import BadPart, Part, Tally, added_up
from serene.experiments.correctness.virtual.checks import Balance
from serene.experiments.shared import build
from serene.program import TREE, VARIANTS, Program
from tests.commands import called

PAIR = ("bsp", "ssp")
PART = Part("abc", "serene", 2, 0.5, 0, 10, 1.5, {PAIR: Tally(runs=10, contributions=70, happened={"evicted": 2})})


def test_tally_part_round_trips_through_its_file(tmp_path: Path) -> None:
    PART.write(tmp_path / "part.json")
    assert Part.read(tmp_path / "part.json") == PART


def test_tally_parts_of_one_build_add_up() -> None:
    one = Tally(10, 1, 70, 2, 3, 4, 0.5, {"a rule": 5}, [13, 7], {"evicted": 2})
    other = Tally(20, 10, 30, 50, 60, 70, 0.25, {"a rule": 1, "no stuck worker": 2}, [9], {"evicted": 1, "joined": 1})
    assert all(vars(one).values()) and all(vars(other).values()), "what is 0 adds up by itself"
    parts = {
        Path("one"): replace(PART, tallies={PAIR: one}),
        Path("two"): replace(PART, first=10, tallies={PAIR: other}),
    }
    assert added_up(parts)[PAIR] == Tally(
        30, 11, 100, 52, 63, 74, 0.75, {"a rule": 6, "no stuck worker": 2}, [7, 9, 13], {"evicted": 3, "joined": 1}
    )
    assert one.runs == 10, "the parts stay as they are"


def test_tally_build_digest_covers_sources_and_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "serene"
    monkeypatch.setattr(build, "PACKAGE", package)
    monkeypatch.setattr(build, "BUILD", package / "p4")
    programs = [package / "p4" / f"{name}.json" for name in (*VARIANTS, *TREE)]
    files = [package / "code.py", *programs, *(package / folder / "code.c" for folder in tallies.PLAYED)]
    for path in files:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("before")
    builds = [tallies.build()]
    for path in files:
        path.write_text("after")
        builds.append(tallies.build())
    files[0].rename(files[0].with_name("other.py"))
    builds.append(tallies.build())
    assert len(set(builds)) == len(builds)
    (package / "notes.md").write_text("nothing that runs")
    (package / "experiments" / "code.py").write_text("of another command")
    assert tallies.build() == builds[-1]
    (package / "controller").rename(tmp_path / "controller")
    (package / "controller").symlink_to("../controller")
    assert tallies.build() == builds[-1], "a checkout and its wheel are one build"


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (replace(PART, first=10, build="abd"), "two: build abd, but one has abc"),
        (replace(PART, first=10, racks=3), "two: racks 3, but one has 2"),
        (replace(PART, first=10, program="serene_jumbo"), "two: program serene_jumbo, but one has serene"),
        (replace(PART, first=10, take_overs=1.0), "two: take_overs 1.0, but one has 0.5"),
        (replace(PART, first=9), "two: runs 9 to 18, some of which are in one: expected other runs"),
    ],
)
def test_tally_parts_that_do_not_belong_together_are_refused(other: Part, message: str) -> None:
    with pytest.raises(BadPart, match=message):
        added_up({Path("one"): PART, Path("two"): other})


def test_tally_parts_of_different_pairs_may_share_run_numbers() -> None:
    other = replace(PART, tallies={("ssp", "bsp"): Tally(runs=10)})
    assert set(added_up({Path("one"): PART, Path("two"): other})) == {PAIR, ("ssp", "bsp")}


def test_tallies_command_fails_and_names_runs_that_broke_a_rule(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "part.json"
    replace(PART, tallies={PAIR: Tally(runs=10, broken={"no stuck worker": 1}, failed=[3])}).write(path)
    assert tallies.main([str(path)]) == 1
    output = capsys.readouterr()
    assert output.err == f"error: {path}: bsp and ssp: runs [3]\n"
    assert "0 repeated, 1 runs stuck, 1 runs failed" in output.out


@pytest.mark.parametrize("found", [Balance(lost=1), Balance(repeated=2)], ids=str)
def test_run_with_lost_or_repeated_contributions_counts_as_failed(
    found: Balance, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = Program.load()
    real = schedules.play(PAIR, 4, program)
    monkeypatch.setattr(
        schedules, "play", lambda pair, number, *_: replace(real, balance=found) if number == 4 else real
    )
    tally = schedules.play_many(PAIR, range(3, 6), program)
    assert (tally.failed, tally.lost, tally.repeated) == ([4], found.lost, found.repeated)
    assert (tally.runs, tally.contributions) == (3, 3 * real.contributions)


def written(**fields: object) -> str:
    """A part in which some things are others."""
    head = {"build": "abc", "program": "serene", "racks": 2, "take_overs": 0.5, "first": 0, "runs": 10}
    head |= {"seconds": 1.5, "tallies": {}}
    return json.dumps({**head, **fields})


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{}", '{"tallies": {"bsp": {}}}', '{"tallies": {}, "build": "abc"}', "[" * 100_000,
        written(first="0"), written(runs=None), written(tallies={"bsp": {}}),
        written(tallies={"bsp ssp": {"runs": "10"}}),
        written(tallies={"bsp ssp": {"lost": -1}}), written(tallies={"bsp ssp": {"lost": float("nan")}}),
        written(tallies={"bsp ssp": {"failed": 3}}), written(tallies={"bsp ssp": {"broken": {"a rule": "1"}}}),
    ],
    ids=lambda text: text[:80],
)  # fmt: skip
def test_malformed_tally_part_is_rejected(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "part.json"
    path.write_text(text)
    assert tallies.main([str(path)]) == 2
    errors = capsys.readouterr().err
    assert errors.startswith(f"error: {path}: expected a result file of make schedules") and errors.count("\n") == 1


def test_tallies_command_adds_up_two_schedule_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [tmp_path / "first.json", tmp_path / "second.json"]
    for first, path in enumerate(paths):
        given = ["--racks", "2", "--runs", "1", "--first", first, "--pair", "bsp,asp", "--processes", "1"]
        assert called(schedules.main, *given, "--out", path).returncode == 0
    played = [Part.read(path) for path in paths]
    assert [(part.build, part.racks, part.first) for part in played] == [(tallies.build(), 2, n) for n in (0, 1)]
    assert tallies.main([str(path) for path in paths]) == 0
    assert "2 runs in 2 parts: 0 contributions lost, 0 repeated, 0 runs stuck, 0 runs failed" in capsys.readouterr().out
    assert played[0].tallies["bsp", "asp"].contributions > 0
