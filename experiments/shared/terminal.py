"""What commands print: their console, and their tables."""

from __future__ import annotations

import io
import sys
from collections.abc import Collection, Iterable

from rich.console import Console
from rich.table import Table


def console(width: int = 160, *, highlight: bool = True) -> Console:
    """A console as wide as the terminal. width: in columns, where the output is no terminal, so that lines of a log are
    not folded at 80. Text is printed as it is: a path may have brackets in it, which rich would take for markup, and
    bytes that are no text in this locale, which are escaped."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    wide = None if sys.stdout.isatty() else width
    return Console(width=wide, highlight=highlight, markup=False, emoji=False)


def table(
    head: Iterable[str], rows: Iterable[Iterable[str]], left: Collection[str] = (), title: str | None = None
) -> Table:
    """A table to print. left: the columns that are aligned to the left."""
    shown = Table(box=None, pad_edge=False, padding=(0, 2), title=title)
    for heading in head:
        shown.add_column(heading, justify="left" if heading in left else "right")
    for row in rows:
        shown.add_row(*row)
    return shown
