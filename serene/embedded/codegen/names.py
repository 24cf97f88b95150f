"""C names for the parts of a program. Only through these names can a program's text get into the generated C.

A name is a letter for the kind of object, a number, and a recognisable part of the P4 name: ``h3_ethernet``. It has
only letters, digits and underscores. The number makes it unique. It cannot be a keyword, a macro or a name of the
runtime.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from typing import TypeVar

READABLE = 48  # characters of a P4 name that are kept
NO_LETTER = re.compile(r"[^A-Za-z0-9_]")

K = TypeVar("K", bound=Hashable)


def identifier(kind: str, number: int, name: str) -> str:
    return f"{kind}{number}_{NO_LETTER.sub('_', name[:READABLE])}"


def identifiers(kind: str, names: Iterable[K]) -> dict[K, str]:
    """A C name for each of these P4 names, numbered in order."""
    return {name: identifier(kind, number, str(name)) for number, name in enumerate(names)}
