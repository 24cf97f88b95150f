"""Runs as one table: ``python -m serene.experiments.run.table runs > runs.csv`` (docs/results/README.md).

A row for each summary.json below the folders that are named: its plain values, the seconds to each accuracy in columns
of their own, and how often the strategy changed.
"""

from __future__ import annotations

from serene.process.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

import io
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from serene.arguments import Parser, command
from serene.errors import SereneError


def row(path: Path) -> dict[str, Any]:
    """The row of a run. path: of its summary.json. Raises SereneError if it is none."""
    try:
        summary = json.loads(path.read_text())
        of_its_own = {
            **{f"s_to_{target}": seconds for target, seconds in summary["seconds_to_accuracy"].items()},
            "waiting_s": round(sum(summary["waiting_s"]), 3),
            "swaps": len(summary["changes"]) - 1,
        }
        plain = {name: value for name, value in summary.items() if not isinstance(value, list | dict)}
        if "packets_by" in plain:  # before 2026-11-28: and packets was a count
            plain["packets"] = plain.pop("packets_by")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SereneError(
            f"{path} is not the summary of a run of this version: {type(error).__name__}: {error}"
        ) from error
    return {"run": path.parent.name, **plain, **of_its_own}


def rows(folders: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """The rows of all runs below these folders, by name. Raises SereneError if a folder has none."""
    for folder in folders:
        found = sorted(folder.rglob("summary.json"))
        if not found:
            raise SereneError(f"{folder}: no summary.json below it; expected a folder of runs, such as runs")
        yield from map(row, found)


@command
def main() -> None:
    parser = Parser("Prints the runs in folders as one CSV table.")
    parser.add_argument("folders", type=Path, nargs="+", help="folders that contain runs, at any depth")
    options = parser.parse_args()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="surrogateescape")  # a run's name need not be UTF-8
    # As objects: a whole number stays one in a column that other runs lack.
    shown = pd.DataFrame(rows(options.folders), dtype=object).to_csv(index=False)
    try:
        print(shown, end="", flush=True)
    except OSError as error:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (what is left there would fail again at the end)
        raise SereneError(f"cannot use the output: {error.strerror}") from None


if __name__ == "__main__":
    raise SystemExit(ended(main))
