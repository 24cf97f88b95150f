"""What commands print to."""

from __future__ import annotations

import sys

from rich.console import Console


def console(width: int = 160, *, highlight: bool = True) -> Console:
    """Of the terminal's width; ``width`` for a pipe, which has none of its own: lines are not to be folded there."""
    return Console(width=None if sys.stdout.isatty() else width, highlight=highlight)
