"""`make bench`: rows with and without a peer, and the other programs that it accepts."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

pytest.importorskip("mininet")

from serene.errors import SereneError
from serene.experiments.performance import bench, pins, seed
from serene.experiments.performance.parts import BenchFailed, run_parts
from serene.experiments.performance.row import Row
from serene.program import Program


@pytest.mark.parametrize(
    ("wanted", "ours", "theirs", "note", "words"),
    [
        (25.0, (2e6, 3e6, 4e6), (), "not run", "values values/s 3.00 M -33 +33 % 25 not run"),
        (None, (2e6, 3e6, 4e6), (1e5, 2e5, 3e5), "", "values values/s 3.00 M -33 +33 % 200,000 -50 +50 % 15.00"),
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
