"""A worker's step files are complete, wherever a signal interrupts the code that writes them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from serene.workers import results
from serene.workers.results import WorkerFiles
from tests.disks import disk, fill
from tests.interrupting import interrupted_at

LONG = "x" * 20_000  # some pages of a disk: of a row, one part may fit and the rest not


def stopped_before(line: int, do: Callable[[], object]) -> bool:
    """Does it, and interrupts it before the so-manyth line of workers/results.py; whether there was one."""
    # In a thread of its own: CPython keeps an exception that a trace function interrupts the handling of, and would
    # show it with whatever this thread raises later.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(interrupted_at, line, do, str(results.__file__)).result()


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    with disk(tmp_path / "small", "1m") as place:
        yield place


def begun(directory: Path, instead: Path) -> WorkerFiles:
    files = WorkerFiles(directory, instead, 0, ["step", "long"])
    files.begin(0, 1)
    return files


def steps(directory: Path) -> list[int]:
    """Of whole rows; there are no others."""
    with (directory / "worker-0.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["long"] for row in rows} == {LONG}
    return [int(row["step"]) for row in rows]


def test_step_is_written_once_wherever_a_signal_interrupts(tmp_path: Path) -> None:
    found = []
    for line in count(1):
        files = begun(tmp_path / f"{line}", tmp_path / "instead")
        files.step({"step": 1, "long": LONG})
        stopped = stopped_before(line, lambda: files.step({"step": 2, "long": LONG}))  # noqa: B023 # done at once
        files.step({"step": 3, "long": LONG})
        assert files.finish({}, np.zeros(1)) == tmp_path / f"{line}"
        found.append(steps(tmp_path / f"{line}"))
        if not stopped:
            break
    assert found == sorted(found, key=len), "a step that was written stays"
    assert [1, 3] in found and all(each in ([1, 3], [1, 2, 3]) for each in found)
    assert found.count([1, 2, 3]) > 3, "it was stopped before and after it wrote"


@pytest.mark.parametrize("room", ["in the end", "never"])
def test_step_is_written_once_on_a_full_disk(small: Path, tmp_path: Path, room: str) -> None:
    for line in count(1):
        directory, instead = small / f"{line}", tmp_path / f"instead-{line}"
        files = begun(directory, instead)
        files.step({"step": 1, "long": LONG})
        ballast = fill(small, leave=8192)
        files.step({"step": 2, "long": LONG})
        stopped = stopped_before(line, lambda: files.step({"step": 3, "long": LONG}))  # noqa: B023 # done at once
        if room == "in the end":
            ballast.unlink()
        where = files.finish({}, np.zeros(1))
        ballast.unlink(missing_ok=True)
        assert where == (directory if room == "in the end" else instead)
        assert steps(where) in ([1, 2], [1, 2, 3])
        assert steps(directory) == [1] or where == directory, "whole rows also there"
        if not stopped:
            assert steps(where) == [1, 2, 3]
            break
        for path in directory.iterdir():
            path.unlink()
