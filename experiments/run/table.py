"""Runs as one table: ``python -m serene.experiments.run.table runs > runs.csv`` (docs/results/README.md).

A row for each summary.json below the folders that are named: its plain values, the seconds to each accuracy in columns
of their own, and how often the strategy changed.
"""

from __future__ import annotations

from serene.process.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

import csv
import io
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

from serene.arguments import Parser
from serene.errors import SereneError


def row(path: Path) -> dict[str, Any]:
    """The row of a run. path: of its summary.json. Raises SereneError if it is none."""
    try:
        summary = json.loads(path.read_text())
        times, changes = summary["seconds_to_accuracy"], summary["changes"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SereneError(f"{path} is no summary of a run by this version: {type(error).__name__}: {error}") from error
    plain = {name: value for name, value in summary.items() if not isinstance(value, list | dict)}
    return {
        "run": path.parent.name,
        **plain,
        **{f"s_to_{target}": seconds for target, seconds in times.items()},
        "waiting_s": round(sum(summary["waiting_s"]), 3),
        "swaps": len(changes) - 1,
    }


def rows(folders: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """The rows of all runs below these folders, by name. Raises SereneError if a folder has none."""
    for folder in folders:
        found = sorted(folder.rglob("summary.json"))
        if not found:
            raise SereneError(f"{folder}: no summary.json below it; expected a folder of runs, such as runs")
        yield from map(row, found)


def write(found: Iterable[dict[str, Any]], file: TextIO) -> None:
    """Writes the rows as CSV. Columns are those of all rows, since some settings exist only in some runs."""
    table = list(found)
    columns = dict.fromkeys(name for each in table for name in each)
    writer = csv.DictWriter(file, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)


def main() -> int:
    parser = Parser(
        prog="python -m serene.experiments.run.table", description="Prints the runs in folders as one CSV table."
    )
    parser.add_argument("folders", type=Path, nargs="+", help="folders that contain runs, at any depth")
    options = parser.parse_args()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="surrogateescape")  # a run's name need not be UTF-8
    try:
        write(list(rows(options.folders)), sys.stdout)
    except SereneError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(ended(main))
