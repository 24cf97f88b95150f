"""Results as CSV: a file of rows that are all of one dataclass."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import astuple, fields
from typing import Any


def to_csv(kind: type[Any], rows: Iterable[Any]) -> str:
    """A line with the names of the fields of ``kind``, a dataclass, and a line for each row."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(field.name for field in fields(kind))
    writer.writerows(astuple(row) for row in rows)
    return text.getvalue()
