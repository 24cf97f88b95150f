"""Strategies as cells name them: fixed ones as on every command line, automatic ones as ``auto:NAME`` or
``auto:NAME:key=value,...``, with the names of `serenectl sync auto`."""

from __future__ import annotations

from serene.controller.automatic import AUTOMATIC, Automatic, automatic_parts, load, source
from serene.errors import choices
from serene.strategy import BSP, NAMES, BadStrategy, Strategy, parse


def automatic(text: str) -> Automatic | None:
    """The automatic strategy that a text names; None for a fixed one. Raises BadStrategy or BadAutomatic."""
    return load(*automatic_parts(text)) if text.startswith(AUTOMATIC) else None


def automatic_source(text: str) -> str:
    """The program text of the automatic strategy that a text names. Raises as ``automatic``."""
    return source(automatic_parts(text)[0])


def first_strategy(text: str) -> Strategy:
    """The strategy that the job begins with: BSP, if it is an automatic one. Raises BadStrategy."""
    if text.startswith(AUTOMATIC):
        return BSP()
    try:
        return parse(text)
    except BadStrategy:
        raise BadStrategy(f"no strategy {text!r}; expected {choices([*NAMES, AUTOMATIC + 'NAME'])}") from None


def check_strategy(text: str, workers: int) -> None:
    """Raises BadStrategy or BadAutomatic for a strategy that does not exist, or that so many workers cannot have."""
    automatic(text)
    first_strategy(text).compile(range(workers))
