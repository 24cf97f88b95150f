"""Measurements as rows of a JSON file: each is made once, with the conditions in which it was made."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from serene.errors import SereneError
from serene.experiments.shared.machine import CONDITIONS, observed
from serene.process import outputs

Row = dict[str, Any]
T = TypeVar("T")


class BadRows(SereneError):
    """A file cannot be read; the message names it."""


def read(path: Path) -> list[Row]:
    """The rows in a file; none if there is no such file. Raises BadRows."""
    try:
        rows = json.loads(path.read_text()) if path.exists() else []
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise ValueError("expected a list of rows")
        return rows
    except ValueError as error:
        raise BadRows(f"{path}: {error}; remove the file") from error


def complete(path: Path, cases: Iterable[T], measure: Callable[[T], Row], say: Callable[[T], object]) -> list[Row]:
    """Measures the cases, dataclasses, that are not in the file yet, and adds them to it; returns all rows. A row with
    a reason why it ``failed`` is measured again. say: called before each. Raises BadRows, CannotWrite, and what
    ``measure`` raises."""
    rows = read(path)
    for case in cases:
        asked = asdict(case)  # type: ignore[call-overload]
        known = [row for row in rows if all(row.get(name) == value for name, value in asked.items())]
        if any(not row.get("failed") for row in known):
            continue
        say(case)
        found, conditions = observed(partial(measure, case))
        rows = [row for row in rows if row not in known]
        rows.append({**asked, **found, CONDITIONS: conditions.to_dict()})
        path.parent.mkdir(parents=True, exist_ok=True)
        outputs.write_text(path, json.dumps(rows, indent=1))
    return rows
