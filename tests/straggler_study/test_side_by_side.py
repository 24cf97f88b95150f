"""Runs that make each other slower are not run side by side."""

from __future__ import annotations

import json
from dataclasses import asdict
from io import StringIO
from pathlib import Path

from rich.console import Console

from experiments.straggler_study.side_by_side import Copies, agree, known, rows

MEASURED = [
    Copies(0.05, 1, [0.100], 1.0),
    Copies(0.05, 6, [0.102, 0.104, 0.103, 0.2, 0.101, 0.100], 1.0),
    Copies(0.65, 1, [0.100], 1.0),
    Copies(0.65, 4, [0.150, 0.150, 0.150, 0.150], 1.0),
    Copies(0.65, 2, [0.106, 0.107], 1.0),
]


def test_as_many_as_do_not_distort_each_other(tmp_path: Path) -> None:
    (tmp_path / "side-by-side.json").write_text(json.dumps([asdict(each) for each in MEASURED]))
    assert known(tmp_path) == MEASURED
    assert agree({0.05: 6, 0.65: 4}, tmp_path, Console(file=StringIO())) == {0.05: 6, 0.65: 1}
    verdicts = [row[-1] for row in rows(MEASURED)[1]]
    assert verdicts == ["", "done", "", "refused", "refused"]
