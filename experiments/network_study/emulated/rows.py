"""What was measured on the emulated Clos network and on emulated racks, in a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from serene import outputs
from serene.errors import SereneError

CLOS = "clos"  # the folder, in the study's
ROWS = "clos.json"
RACK_ROWS = "leaf-spine.json"  # over racks, through our switches

Row = dict[str, Any]


class BadRows(SereneError):
    """A file that cannot be read."""


def kept(folder: Path) -> list[Row]:
    """Raises BadRows."""
    return read(folder / ROWS)


def read(path: Path) -> list[Row]:
    """No rows where there is no such file. Raises BadRows."""
    try:
        return list(json.loads(path.read_text())) if path.exists() else []
    except ValueError as error:
        raise BadRows(f"{path}: {error}; remove the file") from error


def title(row: Row) -> str:
    """The method, and whether its steps had barriers."""
    return f"{row['method']}, a barrier after each step" if row.get("barrier") else str(row["method"])


def keep(folder: Path, rows: list[Row]) -> None:
    outputs.write_text(folder / ROWS, json.dumps(rows, indent=1))
