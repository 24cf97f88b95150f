"""Runs as one table that pandas can read."""

from __future__ import annotations

import csv
import json
import sys
from io import StringIO
from pathlib import Path

import pytest

from serene.errors import SereneError
from serene.experiments.run import table
from serene.experiments.run.launch import balance
from serene.experiments.run.results import Json, miscounted
from tests.commands import called, run


def a_run(folder: Path, **values: object) -> None:
    folder.mkdir(parents=True)
    summary = {
        "strategy": "ssp:3", "waiting_s": [1.0, 0.25], "seconds_to_accuracy": {"0.50": 2.5, "0.60": None},
        "changes": [{"t": 0.0}, {"t": 1.0}], "machine": {"cpus": 2}, **values,
    }  # fmt: skip
    (folder / "summary.json").write_text(json.dumps(summary))


def test_run_table_has_one_row_of_plain_values_per_run(tmp_path: Path) -> None:
    a_run(tmp_path / "a", packets_by="scapy", packets=9)
    a_run(tmp_path / "deep" / "b", strategy="auto:pacing", links="12 lost")
    done = called(table.main, tmp_path)
    assert done.returncode == 0
    first, second = csv.DictReader(StringIO(done.stdout))
    assert (first["run"], first["strategy"], first["swaps"], first["waiting_s"]) == ("a", "ssp:3", "1", "1.25")
    assert (first["s_to_0.50"], first["s_to_0.60"], first["links"]) == ("2.5", "", "")
    assert (second["run"], second["strategy"], second["links"]) == ("b", "auto:pacing", "12 lost")
    assert first["packets"] == "scapy", "the setting, also of runs in which packets was their number"
    assert not {"machine", "packets_by"} & first.keys()


def test_run_table_refuses_folders_without_runs_and_bad_summaries(tmp_path: Path) -> None:
    with pytest.raises(SereneError, match=r"no summary\.json below it"):
        list(table.rows([tmp_path]))
    a_run(tmp_path / "a", waiting_s=None)  # of another version
    a_run(tmp_path / "b", seconds_to_accuracy=[])
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "summary.json").write_text("{}")
    for name, error in (("a", "TypeError"), ("b", "AttributeError"), ("c", "KeyError")):
        with pytest.raises(SereneError, match=rf"is not the summary of a run of this version: {error}"):
            list(table.rows([tmp_path / name]))


def test_run_table_reports_an_unwritable_output_in_one_line(tmp_path: Path) -> None:
    a_run(tmp_path / "a")
    shell = 'exec "$0" -m serene.experiments.run.table "$1" >/dev/full'
    done = run("sh", "-c", shell, sys.executable, tmp_path)
    assert (done.returncode, done.stderr) == (1, "error: cannot use the output: No space left on device\n")


SENT: list[Json] = [{"worker": 0, "contributions_sent": 10}, {"worker": 1, "contributions_sent": 10}]


def verdict(applied: int | None, wrong: list[int] | None, under_way: int = 0) -> str:
    summary = {"contributions_sent": 20, "contributions_applied": applied, "miscounted": wrong}
    return balance({**summary, "contributions_under_way": under_way})


def test_verdict_compares_each_worker_not_only_the_sum() -> None:
    assert miscounted(SENT, [10, 10]) == []
    assert miscounted(SENT, [9, 11]) == [0, 1]
    assert verdict(20, [0, 1]) == ", applied 20: NOT EQUAL for worker 0, 1"
    assert verdict(20, []) == ", applied 20: exactly once"


def test_verdict_after_a_kill_compares_only_sums() -> None:
    cut = ", and up to 3 in iterations that were cut short"
    assert verdict(23, None, under_way=3) == f"{cut}, applied 23: the sums agree"
    assert verdict(24, None, under_way=3).endswith("NOT EQUAL") and verdict(19, None, under_way=3).endswith("NOT EQUAL")


def test_verdict_is_empty_without_switch_counts() -> None:
    assert miscounted(SENT, None) is None and verdict(None, None) == ""
