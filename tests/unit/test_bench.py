"""`make bench`: rows with and without a peer, and the other programs that it accepts."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

pytest.importorskip("mininet")

from serene.errors import SereneError
from serene.experiments.performance import bench, pins, results, seed
from serene.experiments.performance.parts import BenchFailed, run_parts
from serene.experiments.performance.row import Row
from serene.experiments.shared import page_tables
from serene.program import Program
from tests.commands import called


@pytest.mark.parametrize(
    ("wanted", "ours", "theirs", "note", "words"),
    [
        (25.0, (2e6, 3e6, 4e6), (), "not run", "values values/s 3.00 M -33 +33 % 25 not run"),
        (
            20.0,
            (2e6, 3e6, 4e6),
            (1e5, 2e5, 3e5),
            "",
            "values values/s 3.00 M -33 +33 % 200,000 -50 +50 % 15.00 20 missed",
        ),
        (None, (2e6, 3e6), (1e6,), "theirs", "values values/s 2.50 M 1.00 M 2.50 theirs"),  # too few for a spread
    ],
)
def test_bench_row_has_medians_spreads_and_their_ratio(
    wanted: float | None, ours: tuple[float, ...], theirs: tuple[float, ...], note: str, words: str
) -> None:
    console = Console(width=240)
    with console.capture() as capture:
        console.print(bench.table([Row("values", "values/s", False, wanted, ours, theirs, note)]))
    assert capture.get().splitlines()[1].split() == words.split()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "expected what p4c-bm2-ss makes of the authors' p4src/stragglers.p4"),
        ("no JSON", "expected what p4c-bm2-ss makes"),
        ("[]", "expected what p4c-bm2-ss makes"),
        (json.dumps({"register_arrays": [{"name": "r", "size": 64}]}), "no register of 79,520 values"),
    ],
)
def test_bench_refuses_a_program_other_than_the_authors(content: str | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "stragglers.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(SereneError, match=message):
        seed.check(path)
    path.write_text(json.dumps({"register_arrays": [{"name": "sspTable", "size": 79_520}]}))
    seed.check(path)  # the authors': a register has a row for each value


class Here:
    """A host for each part on this machine: the first waits, the second fails."""

    def __init__(self, starts: int) -> None:
        self.started: list[subprocess.Popen[bytes]] = []
        self._starts = starts

    def popen(self, worker: int, command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        if len(self.started) == self._starts:
            raise OSError("no room for another process")
        code = "import sys; sys.exit('a sum is wrong')" if worker else "import time; time.sleep(600)"
        self.started.append(subprocess.Popen([sys.executable, "-c", code], **options))
        return self.started[-1]


def test_bench_names_the_failed_part_while_another_still_waits(tmp_path: Path) -> None:
    hosts = Here(2)
    with pytest.raises(BenchFailed, match="pool-1: a sum is wrong"):
        run_parts(hosts.popen, {0: ("pool", {}), 1: ("pool", {})}, tmp_path, 120.0)
    assert all(process.poll() is not None for process in hosts.started)


def test_bench_stops_started_parts_if_a_later_one_cannot_start(tmp_path: Path) -> None:
    hosts = Here(1)
    with pytest.raises(OSError, match="no room"):
        run_parts(hosts.popen, {0: ("pool", {}), 1: ("pool", {})}, tmp_path, 120.0)
    assert hosts.started[0].poll() is not None


def test_bench_refuses_a_program_other_than_pins(tmp_path: Path) -> None:
    """Tries a program with another name and P4Info, and a path that does not exist."""
    with pytest.raises(SereneError, match=r"PINS_JSON=.*serene\.json: expected what p4c-bm2-ss makes of p4c's pins"):
        pins.Pins(Program.load("serene").config_path)
    with pytest.raises(SereneError, match=r"PINS_JSON=.*No such file"):
        pins.Pins(tmp_path / "pins.json")


STARTS = """
import sys
from serene.experiments.performance.one_machine import popen
popen(0, [sys.executable, "-c", "print(1, flush=True); input()"], stdin=sys.stdin).wait()
"""


def test_part_on_this_machine_ends_with_its_killed_starter() -> None:
    """Parts waited for each other for an hour, with the memory of what they trained."""
    starter = subprocess.Popen([sys.executable, "-c", STARTS], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with starter:
        assert starter.stdout is not None and starter.stdout.readline() == b"1\n"
        starter.kill()
        # The part holds the output, too: it is at its end when the part has ended.
        assert select.select([starter.stdout], [], [], 60)[0], "the part is still there"
        assert os.read(starter.stdout.fileno(), 1) == b""


def test_bench_pages_match_the_committed_rows() -> None:
    """After a change run `python -m serene.experiments.performance.results`, which writes the pages again."""
    for page, parts in results.parts().items():
        assert page_tables.filled(page, parts) == page.read_text()


def test_rows_of_a_run_replace_older_ones_but_for_unmeasured_peers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, run = tmp_path / "bench.csv", tmp_path / "bench.json"
    monkeypatch.setattr(results, "FILE", file)

    def measured(day: str, *rows: Row) -> list[tuple[Row, str]]:
        made = {"command": "make bench", "commit": "c", "machine": "m", "date": day}
        run.write_text(json.dumps({**made, "rows": [asdict(row) for row in rows]}))
        file.write_text(results.kept(run).to_csv(index=False))
        return results.read(file)

    authors = Row("values", "values/s", False, 25.0, (8e6, 9e6, 7e6), (5e5, 6e5, 4e5), "the authors'")
    once = Row("packets", "packets/s", False, None, (3e5,), (2e4, 1e4), "BMv2", limit=4e5)
    assert [(row.cells(), day) for row, day in measured("2026-11-01", authors, once)] == [
        (row.cells(), "2026-11-01") for row in (authors, once)
    ]
    alone = Row("values", "values/s", False, 25.0, (1e6,), (), "the authors': not run")
    again = Row("packets", "packets/s", False, None, (6e5,), (3e4,), "BMv2")
    missing = Row("writes", "s", True, None, missing="BMv2 is not installed")
    assert [(row.work, row.ratio, day) for row, day in measured("2026-11-02", alone, again, missing)] == [
        ("values", 16.0, "2026-11-01"), ("packets", 20.0, "2026-11-02"),
    ]  # fmt: skip


def test_part_of_a_run_replaces_no_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--tables` and `--trainings` measure a part."""
    file, run = tmp_path / "bench.csv", tmp_path / "bench.json"
    monkeypatch.setattr(results, "FILE", file)
    run.write_text(json.dumps({**MADE, "rows": [asdict(Row("writes", "s", True, None, (1.0,)))]}))
    done = called(results.main, "--bench", run)
    assert done.returncode == 1 and "expected a whole run of make bench; no row PUSH path" in done.stderr
    assert not file.exists()


MADE = {"commit": "c", "machine": "m", "date": "2026-11-01"}
TEXT = json.dumps({**MADE, "rows": [asdict(Row("writes", "s", True, None)) | {"ours": ["x"]}]})


@pytest.mark.parametrize("content", [None, "{}", "[]", '{"rows": [{"work": 1}]}', TEXT])
def test_another_file_is_no_run_of_bench(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "bench.json").write_text(content)
    with pytest.raises(SereneError, match=r"cannot read .* expected build/bench.json, which make bench writes"):
        results.kept(tmp_path / "bench.json")
    (tmp_path / "bench.csv").write_text("work,unit\n")
    with pytest.raises(SereneError, match="it has no column"):
        results.read(tmp_path / "bench.csv")
