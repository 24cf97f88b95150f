"""Errors that a user can act on.

Every message says what was wrong, what was expected and, where there is a choice, the valid choices; command lines
print it after ``error:`` and exit without a traceback.
"""

from __future__ import annotations

from collections.abc import Iterable


class SereneError(Exception):
    """Base of every error that Serene raises on purpose."""


def choices(values: Iterable[object]) -> str:
    """The valid choices as they appear in a message: ``a, b or c``."""
    names = [str(value) for value in values]
    if len(names) < 2:
        return "".join(names)
    return ", ".join(names[:-1]) + " or " + names[-1]
