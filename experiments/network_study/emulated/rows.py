"""The files of what was measured on the emulated Clos network and on emulated racks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from serene import outputs
from serene.errors import SereneError

CLOS = "clos"  # the folder of both files, in the study's
ROWS = "clos.json"  # on the Clos network
RACK_ROWS = "leaf-spine.json"  # on racks

Row = dict[str, Any]


class BadRows(SereneError):
    """A file cannot be read; the message names it."""


def kept(folder: Path) -> list[Row]:
    """The rows of the Clos network. Raises BadRows."""
    return read(folder / ROWS)


def read(path: Path) -> list[Row]:
    """The rows in a file; none if there is no such file. Raises BadRows."""
    try:
        return list(json.loads(path.read_text())) if path.exists() else []
    except ValueError as error:
        raise BadRows(f"{path}: {error}; remove the file") from error


def title(row: Row) -> str:
    """The method of a row, and what is other than on a plain network."""
    others = {"small_first": "acknowledgements first", "barrier": "a barrier after each step"}
    return ", ".join([str(row["method"]), *(text for name, text in others.items() if row.get(name))])


def keep(folder: Path, rows: list[Row]) -> None:
    """Writes the rows of the Clos network. Raises CannotWrite."""
    outputs.write_text(folder / ROWS, json.dumps(rows, indent=1))
