"""Errors that a user can act on.

Every message names what was wrong, what was expected and, if there is a choice, the valid choices. Commands print it
after ``error:`` and exit without a traceback.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class SereneError(Exception):
    """The base class of every error that Serene raises on purpose."""


class BadUsage(SereneError):
    """A command line has something invalid in it. The message names the valid choices; the exit status is 2."""


def choices(values: Iterable[object]) -> str:
    """The valid choices as they appear in a message: ``a, b or c``."""
    names = [str(value) for value in values]
    if len(names) < 2:
        return "".join(names)
    return ", ".join(names[:-1]) + " or " + names[-1]


def numbers(values: Sequence[int]) -> str:
    """Numbers as text for a message. values: in ascending order. If there are many and none is missing, only the first
    and the last appear: ``0 to 127``."""
    few = 8
    if len(values) <= few or values[-1] - values[0] != len(values) - 1:
        return choices(values)
    return f"{values[0]} to {values[-1]}"


def plural(number: int, what: str) -> str:
    """``1 cell`` or ``2 cells``."""
    return f"{number} {what}{'s'[: number != 1]}"


def one_line(text: str, longest: int) -> str:
    """A text of another program as one line that any terminal can show, with at most ``longest`` characters."""
    line = "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text[: longest + 1]
    )
    return line if len(line) <= longest else f"{line[: longest - 3]}..."
