"""Strategies by the names that a cell has: fixed ones as on every command line, automatic ones as ``auto:NAME``."""

from __future__ import annotations

from serene.strategy import NAMES, BadStrategy, Strategy, parse

AUTOMATIC = "auto:"


class Automatic:
    period_s = 1.0

    def decide(self, now, epoch, strategy, workers):
        return None


def automatic(text: str) -> Automatic | None:
    return None


def check_strategy(text: str, workers: int) -> None:
    """Raises BadStrategy for what cannot be meant for so many workers."""
    first_strategy(text).compile(range(workers))


def first_strategy(text: str) -> Strategy:
    """What the job starts with: an automatic strategy begins with BSP and changes it."""
    if text.startswith(AUTOMATIC):
        raise BadStrategy(f"no automatic strategy {text!r}")
    try:
        return parse(text)
    except BadStrategy:
        raise BadStrategy(f"no strategy {text!r}; expected {', '.join(NAMES)}") from None
