"""The console that commands print to."""

from __future__ import annotations

import sys

from rich.console import Console


def console(width: int = 160, *, highlight: bool = True) -> Console:
    """A console as wide as the terminal. width: in columns, where the output is no terminal, so that lines of a log are
    not folded at 80."""
    return Console(width=None if sys.stdout.isatty() else width, highlight=highlight)
