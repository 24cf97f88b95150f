"""Runs as one table that pandas can read."""

from __future__ import annotations

import csv
import json
from io import StringIO
from pathlib import Path

import pytest

from serene.errors import SereneError
from serene.experiments.run import table


def a_run(folder: Path, **values: object) -> None:
    folder.mkdir(parents=True)
    summary = {
        "strategy": "ssp:3", "waiting_s": [1.0, 0.25], "seconds_to_accuracy": {"0.50": 2.5, "0.60": None},
        "changes": [{"t": 0.0}, {"t": 1.0}], "machine": {"cpus": 2}, **values,
    }  # fmt: skip
    (folder / "summary.json").write_text(json.dumps(summary))


def test_run_table_has_one_row_of_plain_values_per_run(tmp_path: Path) -> None:
    a_run(tmp_path / "a")
    a_run(tmp_path / "deep" / "b", strategy="auto:pacing", links="12 lost")
    text = StringIO()
    table.write(table.rows([tmp_path]), text)
    first, second = csv.DictReader(StringIO(text.getvalue()))
    assert (first["run"], first["strategy"], first["swaps"], first["waiting_s"]) == ("a", "ssp:3", "1", "1.25")
    assert (first["s_to_0.50"], first["s_to_0.60"], first["links"]) == ("2.5", "", "")
    assert (second["run"], second["strategy"], second["links"]) == ("b", "auto:pacing", "12 lost")
    assert "machine" not in first


def test_run_table_refuses_folders_without_runs_and_bad_summaries(tmp_path: Path) -> None:
    with pytest.raises(SereneError, match=r"no summary\.json below it"):
        list(table.rows([tmp_path]))
    (tmp_path / "summary.json").write_text("{}")
    with pytest.raises(SereneError, match=r"is no summary of a run by this version: KeyError"):
        list(table.rows([tmp_path]))
