"""C names for the parts of a program. This is the only way in which a program's text gets into the generated C.

A name is a letter for the kind of object, a number, and enough of the P4 name to be recognised, in letters, digits and
underscores: ``h3_ethernet``. The number makes it unique, and it can be no keyword, macro or name of the runtime.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from typing import TypeVar

READABLE = 48  # how many characters of a P4 name are kept
NO_LETTER = re.compile(r"[^A-Za-z0-9_]")

K = TypeVar("K", bound=Hashable)


def identifier(kind: str, number: int, name: str) -> str:
    return f"{kind}{number}_{NO_LETTER.sub('_', name[:READABLE])}"


def identifiers(kind: str, names: Iterable[K]) -> dict[K, str]:
    """A C name for each of these P4 names, numbered in order."""
    return {name: identifier(kind, number, str(name)) for number, name in enumerate(names)}
