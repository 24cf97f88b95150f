"""Tables of docs/ that follow from results, between lines ``<!-- NAME: begin -->`` and ``<!-- NAME: end -->``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from serene.errors import SereneError
from serene.process import outputs


def read(path: Path) -> pd.DataFrame:
    """A CSV file of results. Raises SereneError if it is missing or something else."""
    try:
        return pd.read_csv(path)
    except (OSError, EOFError, ValueError) as error:  # EOFError: of a compressed file that is incomplete
        raise SereneError(f"cannot read {path}: {error!r}") from error


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def filled(page: Path, parts: Mapping[str, str]) -> str:
    """The page with these parts, by name. Raises SereneError if it cannot be read, or lacks a part's lines."""
    try:
        text = page.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise SereneError(f"cannot read {page}: {error!r}") from error
    for name, part in parts.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        first, last = text.find(begin), text.find(end)
        if not 0 <= first < last:
            raise SereneError(f"{page} has no line {begin} with a line {end} after it")
        text = f"{text[:first]}{begin}\n{part}\n{text[last:]}"
    return text


def write(page: Path, parts: Mapping[str, str]) -> None:
    """Writes the parts into the page. Raises SereneError."""
    outputs.write_text(page, filled(page, parts))
