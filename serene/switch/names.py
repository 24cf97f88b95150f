"""C names for what a program has: the only way by which text of a program gets into the generated C.

A name is a letter for the kind of thing, a number, and as much of the P4 name as a reader needs to recognise it, in
letters, digits and underscores: ``h3_ethernet``. The number alone makes it unique, and no such name is a keyword, a
macro or one of the runtime's own.
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
    """One for each name, numbered in order."""
    return {name: identifier(kind, number, str(name)) for number, name in enumerate(names)}
